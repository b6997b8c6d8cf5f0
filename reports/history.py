"""Questions about the past, answered from roll-ups: what a page over many nights shows.

Everything here reads; the numbers were computed once, by the code that gates (reports/nights.py).  Runs and tests are
named by their numbers; a column is written `compiler:backend`.  Each function is one or two queries whose cost does
not grow with the history but with what is asked for.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Row, Select, func, select

from plumbline.compiler.base.errors import UserError

from .gating.gate_findings import GateFinding
from .rows import RunRow, field_types
from .storage.database import Database
from .storage.schema import (
    CASE_STATES,
    COLUMN_COUNTS,
    COLUMN_MEASURES,
    COLUMN_NIGHTS,
    COLUMNS,
    DETAILS,
    FAULT_CASES,
    FAULTS,
    FINDINGS,
    NIGHT_COUNTS,
    NIGHTS,
    RENAMES,
    RESULTS,
    RUNS,
    STREAMS,
    STRIPS,
    TESTS,
)
from .strips import Strip, unpacked


@dataclass(frozen=True, slots=True)
class Stream:
    """A series of nights that are compared with each other: one suite on one branch."""

    number: int
    suite: str
    branch: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Night:
    """One night of a stream, as the gate judged it.

    number: of the run.  verdict: green, amber, red or void.  sentence: what to say about it in one line.
    changed: what was new since the night before: "plumbline", "torch", "your code", "python", "machine".
    cases = good + failing + vacuous + skipped + flaky; failing = new + still; missing: cases that vanished;
    fixed: cases that are good again.
    """

    number: int
    run: RunRow
    verdict: str
    sentence: str
    changed: tuple[str, ...]
    cases: int
    good: int
    failing: int
    new: int
    still: int
    flaky: int
    fixed: int
    vacuous: int
    skipped: int
    missing: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnNight:
    """One night of one column.

    weak: passed, but judged by less.  near_limit: cases with a margin above half of what is noise.
    compile_cpu: CPU seconds; paired_cpu and other_cpu: those of the tests that were good under both compilers, of
    this one and of the other with the same backend; their ratio is what the gate watches.
    peak_bytes: the tests' peaks of memory, added up.
    """

    run: int
    column: str
    cases: int
    good: int
    weak: int
    failing: int
    vacuous: int
    skipped: int
    graphs: int
    ops: int
    breaks: int
    recompiles: int
    near_limit: int
    compile_seconds: float
    compile_cpu: float
    paired_cpu: float
    other_cpu: float
    eager_seconds: float
    compiled_seconds: float
    worst_margin: float
    peak_bytes: float

    @property
    def compile_ratio(self) -> float | None:
        """Return compile time over the other compiler's, None where there is no other."""
        return self.paired_cpu / self.other_cpu if self.other_cpu > 0 and self.paired_cpu > 0 else None

    @property
    def run_ratio(self) -> float | None:
        """Return the compiled programs' seconds over eager's, None where nothing was timed."""
        return self.compiled_seconds / self.eager_seconds if self.eager_seconds > 0 else None


@dataclass(frozen=True, slots=True)
class KnownTest:
    """A test and its number, which is its position in strips, from 1."""

    number: int
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseState:
    """Where a case stands after the last night that judged it; states are listed in gating/case_memory.py.

    since: the run in which it took its state.  streak: failing nights in a row.  clean: nights without a failure.
    recent: bit n says that the first attempt failed n nights ago.  last_flaky, last_good, last_run: runs, 0 for never.
    outcome, verdict, margin, graphs, ops, breaks: as the last good night had them.  cause: letter, aspect and stage of
    its failure.
    """

    test: int
    test_name: str
    column: str
    state: str
    since: int
    streak: int
    clean: int
    recent: int
    rises: int
    last_flaky: int
    last_good: int
    last_run: int
    outcome: str
    verdict: str
    cause: str
    margin: float
    graphs: int
    ops: int
    breaks: int


@dataclass(frozen=True, slots=True, kw_only=True)
class NightlyFault:
    """Failing cases that began together and fail alike: one card on the page.

    fault: its number, the same after `rebuild`.  first, last: runs; fixed: the run that was good again, 0 while open.
    mark: letter of the verdict.  columns: where it fails.  suspect: "plumbline", "torch", "your code", "machine" or
    "unknown"; why: the reason in one sentence.  file: test file, for a fault of the user's code.
    """

    fault: int
    first: int
    last: int
    fixed: int
    mark: str
    aspect: str
    stage: str
    file: str
    suspect: str
    why: str
    title: str
    columns: tuple[str, ...]
    changed: tuple[str, ...]
    cases: int


