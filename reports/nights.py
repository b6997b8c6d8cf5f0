"""From a finished run to a judged night: states, faults, findings and roll-ups, in one transaction.

Everything this writes can be made again from the facts: `rebuild` forgets the roll-ups and judges every night anew.
"""

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from typing import Any

from sqlalchemy import Connection, Select, delete, func, select, update

from .gating.acceptance import COMPILE_TIME, Acceptance, Accepted
from .gating.case_memory import (
    CLEARED,
    FAILED,
    FAILING,
    FLAKY,
    INTERMITTENT,
    LONELY,
    NEW,
    NOT_JUDGED,
    VANISHED,
    CaseMemory,
    Seen,
    seen_of,
)
from .gating.compile_time import RatioPoint, compile_time_alarm
from .gating.fault_groups import FaultKey, fault_groups, suspect_of
from .gating.gate_findings import ACCEPTED, AMBER, INVALID, RED_LEVELS, Case, GateFinding, GateReport, in_order
from .gating.night_rules import NightJudgement, NightSeen, judge_night
from .gating.thresholds import Thresholds, default_thresholds
from .rows import CaseRow, RunRow, field_types
from .storage.database import Database
from .storage.name_numbers import NameNumbers, insert_new, replace_rows
from .storage.result_values import read_attempts, read_cases
from .storage.roll_ups import column_values, strip_values
from .storage.schema import (
    ACCEPTED as ACCEPTED_TABLE,
)
from .storage.schema import (
    CASE_STATES,
    COLUMN_NIGHTS,
    COLUMNS,
    FAULT_CASES,
    FAULTS,
    FINDINGS,
    NIGHT_COUNTS,
    NIGHTS,
    RENAMES,
    ROLL_UPS,
    RUNS,
    SOURCES,
    STREAMS,
    STRIPS,
    TESTS,
)
from .verdict_marks import VERDICTS

NIGHTLY_KINDS = ("nightly", "import")
"""Kinds of runs that move the state of cases."""

_BROKEN = (NEW, LONELY, FAILING, INTERMITTENT)
_MEMORY_FIELDS = tuple(CaseMemory.__slots__)


@dataclass(frozen=True, slots=True)
class _Names:
    """Numbers of the tests and columns that a night is about, both ways."""

    numbers: NameNumbers
    tests: Mapping[int, str]
    columns: Mapping[int, str]

    def key(self, case: Case) -> dict[str, int]:
        """Return a case as the two numbers of a key."""
        compiler, _, backend = case[1].partition(":")
        return {"test": self.numbers.test(case[0]), "col": self.numbers.column(compiler, backend)}

    def case(self, row: Any) -> Case:
        """Return a case from the two numbers of a key."""
        return self.tests[row.test], self.columns[row.col]


@dataclass(frozen=True, slots=True)
class _Stream:
    number: int
    suite: str
    branch: str


def judge_run(
    database: Database, run_id: str, accepted: Sequence[Acceptance] = (), limits: Thresholds | None = None
) -> GateReport:
    """Judge a finished nightly run, store what it means, and return the findings; a second time changes nothing.

    accepted: entries of the accepted list, stored with the run so that `rebuild` knows them.
    """
    limits = limits or default_thresholds()
    with database.transaction() as connection:
        number = _run_number(connection, run_id)
        _one_stream_at_a_time(connection, database)
        if connection.execute(select(NIGHTS.c.run).where(NIGHTS.c.run == number)).first() is None:
            _store_accepted(connection, number, accepted)
            _judge(connection, number, limits)
        return _report(connection, number)


def rebuild(database: Database, limits: Thresholds | None = None) -> int:
    """Forget every roll-up, judge every night anew from the stored results, and return how many nights there were."""
    limits = limits or default_thresholds()
    with database.transaction() as connection:
        _one_stream_at_a_time(connection, database)
        judged = [row.run for row in connection.execute(select(NIGHTS.c.run).order_by(NIGHTS.c.run))]
        for table in ROLL_UPS:
            connection.execute(delete(table))
        for number in judged:
            _judge(connection, number, limits)
    return len(judged)


