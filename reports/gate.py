"""The gate: is a run as good as its baseline?

Red: a regression (a case that fails now and did not, more graph breaks, nothing compiled any more) or
an invalid comparison (cases that vanished, duplicates, an interrupted run).  Improvements never make
it red; they are listed.  A margin that grew fourfold towards its limit warns before it fails.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from .baseline import Baseline, ExpectedCase
from .rows import FAILING_OUTCOMES, CaseRow, RunRow
from .verdict_marks import margin_text, mark_of, one_line

DRIFT_FACTOR = 4.0  # a margin that grew by more than this ...
DRIFT_FLOOR = 0.5  # ... and is above this (1 fails) warns
OPS_LOST = 0.05  # a smaller share of captured operations may go to another version of a library

REGRESSION, INVALID, WARNING, IMPROVEMENT = "REGRESSION", "INVALID", "WARNING", "IMPROVEMENT"
_LOOKED_AT = frozenset({"passed", "xpassed", "failed", "vacuous"})


@dataclass(frozen=True, slots=True)
class Change:
    """One difference from the baseline: its level, the case (empty for the whole run), in words."""

    level: str
    case: str
    text: str

    def __str__(self) -> str:
        """Return the change as one line."""
        return one_line(f"{self.level} {self.case}: {self.text}" if self.case else f"{self.level} {self.text}")


@dataclass(frozen=True, slots=True)
class GateReport:
    """All changes, the serious ones first; `compared` counts the cases that both sides have."""

    changes: tuple[Change, ...]
    compared: int
    source: str

    @property
    def red(self) -> bool:
        """Return whether the gate is closed."""
        return any(change.level in (REGRESSION, INVALID) for change in self.changes)

    def of(self, level: str) -> tuple[Change, ...]:
        """Return the changes of one level."""
        return tuple(change for change in self.changes if change.level == level)

    def to_dict(self) -> dict[str, object]:
        """Return the report as plain data, for other programs."""
        changes = [{"level": c.level, "case": c.case, "text": one_line(c.text)} for c in self.changes]
        return {"red": self.red, "compared": self.compared, "source": self.source, "changes": changes}

    def __str__(self) -> str:
        """Return one line per change, then one line with the result."""
        counts = Counter(change.level for change in self.changes)
        said = ", ".join(f"{count} {level.lower()}" for level, count in counts.items()) or "no change"
        verdict = "RED" if self.red else "GREEN"
        end = one_line(f"gate {verdict}: {self.compared} cases compared with {self.source}; {said}")
        return "\n".join([*map(str, self.changes), end])


Rule = Callable[[CaseRow, ExpectedCase], Change | None]
_RULES: list[Rule] = []


def rule(function: Rule) -> Rule:
    """Register a comparison of one case, now and in the baseline."""
    _RULES.append(function)
    return function


def compare(run: RunRow, cases: Sequence[CaseRow], baseline: Baseline) -> GateReport:
    """Compare the cases of a run with a baseline."""
    now = {_name(case): case for case in cases}
    then = {_name(case): case for case in baseline.cases}
    changes = [*_whole_run(run, cases, baseline), *_vanished(now, then), *_appeared(now, then)]
    for name in sorted(now.keys() & then.keys()):
        differences = (check(now[name], then[name]) for check in _RULES)
        changes += [change for change in differences if change is not None]
    order = (INVALID, REGRESSION, WARNING, IMPROVEMENT)
    changes.sort(key=lambda change: (order.index(change.level), change.case))
    return GateReport(tuple(changes), len(now.keys() & then.keys()), baseline.source)


def mismatch_report(text: str, source: str) -> GateReport:
    """Return the report of a comparison that cannot be made because the schemas differ."""
    return GateReport((Change(INVALID, "", text),), 0, source)


def _name(case: CaseRow | ExpectedCase) -> str:
    return f"{case.test} [{case.compiler}:{case.backend}]"


def _whole_run(run: RunRow, cases: Sequence[CaseRow], baseline: Baseline) -> Iterable[Change]:
    if not run.complete:
        yield Change(INVALID, "", f"run {run.run_id} was interrupted; run the tests again")
    if not cases:
        yield Change(INVALID, "", f"run {run.run_id} has no cases")
    if not baseline.cases:
        yield Change(INVALID, "", f"the baseline {baseline.source} has no cases")
    for side, rows in (("this run", cases), ("the baseline", baseline.cases)):
        counts = Counter(map(_name, rows))
        for name in sorted(name for name, count in counts.items() if count > 1):
            yield Change(INVALID, name, f"appears {counts[name]} times in {side}")


def _vanished(now: dict[str, CaseRow], then: dict[str, ExpectedCase]) -> Iterable[Change]:
    for name in sorted(then.keys() - now.keys()):
        hint = "if it was removed or renamed on purpose, write the baseline again"
        yield Change(INVALID, name, f"missing now, {_said(then[name])} in the baseline; {hint}")


def _appeared(now: dict[str, CaseRow], then: dict[str, ExpectedCase]) -> Iterable[Change]:
    for name in sorted(now.keys() - then.keys()):
        case = now[name]
        if case.failing:
            yield Change(REGRESSION, name, f"new, and {_failure(case)}")
        else:
            yield Change(IMPROVEMENT, name, f"new, {case.outcome}")


@rule
def _fails_now(now: CaseRow, then: ExpectedCase) -> Change | None:
    if now.failing and then.outcome not in FAILING_OUTCOMES:
        return Change(REGRESSION, _name(now), f"{_failure(now)}; was {_said(then)}")
    if now.failing and then.outcome == "vacuous" and now.outcome != "vacuous":
        return Change(REGRESSION, _name(now), f"{_failure(now)}; was vacuous")
    if now.failing and (now.outcome, now.verdict) != (then.outcome, then.verdict):
        return Change(WARNING, _name(now), f"still fails, but as {_failure(now)}; was {_said(then)}")
    return None


@rule
def _passes_now(now: CaseRow, then: ExpectedCase) -> Change | None:
    if then.outcome in FAILING_OUTCOMES and now.outcome in ("passed", "xpassed"):
        return Change(IMPROVEMENT, _name(now), f"passes now; was {_said(then)}")
    if then.outcome == "xfailed" and now.outcome in ("passed", "xpassed"):
        return Change(IMPROVEMENT, _name(now), "passes now; its xfail mark can go")
    return None


@rule
def _no_longer_looked_at(now: CaseRow, then: ExpectedCase) -> Change | None:
    if now.outcome == "skipped" and then.outcome in _LOOKED_AT:
        return Change(INVALID, _name(now), f"skipped now, {_said(then)} in the baseline")
    if now.outcome == "xfailed" and then.outcome in _LOOKED_AT:
        return Change(WARNING, _name(now), f"marked xfail now, {_said(then)} in the baseline")
    return None


@rule
def _judged_by_less(now: CaseRow, then: ExpectedCase) -> Change | None:
    weak = ("NO_REFERENCE", "UNSTABLE", "")
    if now.outcome == then.outcome == "passed" and now.verdict in weak and then.verdict not in weak:
        return Change(WARNING, _name(now), f"passes as {now.verdict or 'not judged'}; was {then.verdict}")
    return None


@rule
def _more_graph_breaks(now: CaseRow, then: ExpectedCase) -> Change | None:
    if now.breaks > then.breaks:
        first = next((e for e in now.events if e.get("kind") == "graph_break" and e.get("reason")), None)
        why = f" ({first['reason']})" if first else ""
        return Change(REGRESSION, _name(now), f"{now.breaks} graph breaks{why}; was {then.breaks}")
    if now.breaks < then.breaks:
        return Change(IMPROVEMENT, _name(now), f"{now.breaks} graph breaks; was {then.breaks}")
    return None


@rule
def _less_compiled(now: CaseRow, then: ExpectedCase) -> Change | None:
    if now.outcome not in ("passed", "xpassed") or then.outcome not in ("passed", "xpassed"):
        return None
    if now.graphs == 0 and then.graphs > 0:
        return Change(REGRESSION, _name(now), f"nothing is compiled any more; was {then.graphs} graphs")
    if now.ops < then.ops * (1 - OPS_LOST):
        return Change(WARNING, _name(now), f"{now.ops} operations captured; was {then.ops}")
    return None


@rule
def _margin_drifts(now: CaseRow, then: ExpectedCase) -> Change | None:
    if now.failing or not now.margin > DRIFT_FLOOR or not now.margin > DRIFT_FACTOR * then.margin:
        return None
    was = margin_text(then.margin) or "0"
    return Change(WARNING, _name(now), f"margin {margin_text(now.margin)} of 1; was {was}")


def _said(case: ExpectedCase) -> str:
    return f"{case.outcome} as {case.verdict}" if case.verdict else case.outcome


def _failure(case: CaseRow) -> str:
    said = f"{case.where}: {case.sentence}" if case.where else case.sentence
    return f"{mark_of(case).word} {said}".rstrip()