@dataclass(frozen=True, slots=True)
class FaultCase:
    """A case of a fault: number and name of its test, its column."""

    test: int
    test_name: str
    column: str


@dataclass(frozen=True, slots=True)
class Rename:
    """A test that vanished, and the new one with the same source."""

    run: int
    test: str
    was: str
    why: str


@dataclass(frozen=True, slots=True)
class CaseNight:
    """One result of one case: a point of its history."""

    run: int
    column: str
    outcome: str
    verdict: str
    margin: float
    graphs: int
    ops: int
    breaks: int
    recompiles: int
    compile_seconds: float
    compile_cpu: float
    test_seconds: float
    eager_seconds: float
    compiled_seconds: float
    sentence: str


@dataclass(frozen=True, slots=True)
class CaseDifference:
    """A case that two runs answer differently; None on the side where it did not run."""

    test: int
    test_name: str
    column: str
    first: CaseNight | None
    second: CaseNight | None


def streams(store: Database) -> list[Stream]:
    """Return the series of nights, those with the newest night first."""
    newest = func.max(NIGHTS.c.run).label("newest")
    query = (
        select(STREAMS.c.id, STREAMS.c.suite, STREAMS.c.branch)
        .join(NIGHTS, NIGHTS.c.stream == STREAMS.c.id)
        .group_by(STREAMS.c.id, STREAMS.c.suite, STREAMS.c.branch)
        .order_by(newest.desc())
    )
    return [Stream(row.id, row.suite, row.branch) for row in _rows(store, query)]


def find_stream(store: Database, suite: str | None = None, branch: str | None = None) -> Stream:
    """Return the stream of that suite and branch, by default the one with the newest night.

    Raises UserError when there is none.
    """
    known = streams(store)
    for stream in known:
        if suite in (None, stream.suite) and branch in (None, stream.branch):
            return stream
    there = ", ".join(f"{stream.suite or '(no suite)'} on {stream.branch or '(no branch)'}" for stream in known[:5])
    hint = f"there are: {there}" if known else "run plumbline nightly first"
    raise UserError("no nights of this suite and branch", where=store.place, hint=hint)


def nights(store: Database, stream: Stream, limit: int = 60, *, until: int | None = None) -> list[Night]:
    """Return the last nights of a stream, oldest first; until: the run to end with."""
    columns = [RUNS.c[name] for name in field_types(RunRow)]
    query = select(NIGHTS, *columns).join(RUNS, RUNS.c.id == NIGHTS.c.run).where(NIGHTS.c.stream == stream.number)
    if until is not None:
        query = query.where(NIGHTS.c.run <= until)
    rows = _rows(store, query.order_by(NIGHTS.c.run.desc()).limit(limit))
    return [_night(row) for row in reversed(rows)]


def _night(row: Row[Any]) -> Night:
    named = row._mapping
    run = RunRow(**{name: named[RUNS.c[name]] for name in field_types(RunRow)})
    counts = {name: named[name] for name in NIGHT_COUNTS}
    return Night(
        number=row.run, run=run, verdict=row.verdict, sentence=row.sentence, changed=row.changed or (), **counts
    )


def column_nights(store: Database, runs: Sequence[int]) -> list[ColumnNight]:
    """Return what each column did in each of these runs, in the order of runs."""
    query = _with_column(select(COLUMN_NIGHTS), COLUMN_NIGHTS).where(_within(COLUMN_NIGHTS.c.run, runs))
    names = (*COLUMN_COUNTS, "near_limit", *COLUMN_MEASURES)
    chosen = set(runs)
    return [
        ColumnNight(run=row.run, column=_label(row), **{name: row._mapping[name] for name in names})
        for row in _rows(store, query.order_by(COLUMN_NIGHTS.c.run, COLUMN_NIGHTS.c.col))
        if row.run in chosen
    ]