def _run_number(connection: Connection, run_id: str) -> int:
    return int(connection.execute(select(RUNS.c.id).where(RUNS.c.run_id == run_id)).scalar_one())


def _one_stream_at_a_time(connection: Connection, database: Database) -> None:
    if database.is_postgres:
        connection.execute(select(func.pg_advisory_xact_lock(func.hashtext("plumbline nights"))))


def _store_accepted(connection: Connection, run: int, accepted: Sequence[Acceptance]) -> None:
    values = [
        {"run": run, "number": number, "what": each.what, "test": each.test, "column_name": each.column}
        | {"issue": each.issue, "expires": each.expires.isoformat()}
        for number, each in enumerate(accepted)
    ]
    insert_new(connection, ACCEPTED_TABLE, values)


def _read_accepted(connection: Connection, run: int, day: date) -> Accepted:
    rows = connection.execute(select(ACCEPTED_TABLE).where(ACCEPTED_TABLE.c.run == run))
    entries = tuple(
        Acceptance(
            what=row.what,
            test=row.test,
            column=row.column_name,
            issue=row.issue,
            expires=date.fromisoformat(row.expires),
        )
        for row in rows
    )
    return Accepted(entries, day)


def _judge(connection: Connection, number: int, limits: Thresholds) -> None:
    run = _run_row(connection, number)
    stream = _stream(connection, run)
    cases = read_cases(connection, run.run_id)
    retries: dict[Case, list[CaseRow]] = {}
    for retry in read_attempts(connection, run.run_id):
        retries.setdefault((retry.test, retry.column), []).append(retry)
    seen = {(case.test, case.column): seen_of(case, retries.get((case.test, case.column), ())) for case in cases}
    names = _names(connection, cases)
    memories = _memories(connection, stream, names)
    before = _night_before(connection, stream, number)
    renamed = _renamed(connection, number, cases, memories, names) if not run.partial else {}
    for (test, column), memory in list(memories.items()):
        for new, old in renamed.items():
            if test == old:
                memories.setdefault((new, column), memory)
    day = _day(run.utc)
    night = NightSeen(
        run=number,
        seen=seen,
        sizes=Counter(case.column for case in cases),
        accepted=_read_accepted(connection, number, day),
        day_of=(_days(connection) | {number: day}).__getitem__,
        changed=_changed(run, before),
        whole=not run.partial,
        rerun=bool(run.rerun_of),
        renamed=renamed,
    )
    judged = judge_night(memories, night, limits)
    _store_roll_ups(connection, number, cases, seen, names, limits)
    connection.execute(update(RUNS).where(RUNS.c.id == number).values(void=judged.void))
    findings = judged.findings
    if not judged.void:
        drifts = (*_compile_times(connection, stream, number, run, night, limits),)
        drifts += (*_memory(connection, stream, number, run, night, limits),)
        findings = in_order((*findings, *drifts))
        _store_memories(connection, stream, judged.memories, names)
        _store_faults(connection, stream, run, night, judged, memories | dict(judged.memories), names)
        _store_renames(connection, number, renamed, names)
    _store_findings(connection, number, findings)
    report = GateReport(findings, len(seen), _source(before, stream), judged.void)
    _store_night(connection, number, stream, night, judged, memories, report)


def _run_row(connection: Connection, number: int) -> RunRow:
    fields = tuple(field_types(RunRow))
    row = connection.execute(select(*(RUNS.c[name] for name in fields)).where(RUNS.c.id == number)).one()
    return RunRow(**dict(zip(fields, row, strict=True)))


def _stream(connection: Connection, run: RunRow) -> _Stream:
    insert_new(connection, STREAMS, [{"suite": run.suite, "branch": run.branch}])
    query = select(STREAMS.c.id).where(STREAMS.c.suite == run.suite, STREAMS.c.branch == run.branch)
    return _Stream(int(connection.execute(query).scalar_one()), run.suite, run.branch)


