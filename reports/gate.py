"""The gate: is a run good enough?

A nightly run is judged with the state of every case (reports/nights.py).  Any other run is compared with a baseline: a
file, an earlier run, or the state of a branch.  Red: a regression, or a comparison that says nothing.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime

from .baseline import Baseline
from .gating.acceptance import Acceptance, Accepted
from .gating.case_memory import Seen, seen_of
from .gating.change_rules import judge_change
from .gating.gate_findings import INVALID, Case, GateFinding, GateReport, in_order
from .gating.thresholds import Thresholds, default_thresholds
from .rows import CaseRow, RunRow


def compare(
    run: RunRow,
    cases: Sequence[CaseRow],
    baseline: Baseline,
    attempts: Iterable[CaseRow] = (),
    accepted: Sequence[Acceptance] = (),
    limits: Thresholds | None = None,
) -> GateReport:
    """Compare the cases of a run with a baseline; attempts: its retries.

    A run in which not every test had its turn is judged on what it ran.
    """
    seen = _seen(cases, attempts, rounded=baseline.rounded)
    memories = baseline.memories
    today = Accepted(tuple(accepted), datetime.now(UTC).date())
    findings = [
        *_whole_run(run, cases, baseline),
        *judge_change(memories, seen, today, limits or default_thresholds(), whole=run.complete and not run.partial),
    ]
    return GateReport(in_order(findings), len(seen.keys() & memories.keys()), baseline.source)


def mismatch_report(text: str, source: str) -> GateReport:
    """Return the report of a comparison that cannot be made because the schemas differ."""
    return GateReport((GateFinding(INVALID, "schema", text),), 0, source)


def _seen(cases: Sequence[CaseRow], attempts: Iterable[CaseRow], *, rounded: bool) -> Mapping[Case, Seen]:
    retries: dict[Case, list[CaseRow]] = {}
    for attempt in attempts:
        retries.setdefault((attempt.test, attempt.column), []).append(attempt)
    seen: dict[Case, Seen] = {}
    for row in cases:
        case = (row.test, row.column)
        if case not in seen or row.failing:  # among duplicates, the one that fails
            seen[case] = seen_of(row, retries.get(case, ()))
    if rounded:  # a file keeps two digits of a margin
        seen = {case: replace(now, margin=float(f"{now.margin:.2g}")) for case, now in seen.items()}
    return seen


def _whole_run(run: RunRow, cases: Sequence[CaseRow], baseline: Baseline) -> Iterable[GateFinding]:
    if not run.complete:
        yield GateFinding(INVALID, "interrupted", f"run {run.run_id} was interrupted; run the tests again")
    if not cases:
        yield GateFinding(INVALID, "empty", f"run {run.run_id} has no cases")
    if not baseline.memories:
        yield GateFinding(INVALID, "empty", f"the baseline {baseline.source} has no cases")
    now = [(case.test, case.column) for case in cases]
    then = [(case.test, f"{case.compiler}:{case.backend}") for case in baseline.cases]
    for side, names in (("this run", now), ("the baseline", then)):
        for case, count in sorted(Counter(names).items()):
            if count > 1:
                yield GateFinding(INVALID, "duplicate", f"appears {count} times in {side}", *case)