def strips(store: Database, runs: Sequence[int], columns: Sequence[str] | None = None) -> list[Strip]:
    """Return the strips of these runs, in their order; columns: only these."""
    query = _with_column(select(STRIPS), STRIPS).where(_within(STRIPS.c.run, runs))
    chosen = set(runs)
    return [
        Strip(row.run, _label(row), unpacked(row.marks), unpacked(row.margins), unpacked(row.seconds))
        for row in _rows(store, query.order_by(STRIPS.c.run, STRIPS.c.col))
        if row.run in chosen and (columns is None or _label(row) in columns)
    ]


def tests_of(store: Database, stream: Stream) -> list[KnownTest]:
    """Return the tests that a stream has a state for, by name."""
    mine = select(CASE_STATES.c.test).where(CASE_STATES.c.stream == stream.number).distinct()
    query = select(TESTS.c.id, TESTS.c.name).where(TESTS.c.id.in_(mine)).order_by(TESTS.c.name)
    return [KnownTest(row.id, row.name) for row in _rows(store, query)]


def states(
    store: Database,
    stream: Stream,
    *,
    wanted: Iterable[str] | None = None,
    test: int | None = None,
    limit: int | None = None,
    offset: int = 0,
) -> list[CaseState]:
    """Return the states of the cases of a stream, by test and column; wanted: only these states."""
    query = _with_column(select(CASE_STATES, TESTS.c.name.label("test_name")), CASE_STATES)
    query = query.join(TESTS, TESTS.c.id == CASE_STATES.c.test).where(CASE_STATES.c.stream == stream.number)
    if wanted is not None:
        query = query.where(CASE_STATES.c.state.in_(list(wanted)))
    if test is not None:
        query = query.where(CASE_STATES.c.test == test)
    query = query.order_by(CASE_STATES.c.test, CASE_STATES.c.col).limit(limit).offset(offset)
    names = [name for name in CaseState.__slots__ if name != "column"]
    return [
        CaseState(column=_label(row), **{name: row._mapping[name] for name in names}) for row in _rows(store, query)
    ]


def faults(
    store: Database, stream: Stream, *, only_open: bool = True, limit: int = 100, offset: int = 0
) -> list[NightlyFault]:
    """Return the faults of a stream, the newest first."""
    query = _faults().where(FAULTS.c.stream == stream.number)
    if only_open:
        query = query.where(FAULTS.c.fixed == 0)
    query = query.order_by(FAULTS.c.first.desc(), FAULTS.c.fault).limit(limit).offset(offset)
    return [_fault(row) for row in _rows(store, query)]


def fault(store: Database, number: int) -> tuple[NightlyFault, list[FaultCase]]:
    """Return one fault and its cases; UserError when there is none of that number."""
    found = _rows(store, _faults().where(FAULTS.c.fault == number))
    if not found:
        raise UserError(f"no fault {number}", where=store.place, hint="take a number from plumbline gate")
    query = _with_column(select(FAULT_CASES, TESTS.c.name.label("test_name")), FAULT_CASES)
    query = query.join(TESTS, TESTS.c.id == FAULT_CASES.c.test).where(FAULT_CASES.c.fault == number)
    query = query.order_by(TESTS.c.name, FAULT_CASES.c.col)
    cases = [FaultCase(row.test, row.test_name, _label(row)) for row in _rows(store, query)]
    return _fault(found[0]), cases


def _faults() -> Select[Any]:
    counted = select(func.count()).where(FAULT_CASES.c.fault == FAULTS.c.fault).scalar_subquery()
    return select(FAULTS, counted.label("cases"))


def _fault(row: Row[Any]) -> NightlyFault:
    named = row._mapping
    fields = {name: named[name] for name in NightlyFault.__slots__ if name not in ("columns", "changed")}
    return NightlyFault(columns=named["columns"] or (), changed=named["changed"] or (), **fields)


def findings(store: Database, run: int) -> list[GateFinding]:
    """Return what the gate said about a night, the serious first."""
    query = select(FINDINGS).where(FINDINGS.c.run == run).order_by(FINDINGS.c.number)
    return [GateFinding(row.level, row.rule, row.text, row.test, row.column_name) for row in _rows(store, query)]