def _names(connection: Connection, cases: Sequence[CaseRow]) -> _Names:
    numbers = NameNumbers()
    numbers.learn_tests(connection, (case.test for case in cases))
    numbers.learn_columns(connection, ((case.compiler, case.backend) for case in cases))
    tests = {row.id: row.name for row in connection.execute(select(TESTS.c.id, TESTS.c.name))}
    columns = {row.id: f"{row.compiler}:{row.backend}" for row in connection.execute(select(COLUMNS))}
    numbers.tests.update({name: number for number, name in tests.items()})
    numbers.columns.update(((row.compiler, row.backend), row.id) for row in connection.execute(select(COLUMNS)))
    return _Names(numbers, tests, columns)


def _memories(connection: Connection, stream: _Stream, names: _Names) -> dict[Case, CaseMemory]:
    rows = connection.execute(select(CASE_STATES).where(CASE_STATES.c.stream == stream.number))
    return {names.case(row): CaseMemory(**{name: row._mapping[name] for name in _MEMORY_FIELDS}) for row in rows}


def _night_before(connection: Connection, stream: _Stream, number: int) -> RunRow | None:
    query = (
        select(RUNS.c.id)
        .join(NIGHTS, NIGHTS.c.run == RUNS.c.id)
        .where(NIGHTS.c.stream == stream.number, NIGHTS.c.run < number, RUNS.c.void == "")
        .order_by(NIGHTS.c.run.desc())
        .limit(1)
    )
    found = connection.execute(query).scalar()
    return None if found is None else _run_row(connection, int(found))


_PARTS = (("plumbline", "plumbline"), ("torch", "torch"), ("commit", "your code"), ("python", "python"))


def _changed(run: RunRow, before: RunRow | None) -> tuple[str, ...]:
    if before is None:
        return ("your code",)
    parts = [name for field, name in _PARTS if getattr(run, field) != getattr(before, field)]
    if run.dirty and "your code" not in parts:
        parts.append("your code")
    return (*parts, *(["machine"] if run.machine != before.machine else []))


def _renamed(
    connection: Connection, number: int, cases: Sequence[CaseRow], memories: Mapping[Case, CaseMemory], names: _Names
) -> dict[str, str]:
    """Return new test -> vanished test of the same source, where both are the only ones with it."""
    there = {case.test for case in cases}
    known = {test for test, _ in memories}
    alive = {test for (test, _), memory in memories.items() if memory.state != VANISHED}
    gone = {names.numbers.test(test): test for test in alive - there}
    if not gone or not there - known:
        return {}
    query = select(SOURCES.c.test, SOURCES.c.source).where(SOURCES.c.run <= number).order_by(SOURCES.c.run)
    old_sources = {row.test: row.source for row in connection.execute(query) if row.test in gone}
    new_sources = {case.test: case.source for case in cases if case.source and case.test not in known}
    old_count, new_count = Counter(old_sources.values()), Counter(new_sources.values())
    by_source = {source: gone[test] for test, source in old_sources.items() if old_count[source] == 1}
    return {
        test: by_source[source]
        for test, source in new_sources.items()
        if source in by_source and new_count[source] == 1
    }


def _day(utc: str) -> date:
    try:
        return datetime.fromisoformat(utc).date()
    except ValueError:  # imported history may say nothing useful
        return datetime.now(UTC).date()


def _days(connection: Connection) -> dict[int, date]:
    rows = connection.execute(select(NIGHTS.c.run, RUNS.c.utc).join(RUNS, RUNS.c.id == NIGHTS.c.run))
    return {row.run: _day(row.utc) for row in rows}


def _source(before: RunRow | None, stream: _Stream) -> str:
    name = f"{stream.suite or 'the suite'} on {stream.branch or 'no branch'}"
    return f"{name}, last night {before.run_id}" if before else f"{name}, whose first night this is"


