"""The rules about numbers of a case that passes: exact comparisons with what it did on its last good night.

Margins and counts repeat bit for bit on the same program, so that no statistics are needed: what moved has changed.
"""

from collections.abc import Callable, Iterable

from ..rows import FAILING_OUTCOMES
from ..verdict_marks import margin_text
from .case_memory import NOT_JUDGED, PASSED, CaseMemory, Seen
from .gate_findings import IMPROVEMENT, INVALID, REGRESSION, WARNING
from .thresholds import Thresholds

Said = tuple[str, str, str]
"""A level, a rule, a text."""

Rule = Callable[[Seen, CaseMemory, Thresholds], Said | None]
_RULES: list[Rule] = []
_LOOKED_AT = frozenset({"passed", "xpassed", *FAILING_OUTCOMES})
_WEAK = ("NO_REFERENCE", "UNSTABLE", "")


def rule(function: Rule) -> Rule:
    """Register a comparison of one case with its memory."""
    _RULES.append(function)
    return function


def numbers_of(seen: Seen, memory: CaseMemory, limits: Thresholds) -> Iterable[Said]:
    """Return what the rules say about a case that is known; failures as such are not their subject."""
    said = (check(seen, memory, limits) for check in _RULES)
    return [each for each in said if each is not None]


@rule
def _no_longer_looked_at(now: Seen, then: CaseMemory, limits: Thresholds) -> Said | None:
    del limits
    if now.fate != NOT_JUDGED or then.outcome not in _LOOKED_AT:
        return None
    if now.outcome == "skipped":
        return INVALID, "skipped", f"skipped now, {said_of(then)} in the baseline"
    return WARNING, "xfailed", f"marked xfail now, {said_of(then)} in the baseline"


@rule
def _passes_against_its_mark(now: Seen, then: CaseMemory, limits: Thresholds) -> Said | None:
    del limits
    if then.outcome == "xfailed" and now.outcome in ("passed", "xpassed"):
        return IMPROVEMENT, "passes", "passes now; its xfail mark can go"
    return None


@rule
def _judged_by_less(now: Seen, then: CaseMemory, limits: Thresholds) -> Said | None:
    del limits
    if now.outcome == then.outcome == "passed" and now.verdict in _WEAK and then.verdict not in _WEAK:
        return WARNING, "judged by less", f"passes as {now.verdict or 'not judged'}; was {then.verdict}"
    return None


@rule
def _graph_breaks(now: Seen, then: CaseMemory, limits: Thresholds) -> Said | None:
    del limits
    if now.breaks > then.breaks:
        why = f" ({now.break_reason})" if now.break_reason else ""
        return REGRESSION, "graph breaks", f"{now.breaks} graph breaks{why}; was {then.breaks}"
    if now.breaks < then.breaks:
        return IMPROVEMENT, "graph breaks", f"{now.breaks} graph breaks; was {then.breaks}"
    return None


@rule
def _less_compiled(now: Seen, then: CaseMemory, limits: Thresholds) -> Said | None:
    if now.outcome not in ("passed", "xpassed") or then.outcome not in ("passed", "xpassed"):
        return None
    if now.graphs == 0 and then.graphs > 0:
        return REGRESSION, "nothing compiled", f"nothing is compiled any more; was {then.graphs} graphs"
    if now.ops < then.ops * (1 - limits.counts_operations_lost):
        return WARNING, "operations", f"{now.ops} operations captured; was {then.ops}"
    return None


@rule
def _margin_moved(now: Seen, then: CaseMemory, limits: Thresholds) -> Said | None:
    if now.fate != PASSED or then.outcome in FAILING_OUTCOMES or now.margin == then.margin:
        return None
    was = margin_text(then.margin) or "0"
    if now.margin > max(limits.margin_near_limit, then.margin):
        return WARNING, "margin", f"margin {margin_text(now.margin)} of 1; was {was}"
    rises = (then.rises & ((1 << (limits.margin_rises_within - 1)) - 1)).bit_count() + (now.margin > then.margin)
    if now.margin > then.margin and rises >= limits.margin_rises:
        nights = limits.margin_rises_within
        return WARNING, "margin", f"margin {margin_text(now.margin)} of 1; rose {rises} times in {nights} nights"
    return None


def said_of(memory: CaseMemory) -> str:
    """Return how a case ended when it was last good, in words."""
    return f"{memory.outcome} as {memory.verdict}" if memory.verdict else memory.outcome
