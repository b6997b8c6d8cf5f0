"""One night judged: from what is remembered of every case and what the night saw, to findings and new memories.

This is the whole gate of a nightly run; the database around it is reports/nights.py, and the simulation in
benchmarks/gate_simulation.py calls the same function 10,000 times.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import date, timedelta

from .acceptance import BREAKS, FAILURE, FLAKY_CASE, Accepted
from .case_memory import (
    CLEARED,
    FAILED,
    FAILING,
    FLAKY,
    GOOD,
    INTERMITTENT,
    LONELY,
    NEW,
    NOT_JUDGED,
    PASSED,
    VANISHED,
    CaseMemory,
    Seen,
    after_cleared,
    after_failing,
    after_passing,
    with_numbers,
)
from .fault_groups import FaultKey, fault_groups
from .gate_findings import ACCEPTED, AMBER, IMPROVEMENT, INVALID, REGRESSION, WARNING, Case, GateFinding, in_order
from .gate_findings import FAILING as STILL_FAILING
from .gate_findings import FLAKY as FLAKY_LEVEL
from .number_rules import numbers_of, said_of
from .thresholds import Thresholds


@dataclass(frozen=True, slots=True, kw_only=True)
class NightSeen:
    """What one night saw.

    run: its number.  seen: cases; those that are not listed did `unlisted`, or did not run where that is None.
    sizes: how many cases each column has.  changed: what is new since the night before.  whole: every test had its
    turn, so that what is absent has vanished.  rerun: this night repeats a void one, and is not void itself.
    renamed: new test -> old one.  day_of: the day of a run, by its number.
    """

    run: int
    seen: Mapping[Case, Seen]
    sizes: Mapping[str, int]
    accepted: Accepted
    day_of: Callable[[int], date]
    changed: tuple[str, ...] = ()
    whole: bool = True
    rerun: bool = False
    unlisted: Seen | None = None
    renamed: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class NightJudgement:
    """The findings of a night, the memories that changed, the new faults, and why the night is void, else ""."""

    findings: tuple[GateFinding, ...]
    memories: Mapping[Case, CaseMemory]
    faults: Mapping[FaultKey, tuple[Case, ...]]
    fixed: tuple[Case, ...] = ()
    void: str = ""


def judge_night(memories: Mapping[Case, CaseMemory], night: NightSeen, limits: Thresholds) -> NightJudgement:
    """Return what a night means; memories: of every case that was ever judged in this stream."""
    void = "" if night.rerun else void_reason(memories, night, limits)
    if void:
        return NightJudgement((), {}, {}, void=void)
    groups = fault_groups(_new_failures(memories, night), night.sizes)
    clustered = {case for cases in groups.values() if len(cases) >= limits.fault_red_at_once for case in cases}
    changed: dict[Case, CaseMemory] = {}
    findings: list[GateFinding] = []
    fixed: list[Case] = []
    for case in _concerned(memories, night):
        before = memories.get(case)
        seen = night.seen.get(case, night.unlisted)
        if seen is None:
            after, said = _absent(case, before, night, limits)
        else:
            after, said = _judged(case, before, seen, night, limits, clustered=case in clustered)
        findings += said
        if after != before and after is not None:
            changed[case] = after
        if before is not None and after is not None and _broken(before) and after.state in (GOOD, FLAKY):
            fixed.append(case)
    findings += _flaky_budget(memories, changed, night, limits)
    return NightJudgement(in_order(findings), changed, groups, tuple(fixed))


def void_reason(memories: Mapping[Case, CaseMemory], night: NightSeen, limits: Thresholds) -> str:
    """Return why a night teaches nothing: so much broke at once that the machine did; "" for an ordinary night."""
    crashing: dict[str, int] = {}
    failing: dict[str, int] = {}
    for case, seen in night.seen.items():
        before = memories.get(case)
        if seen.fate not in (FAILED, CLEARED) or before is None or before.state != GOOD:
            continue
        crashing[case[1]] = crashing.get(case[1], 0) + seen.crash
        failing[case[1]] = failing.get(case[1], 0) + 1
    for column, size in sorted(night.sizes.items()):
        for counts, share, what in ((crashing, limits.void_crashing, "crash"), (failing, limits.void_failing, "fail")):
            count = counts.get(column, 0)
            if count >= limits.void_least and count > share * size:
                return f"void night: {count} of {size} cases of {column} {what} that were good; run it once more"
    return ""


def _new_failures(memories: Mapping[Case, CaseMemory], night: NightSeen) -> dict[Case, str]:
    """Return cases that fail every attempt and did not before, with lonely ones of the night before."""
    states = (GOOD, LONELY, VANISHED)
    return {
        case: seen.cause
        for case, seen in night.seen.items()
        if seen.fate == FAILED and ((before := memories.get(case)) is None or before.state in states)
    }


def _concerned(memories: Mapping[Case, CaseMemory], night: NightSeen) -> Iterable[Case]:
    yield from night.seen
    if night.unlisted is not None:
        yield from (case for case, memory in memories.items() if memory.lively and case not in night.seen)
    elif night.whole:
        yield from (case for case in memories if case not in night.seen)


def _broken(memory: CaseMemory) -> bool:
    return memory.state in (NEW, LONELY, FAILING, INTERMITTENT)


def _absent(
    case: Case, before: CaseMemory | None, night: NightSeen, limits: Thresholds
) -> tuple[CaseMemory | None, list[GateFinding]]:
    assert before is not None  # else nobody would know of it
    test, _ = case
    new_name = next((new for new, old in night.renamed.items() if old == test), None)
    if new_name is not None:
        said = f"renamed to {new_name}, whose source is the same; its history goes on there"
        return replace(before, state=VANISHED, since=night.run, streak=limits.counts_shown_missing), [
            _finding(WARNING, "renamed", said, case)
        ]
    if before.state != VANISHED:
        text = f"missing now, {said_of(before)} on its last night; if it was removed on purpose, this is said once"
        return replace(before, state=VANISHED, since=night.run, streak=0), [_finding(INVALID, "missing", text, case)]
    absent = before.streak + 1
    if absent >= limits.counts_shown_missing:
        return before, []
    return replace(before, streak=absent), [_finding(AMBER, "missing", f"missing for {absent + 1} nights", case)]


def _judged(
    case: Case, before: CaseMemory | None, seen: Seen, night: NightSeen, limits: Thresholds, *, clustered: bool
) -> tuple[CaseMemory, list[GateFinding]]:
    known = before is not None
    memory = before or CaseMemory(since=night.run)
    if memory.state == VANISHED:
        memory = replace(memory, state=GOOD, streak=0, since=night.run)
    accepts_breaks = night.accepted.holding(BREAKS, *case) is not None
    findings = [
        _numbers_finding(each, case, accepted=accepts_breaks)
        for each in (numbers_of(seen, memory, limits) if known else ())
    ]
    if seen.fate == PASSED:
        after = after_passing(memory, night.run, limits, nothing_changed=not night.changed)
    elif seen.fate == CLEARED:
        after = after_cleared(memory, seen, night.run, limits)
    elif seen.fate == FAILED:
        after = after_failing(memory, seen, night.run, limits, clustered=clustered)
    else:
        after = _unjudged(memory, seen, night.run)
    findings += _state_findings(case, before, memory, after, seen, night, limits)
    return with_numbers(after, seen, night.run, accepted_breaks=accepts_breaks), findings


def _unjudged(memory: CaseMemory, seen: Seen, run: int) -> CaseMemory:
    # A mark with a reason is an acceptance in the code itself; a skip hides a failure, which stays what it was.
    if seen.outcome == "xfailed" and memory.state != GOOD:
        return replace(memory, state=GOOD, since=run, streak=0)
    return memory


def _numbers_finding(said: tuple[str, str, str], case: Case, *, accepted: bool) -> GateFinding:
    level, rule, text = said
    if accepted and rule == "graph breaks" and level == REGRESSION:
        level = ACCEPTED
    return _finding(level, rule, text, case)


def _state_findings(
    case: Case,
    first_memory: CaseMemory | None,
    before: CaseMemory,
    after: CaseMemory,
    seen: Seen,
    night: NightSeen,
    limits: Thresholds,
) -> list[GateFinding]:
    failing = seen.fate in (FAILED, CLEARED)
    if after.state == FLAKY:
        return _flaky_findings(case, before, after, seen, night, limits) if failing else []
    if not _broken(after):
        return [_finding(IMPROVEMENT, "passes", "passes now", case)] if _broken(before) and seen.fate == PASSED else []
    level, rule, text = _broken_words(first_memory, before, after, seen, night)
    entry = night.accepted.holding(FLAKY_CASE if after.state == INTERMITTENT else FAILURE, *case)
    entry = entry or night.accepted.holding(FAILURE, *case)
    if entry is not None:
        return [_finding(ACCEPTED, rule, f"{text}; accepted until {entry.expires} ({entry.issue})", case)]
    expired = night.accepted.expired(FAILURE, *case) or night.accepted.expired(FLAKY_CASE, *case)
    if expired is not None:
        text = f"{text}; it was accepted until {expired.expires}, which is over ({expired.issue})"
    return [_finding(level, rule, text, case)]


def _broken_words(
    first_memory: CaseMemory | None, before: CaseMemory, after: CaseMemory, seen: Seen, night: NightSeen
) -> tuple[str, str, str]:
    since = night.day_of(after.since)
    said = seen.text or "failing"
    tried = f" in all {seen.attempts} attempts" if seen.attempts > 1 else ""
    if seen.fate in (PASSED, CLEARED, NOT_JUDGED):  # tonight it got through, but nobody has repaired it
        how = {PASSED: "passed tonight", CLEARED: f"{said}; passed a retry", NOT_JUDGED: f"{seen.outcome} tonight"}
        if after.state == INTERMITTENT and before.state != INTERMITTENT:
            return REGRESSION, "intermittent", f"fails often and did not before: {how[seen.fate]}"
        level = AMBER if seen.fate == PASSED else STILL_FAILING
        return level, after.state, f"{after.state} since {since}: {how[seen.fate]}"
    if after.state == LONELY:
        new = "new, and " if first_memory is None else ""
        return AMBER, "lonely", f"{new}{said}{tried}; alone of its kind, so the next night decides"
    if after.state == NEW:
        new = "new, and " if first_memory is None else ""
        was = "" if first_memory is None else f"; was {said_of(before)}"
        return REGRESSION, "fails", f"{new}{said}{tried}{was}"
    if after.state == INTERMITTENT and before.state != INTERMITTENT:
        return REGRESSION, "intermittent", f"fails often and did not before: {said}{tried}"
    if before.state == LONELY:
        return REGRESSION, "fails", f"{said}{tried}, on the second night; was {said_of(before)}"
    if before.state == FLAKY:
        return REGRESSION, "fails", f"{said}{tried}, {after.streak} nights running; was flaky"
    return STILL_FAILING, after.state, f"{said}{tried}; {after.state} since {since}"


def _flaky_findings(
    case: Case, before: CaseMemory, after: CaseMemory, seen: Seen, night: NightSeen, limits: Thresholds
) -> list[GateFinding]:
    how = "passed a retry" if seen.fate == CLEARED else f"failed all {seen.attempts} attempts"
    began = "flaky now" if before.state != FLAKY else "flaky"
    text = f"{began}: {seen.text}; {how}; not counted"
    entry = night.accepted.holding(FLAKY_CASE, *case)
    if entry is not None:
        return [_finding(FLAKY_LEVEL, "flaky", f"{text} until {entry.expires} ({entry.issue})", case)]
    expired = night.accepted.expired(FLAKY_CASE, *case)
    if expired is not None:
        over = f"its quarantine ended on {expired.expires} ({expired.issue})"
        return [_finding(REGRESSION, "quarantine", f"{began}: {seen.text}; {how}; {over}", case)]
    age = night.accepted.day - night.day_of(after.since)
    if age > timedelta(days=limits.flaky_quarantine):
        text = f"{began} for {age.days} days: {seen.text}; {how}; repair it, or accept it by name"
        return [_finding(AMBER, "quarantine", text, case)]
    return [_finding(FLAKY_LEVEL, "flaky", text, case)]


def _flaky_budget(
    memories: Mapping[Case, CaseMemory], changed: Mapping[Case, CaseMemory], night: NightSeen, limits: Thresholds
) -> list[GateFinding]:
    flaky = {case for case, memory in memories.items() if memory.state == FLAKY} - changed.keys()
    count = len(flaky) + sum(memory.state == FLAKY for memory in changed.values())
    cases = sum(night.sizes.values())
    if not night.whole or count <= max(limits.flaky_least_allowed, limits.flaky_share_allowed * cases):
        return []
    text = f"{count} of {cases} cases are flaky, more than {limits.flaky_share_allowed:.0%}: repair some"
    return [GateFinding(REGRESSION, "flaky budget", text)]


def _finding(level: str, rule: str, text: str, case: Case) -> GateFinding:
    return GateFinding(level, rule, text, *case)