def _store_roll_ups(
    connection: Connection,
    number: int,
    cases: Sequence[CaseRow],
    seen: Mapping[Case, Seen],
    names: _Names,
    limits: Thresholds,
) -> None:
    keys = {case.column: names.numbers.column(case.compiler, case.backend) for case in cases}
    columns = column_values(cases, seen, limits.margin_near_limit)
    insert_new(connection, COLUMN_NIGHTS, [{"run": number, "col": keys[c], **row} for c, row in columns.items()])
    strips = strip_values(cases, seen, names.numbers.tests)
    insert_new(connection, STRIPS, [{"run": number, "col": keys[c], **row} for c, row in strips.items()])


def _compile_times(
    connection: Connection, stream: _Stream, number: int, run: RunRow, night: NightSeen, limits: Thresholds
) -> list[GateFinding]:
    if run.cache != "cold" or run.partial:
        return []
    query = _of_columns(stream, number, limits).where(RUNS.c.cache == "cold", COLUMN_NIGHTS.c.other_cpu > 0)
    series: dict[str, list[RatioPoint]] = {}
    for row in reversed(list(connection.execute(query))):
        if row.compiler == "torch" or row.paired_cpu <= 0:
            continue  # the ratio of the other compiler is the same number upside down
        point = RatioPoint(row.run, row.paired_cpu / row.other_cpu, f"{row.torch} {row.machine}")
        series.setdefault(f"{row.compiler}:{row.backend}", []).append(point)
    findings = []
    for column, points in series.items():
        alarm = compile_time_alarm(points, limits) if points[-1].run == number else None
        if alarm is None:
            continue
        text = f"compiling takes {alarm.factor - 1:+.0%} against the other compiler since {night.day_of(alarm.since)}"
        entry = night.accepted.holding(COMPILE_TIME, "", column)
        if entry is not None:
            text = f"{text}; accepted until {entry.expires} ({entry.issue})"
        findings.append(GateFinding(ACCEPTED if entry else AMBER, "compile time", text, "", column))
    return findings


def _of_columns(stream: _Stream, number: int, limits: Thresholds) -> Select[Any]:
    """Return the query for what the columns of the last whole nights took, the newest night first."""
    measured = (COLUMN_NIGHTS.c[name] for name in ("run", "paired_cpu", "other_cpu", "peak_bytes", "cases"))
    return (
        select(*measured, RUNS.c.torch, RUNS.c.machine, COLUMNS.c.compiler, COLUMNS.c.backend)
        .join(RUNS, RUNS.c.id == COLUMN_NIGHTS.c.run)
        .join(COLUMNS, COLUMNS.c.id == COLUMN_NIGHTS.c.col)
        .outerjoin(NIGHTS, NIGHTS.c.run == COLUMN_NIGHTS.c.run)
        .where((NIGHTS.c.stream == stream.number) | (COLUMN_NIGHTS.c.run == number), COLUMN_NIGHTS.c.run <= number)
        .where(RUNS.c.void == "", RUNS.c.partial == "")
        .order_by(COLUMN_NIGHTS.c.run.desc())
        .limit(12 * (limits.compile_time_reference + limits.compile_time_split_window))
    )


def _memory(
    connection: Connection, stream: _Stream, number: int, run: RunRow, night: NightSeen, limits: Thresholds
) -> list[GateFinding]:
    """Return a finding for each column whose tests take more memory: as for compile time, with limits of its own."""
    if run.partial:
        return []
    own = replace(limits, compile_time_worse=limits.memory_worse, compile_time_least_sigma=limits.memory_least_sigma)
    series: dict[str, list[RatioPoint]] = {}
    query = _of_columns(stream, number, limits).where(COLUMN_NIGHTS.c.peak_bytes > 0, COLUMN_NIGHTS.c.cases > 0)
    for row in reversed(list(connection.execute(query))):
        point = RatioPoint(row.run, row.peak_bytes / row.cases, f"{row.torch} {row.machine}")
        series.setdefault(f"{row.compiler}:{row.backend}", []).append(point)
    findings = []
    for column, points in series.items():
        alarm = compile_time_alarm(points, own) if points[-1].run == number else None
        if alarm is not None:
            text = f"tests take {alarm.factor - 1:+.0%} memory at their peaks since {night.day_of(alarm.since)}"
            findings.append(GateFinding(AMBER, "memory", text, "", column))
    return findings