def renames(store: Database, stream: Stream, limit: int = 100) -> list[Rename]:
    """Return the tests that were renamed, the newest first."""
    was = TESTS.alias()
    query = (
        select(RENAMES.c.run, RENAMES.c.why, TESTS.c.name, was.c.name.label("old_name"))
        .join(TESTS, TESTS.c.id == RENAMES.c.test)
        .join(was, was.c.id == RENAMES.c.was)
        .join(NIGHTS, NIGHTS.c.run == RENAMES.c.run)
        .where(NIGHTS.c.stream == stream.number)
        .order_by(RENAMES.c.run.desc(), TESTS.c.name)
        .limit(limit)
    )
    return [Rename(row.run, row.name, row.old_name, row.why) for row in _rows(store, query)]


_POINT = ("outcome", "verdict", "margin", "graphs", "ops", "breaks", "recompiles", "compile_seconds", "compile_cpu")
_TIMES = ("test_seconds", "eager_seconds", "compiled_seconds")


def case_history(
    store: Database, test: int, stream: Stream | None = None, limit: int = 60, column: str | None = None
) -> list[CaseNight]:
    """Return the last results of one test under every column, or under one, oldest first.

    limit: of runs.  stream: only its nights; by default every run.
    """
    runs = select(RESULTS.c.run).where(RESULTS.c.test == test).distinct()
    if stream is not None:
        runs = runs.join(NIGHTS, NIGHTS.c.run == RESULTS.c.run).where(NIGHTS.c.stream == stream.number)
    newest = runs.order_by(RESULTS.c.run.desc()).limit(limit).subquery()
    query = _points().where(RESULTS.c.test == test, RESULTS.c.run.in_(select(newest.c.run)))
    found = [_point(row) for row in _rows(store, query.order_by(RESULTS.c.run, RESULTS.c.col))]
    return [point for point in found if column in (None, point.column)]


def _points() -> Select[Any]:
    same = (DETAILS.c.run == RESULTS.c.run) & (DETAILS.c.test == RESULTS.c.test) & (DETAILS.c.col == RESULTS.c.col)
    query = select(RESULTS.c.run, RESULTS.c.test, *(RESULTS.c[name] for name in (*_POINT, *_TIMES)), DETAILS.c.sentence)
    return _with_column(query, RESULTS).outerjoin(DETAILS, same)


def _point(row: Row[Any]) -> CaseNight:
    values = {name: row._mapping[name] for name in (*_POINT, *_TIMES)}
    return CaseNight(run=row.run, column=_label(row), sentence=row.sentence or "", **values)


def compare_runs(store: Database, first: int, second: int) -> list[CaseDifference]:
    """Return the cases in which two runs differ: outcome, verdict, margin, graphs, operations, breaks, recompiles."""
    with store.transaction() as connection:
        sides = [_by_case(connection, run) for run in (first, second)]
        names = {row.id: row.name for row in connection.execute(select(TESTS.c.id, TESTS.c.name))}
    differing = []
    for key in sorted(sides[0].keys() | sides[1].keys()):
        one, two = sides[0].get(key), sides[1].get(key)
        if one is None or two is None or _judged(one) != _judged(two):
            differing.append(CaseDifference(key[0], names[key[0]], key[1], one, two))
    return differing


def _by_case(connection: Connection, run: int) -> dict[tuple[int, str], CaseNight]:
    rows = connection.execute(_points().where(RESULTS.c.run == run))
    return {(row.test, _label(row)): _point(row) for row in rows}


def _judged(point: CaseNight) -> tuple[object, ...]:
    counts = (point.graphs, point.ops, point.breaks, point.recompiles)
    return point.outcome, point.verdict, repr(point.margin), *counts


def _with_column(query: Select[Any], table: Any) -> Select[Any]:
    return query.add_columns(COLUMNS.c.compiler, COLUMNS.c.backend).join(COLUMNS, COLUMNS.c.id == table.c.col)


def _within(column: Any, runs: Sequence[int]) -> Any:
    if len(runs) <= _LISTED:
        return column.in_(list(runs))
    # Runs between that belong to other streams are left out afterwards.
    return column.between(min(runs, default=0), max(runs, default=0))


_LISTED = 500  # SQLite takes 999 values in one statement


def _label(row: Row[Any]) -> str:
    return f"{row.compiler}:{row.backend}"


def _rows(store: Database, query: Select[Any]) -> list[Row[Any]]:
    with store.transaction() as connection:
        return list(connection.execute(query))
