"""One run judged as a change: is it worse than its baseline?  For pull requests and for a developer's own runs.

A night is judged by what the product is (night_rules.py: a fault stays red); a change by what it adds: what fails in
the baseline too is said, and not counted.  Nothing is learnt from it.
"""

from collections.abc import Iterable, Mapping

from .acceptance import BREAKS, FAILURE, Accepted
from .case_memory import (
    CLEARED,
    FAILED,
    FAILING,
    FLAKY,
    INTERMITTENT,
    LONELY,
    NEW,
    PASSED,
    VANISHED,
    CaseMemory,
    Seen,
)
from .gate_findings import ACCEPTED, IMPROVEMENT, INVALID, REGRESSION, STILL, WARNING, Case, GateFinding
from .gate_findings import FLAKY as FLAKY_LEVEL
from .number_rules import numbers_of, said_of
from .thresholds import Thresholds

_BROKEN = frozenset({LONELY, NEW, FAILING, INTERMITTENT})


def judge_change(
    memories: Mapping[Case, CaseMemory],
    seen: Mapping[Case, Seen],
    accepted: Accepted,
    limits: Thresholds,
    *,
    whole: bool = True,
) -> list[GateFinding]:
    """Return what a run adds to its baseline; whole: every test had its turn, so that what is absent is missing."""
    findings = [
        _accepted(finding, accepted)
        for case, now in seen.items()
        for finding in _of_case(case, now, memories.get(case), limits)
    ]
    if whole:
        for case, then in memories.items():
            if case not in seen and then.state != VANISHED:
                hint = "if it was removed or renamed on purpose, write the baseline again"
                text = f"missing now, {said_of(then)} in the baseline; {hint}"
                findings.append(GateFinding(INVALID, "missing", text, *case))
    return findings


def _of_case(case: Case, now: Seen, then: CaseMemory | None, limits: Thresholds) -> Iterable[GateFinding]:
    if then is None or then.state == VANISHED:
        yield _new(case, now)
        return
    for level, rule, text in numbers_of(now, then, limits):
        yield GateFinding(level, rule, text, *case)
    if now.fate == CLEARED:
        yield GateFinding(FLAKY_LEVEL, "flaky", f"{now.text}; passed a retry; not counted", *case)
    elif now.fate == FAILED:
        yield _failing(case, now, then)
    elif now.fate == PASSED and then.state in _BROKEN:
        yield GateFinding(IMPROVEMENT, "passes", f"passes now; was {said_of(then)}", *case)


def _new(case: Case, now: Seen) -> GateFinding:
    if now.fate == FAILED:
        return GateFinding(REGRESSION, "fails", f"new, and {now.text}", *case)
    if now.fate == CLEARED:
        return GateFinding(FLAKY_LEVEL, "flaky", f"new, and {now.text}; passed a retry", *case)
    return GateFinding(IMPROVEMENT, "new", f"new, {now.outcome}", *case)


def _failing(case: Case, now: Seen, then: CaseMemory) -> GateFinding:
    if then.state == FLAKY:
        return GateFinding(FLAKY_LEVEL, "flaky", f"{now.text}; flaky in the baseline too; not counted", *case)
    if then.state not in _BROKEN:
        return GateFinding(REGRESSION, "fails", f"{now.text}; was {said_of(then)}", *case)
    if then.outcome == "vacuous" and now.outcome != "vacuous":
        return GateFinding(REGRESSION, "fails", f"{now.text}; was vacuous", *case)
    if _cause_then(then) != _cause_now(now, then):
        return GateFinding(WARNING, "fails otherwise", f"still fails, but as {now.text}; was {said_of(then)}", *case)
    return GateFinding(STILL, "fails", f"{now.text}; fails in the baseline too", *case)


def _cause_then(then: CaseMemory) -> object:
    return then.cause or (then.outcome, then.verdict)


def _cause_now(now: Seen, then: CaseMemory) -> object:
    return now.cause if then.cause else (now.outcome, now.verdict)


def _accepted(finding: GateFinding, accepted: Accepted) -> GateFinding:
    what = {"fails": FAILURE, "graph breaks": BREAKS}.get(finding.rule)
    if what is None or finding.level != REGRESSION:
        return finding
    case = (finding.test, finding.column)
    entry = accepted.holding(what, *case)
    if entry is not None:
        text = f"{finding.text}; accepted until {entry.expires} ({entry.issue})"
        return GateFinding(ACCEPTED, finding.rule, text, *case)
    expired = accepted.expired(what, *case)
    if expired is None:
        return finding
    text = f"{finding.text}; it was accepted until {expired.expires}, which is over ({expired.issue})"
    return GateFinding(REGRESSION, finding.rule, text, *case)