def _store_memories(
    connection: Connection, stream: _Stream, memories: Mapping[Case, CaseMemory], names: _Names
) -> None:
    values = [
        {"stream": stream.number} | names.key(case) | {name: getattr(memory, name) for name in _MEMORY_FIELDS}
        for case, memory in memories.items()
    ]
    replace_rows(connection, CASE_STATES, values)


def _store_faults(
    connection: Connection,
    stream: _Stream,
    run: RunRow,
    night: NightSeen,
    judged: NightJudgement,
    memories: Mapping[Case, CaseMemory],
    names: _Names,
) -> None:
    """Open faults for cases that broke, add those that joined, and close faults of which no case is broken."""
    open_faults = _open_faults(connection, stream, names)
    of_case = {case: fault for fault, cases in open_faults.items() for case in cases}
    broken = {case for case, memory in memories.items() if memory.state in _BROKEN}
    fresh = {case: memories[case].cause for case in broken if case not in of_case and case in night.seen}
    for key, cases in fault_groups(fresh, night.sizes).items():
        joined = _joined(key, cases, judged, of_case)
        if joined is None:
            joined = _new_fault(connection, stream, run, night, key, cases)
        open_faults.setdefault(joined, set()).update(cases)
        insert_new(connection, FAULT_CASES, [{"fault": joined, **names.key(case)} for case in cases])
    for fault, members in open_faults.items():
        still = members & broken
        values = {"last": night.run} if still else {"fixed": night.run}
        connection.execute(update(FAULTS).where(FAULTS.c.fault == fault).values(**values))


def _open_faults(connection: Connection, stream: _Stream, names: _Names) -> dict[int, set[Case]]:
    query = (
        select(FAULT_CASES)
        .join(FAULTS, FAULTS.c.fault == FAULT_CASES.c.fault)
        .where(FAULTS.c.stream == stream.number, FAULTS.c.fixed == 0)
    )
    faults: dict[int, set[Case]] = {}
    for row in connection.execute(query):
        faults.setdefault(row.fault, set()).add(names.case(row))
    return faults


def _joined(key: FaultKey, cases: Sequence[Case], judged: NightJudgement, of_case: Mapping[Case, int]) -> int | None:
    """Return the open fault that new cases belong to: one that a case of their group was lonely in the night before."""
    del key
    wanted = set(cases)
    for group in judged.faults.values():
        if wanted & set(group):
            known = [of_case[case] for case in group if case in of_case]
            if known:
                return min(known)
    return None


def _new_fault(
    connection: Connection, stream: _Stream, run: RunRow, night: NightSeen, key: FaultKey, cases: Sequence[Case]
) -> int:
    suspect = suspect_of(key, night.sizes, night.changed)
    text = "\0".join((stream.suite, stream.branch, run.run_id, repr(key), min(cases)[0]))
    fault = int.from_bytes(hashlib.blake2s(text.encode("utf-8", "backslashreplace"), digest_size=6).digest(), "big")
    tests = len({test for test, _ in cases})
    where = ", ".join(key.columns)
    word = _WORDS.get(key.mark, key.mark)
    title = f"{tests} test{'s' if tests != 1 else ''} {word} under {where}" + (f" ({key.aspect})" if key.aspect else "")
    values = {
        "fault": fault,
        "stream": stream.number,
        "first": night.run,
        "last": night.run,
        "fixed": 0,
        "mark": key.mark,
        "aspect": key.aspect,
        "stage": key.stage,
        "file": key.file,
        "suspect": suspect.name,
        "why": suspect.why,
        "title": title,
        "columns": key.columns,
        "changed": night.changed,
    }
    insert_new(connection, FAULTS, [values])
    return fault


_WORDS = {letter: word for word, (letter, _, _) in VERDICTS.items()} | {"F": "failed", "!": "in error"}


def _store_renames(connection: Connection, number: int, renamed: Mapping[str, str], names: _Names) -> None:
    values = [
        {"run": number, "test": names.numbers.test(new), "was": names.numbers.test(old), "why": "the same source"}
        for new, old in renamed.items()
    ]
    insert_new(connection, RENAMES, values)


def _store_findings(connection: Connection, number: int, findings: Sequence[GateFinding]) -> None:
    values = [
        {"run": number, "number": place, "level": each.level, "rule": each.rule, "test": each.test}
        | {"column_name": each.column, "text": each.text}
        for place, each in enumerate(findings)
    ]
    insert_new(connection, FINDINGS, values)


def _store_night(
    connection: Connection,
    number: int,
    stream: _Stream,
    night: NightSeen,
    judged: NightJudgement,
    memories: Mapping[Case, CaseMemory],
    report: GateReport,
) -> None:
    after = dict(memories) | dict(judged.memories)
    counts: Counter[str] = Counter(cases=len(night.seen), fixed=len(judged.fixed))
    for case, seen in night.seen.items():
        counts[_kind_of(seen, after.get(case), number)] += 1
    counts["missing"] = sum(f.level == INVALID and f.rule == "missing" for f in report.changes)
    counts["failing"] = counts["new"] + counts["still"]
    values = {name: counts[name] for name in NIGHT_COUNTS}
    row = {"run": number, "stream": stream.number, "verdict": report.verdict, "changed": night.changed}
    sentence = night_sentence(report, values)
    insert_new(connection, NIGHTS, [row | {"sentence": sentence} | values])


def _kind_of(seen: Seen, memory: CaseMemory | None, number: int) -> str:
    if seen.fate == NOT_JUDGED:
        return "skipped"
    if seen.fate not in (FAILED, CLEARED):
        return "good"
    if seen.outcome == "vacuous":
        return "vacuous"
    if memory is None:  # a void night: nobody knows yet
        return "new"
    if memory.state == FLAKY:
        return "flaky"
    return "new" if memory.since == number else "still"


def night_sentence(report: GateReport, counts: Mapping[str, int]) -> str:
    """Return what to say about a night in one line, from the findings and the counts of `NIGHT_COUNTS`."""
    if report.void:
        return report.void
    parts = []
    for name, words in (("new", "new failure"), ("still", "still failing"), ("flaky", "flaky"), ("missing", "missing")):
        if counts[name]:
            plural = "s" if name == "new" and counts[name] != 1 else ""
            parts.append(f"{counts[name]} {words}{plural}")
    rules = Counter(each.rule for each in report.changes if each.level in RED_LEVELS | {AMBER} and each.rule in _NAMED)
    parts += [f"{rule}: {count}" for rule, count in sorted(rules.items())]
    if counts["fixed"]:
        parts.append(f"{counts['fixed']} good again")
    said = ", ".join(parts) or "nothing changed"
    return f"{counts['good']} of {counts['cases']} cases good; {said}"


_NAMED = frozenset({"graph breaks", "nothing compiled", "compile time", "skipped", "flaky budget", "quarantine"})


def _report(connection: Connection, number: int) -> GateReport:
    rows = list(connection.execute(select(FINDINGS).where(FINDINGS.c.run == number).order_by(FINDINGS.c.number)))
    findings = tuple(GateFinding(row.level, row.rule, row.text, row.test, row.column_name) for row in rows)
    run = _run_row(connection, number)
    night = connection.execute(select(NIGHTS).where(NIGHTS.c.run == number)).one()
    stream = _Stream(night.stream, run.suite, run.branch)
    before = _night_before(connection, stream, number)
    return GateReport(findings, night.cases, _source(before, stream), run.void)
