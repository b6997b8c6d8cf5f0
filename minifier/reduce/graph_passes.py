"""Passes over graphs: observe every value, cut around the first wrong one, then remove operators one by one."""

import re
from collections.abc import Callable, Sequence

from torch import fx

from plumbline.oracle.verdict import Finding

from ..failure_signature import FailureSignature, SearchTarget, finding_signature
from ..graphs.graph_case import GraphCase
from ..graphs.subgraph import Trace, bypassed, cone_levels, neighbours, record, settled_nodes, subgraph
from .graph_judge import GraphReport
from .problem import Problem
from .search import gallop, minimal_subset

FIRST_WRONG = "first_wrong"
"""Key of node.meta: this value was the first wrong one when all were observed."""
GraphProblem = Problem[GraphCase, GraphReport]
GraphPass = Callable[[GraphProblem], None]

WINDOWS_FROM = 64
"""Operators from which on windows come before prefixes: they compile about 2 n operators, prefixes about 4 n."""
PAIRS_UP_TO = 8
"""Operators up to which removing two at a time is tried: n * (n - 1) / 2 queries."""


class ObserveFirst:
    """Ask once with every intermediate value as an output: the first wrong one starts the cut.

    From then on the failure of that value is what is sought, and its operator is never removed: all it reads was
    seen to be right.  Only values can be observed, and a compiler may be right once everything is an output; then the
    later passes do the work.
    """

    def __init__(self, sought: SearchTarget) -> None:
        self.sought = sought

    def __call__(self, problem: GraphProblem) -> None:
        """Cut around the first wrong value, or leave everything as it is."""
        if len(problem.current) < 2 or _anchor(problem.current) is not None:
            return
        trace = record(problem.current)
        nodes = settled_nodes(trace)
        report = problem.answer(subgraph(trace, problem.current.ops(), nodes))
        first_wrong = _first_wrong(report, nodes, self.sought.signature)
        if first_wrong is None:
            return
        wrong, finding = first_wrong
        before = self.sought.signature
        self.sought.signature = finding_signature(finding)
        whole = cone_levels(wrong)[0][0]
        whole.meta[FIRST_WRONG] = True
        if not _cut_cone(problem, trace, wrong) and not _cut_with_others(problem, trace, wrong):
            self.sought.signature = before
            del whole.meta[FIRST_WRONG]


def _first_wrong(
    report: GraphReport | None, nodes: Sequence[fx.Node], sought: FailureSignature
) -> tuple[fx.Node, Finding] | None:
    """Return the first of the observed nodes that is wrong as the failure we look for is, and its finding."""
    if report is None or report.verdict is None:
        return None
    places = {
        int(match[1]): finding
        for finding in reversed(report.verdict.findings)
        if (match := re.fullmatch(r"output\[(\d+)\]", finding.where)) and sought.matches(finding_signature(finding))
    }
    first = min(places, default=len(nodes))
    return (nodes[first], places[first]) if first < len(nodes) else None


class CutAroundOutput:
    """Keep only what is near one wrong output, for failures that vanish when everything is observed."""

    def __init__(self, sought: SearchTarget) -> None:
        self.sought = sought

    def __call__(self, problem: GraphProblem) -> None:
        """Cut the backward cone of the first wrong output."""
        outputs = _output_nodes(problem.current)
        if len(problem.current) < 2 or _anchor(problem.current) is not None:
            return
        trace = record(problem.current)
        first_wrong = _first_wrong(problem.answer(problem.current), outputs, self.sought.signature)
        if first_wrong is not None and first_wrong[0].op.startswith("call_"):
            _cut_cone(problem, trace, first_wrong[0])


def _cut_cone(problem: GraphProblem, trace: Trace, wrong: fx.Node) -> bool:
    """Adopt the shallowest backward cone of `wrong` that fails, fed by recorded values."""
    levels = cone_levels(wrong)
    cones: dict[int, GraphCase] = {}

    def cone(depth: int) -> GraphCase:
        if depth not in cones:
            cones[depth] = subgraph(trace, [node for level in levels[:depth] for node in level], [wrong])
        return cones[depth]

    depth = gallop(len(levels), lambda number: problem.fails(cone(number)))
    return depth is not None and problem.attempt(cone(depth))


def _cut_with_others(problem: GraphProblem, trace: Trace, wrong: fx.Node) -> bool:
    """The wrong node is right within its own cone: find which other operators must be there for it to go wrong.

    Its value stays an output: what reads it may hide the difference.  The operators near it are tried first.
    """
    others = neighbours(wrong)
    own = others.pop(0)

    def with_others(chosen: Sequence[fx.Node]) -> GraphCase:
        return subgraph(trace, [own, *chosen], watched=wrong)

    needed = minimal_subset(others, lambda chosen: problem.fails(with_others(chosen)), likely_first=True)
    return needed is not None and problem.attempt(with_others(needed))


def cut_windows(problem: GraphProblem) -> None:
    """Try halves of a large graph, and the half across the middle, as long as one of them fails."""
    while len(problem.current) > WINDOWS_FROM:
        trace = record(problem.current)
        ops = problem.current.ops()
        half, quarter = (len(ops) + 1) // 2, (len(ops) + 1) // 4
        windows = (ops[half:], ops[:half], ops[quarter : quarter + half])
        if not any(problem.attempt(subgraph(trace, window)) for window in windows):
            return


def keep_a_minimal_set(problem: GraphProblem) -> None:
    """Find a small set of operators that fails by itself: for exceptions, and where observing did not help."""
    if len(problem.current) <= 3:
        return  # removing one by one is as cheap
    trace = record(problem.current)
    anchor = _anchor(problem.current)
    others = [op for op in problem.current.ops() if op is not anchor]
    always = [anchor] if anchor is not None else []
    needed = minimal_subset(others, lambda chosen: problem.fails(subgraph(trace, [*chosen, *always])))
    if needed is not None and len(needed) < len(others):
        problem.attempt(subgraph(trace, [*needed, *always]))


def drop_each_op(problem: GraphProblem) -> None:
    """Replace each operator by its recorded value, those farthest from the output first."""
    _drop(problem, 1)


def drop_pairs(problem: GraphProblem) -> None:
    """Replace two operators at once: each alone may be needed only while the other is there."""
    if len(problem.current) <= PAIRS_UP_TO:
        _drop(problem, 2)


def _drop(problem: GraphProblem, count: int) -> None:
    first = 0
    while True:
        trace = record(problem.current)
        ops, anchor = problem.current.ops(), _anchor(problem.current)
        groups = [[op] for op in ops] if count == 1 else [[a, b] for n, a in enumerate(ops) for b in ops[n + 1 :]]
        groups = [group for group in groups if anchor not in group and len(group) < len(ops)]
        for number, group in enumerate(groups[first:], first):
            if problem.attempt(subgraph(trace, [op for op in ops if op not in group])):
                first = number  # what was refused before is mostly refused again; the next round asks again
                break
        else:
            return


def bypass_each_op(problem: GraphProblem) -> None:
    """Let the readers of an operator between two others read one of its inputs instead."""
    changed = True
    while changed:
        changed = False
        trace = record(problem.current)
        for op in problem.current.ops():
            if any(problem.attempt(bypassed(problem.current, op, source)) for source in _likes(trace, op)):
                changed = True
                break


def _likes(trace: Trace, op: fx.Node) -> list[fx.Node]:
    """Return the computed inputs of `op` that have its form; bypassing to an input value is what dropping does."""
    mine = trace.values.get(op)
    if not any(user.op != "output" for user in op.users):
        return []
    return [s for s in op.all_input_nodes if s.op.startswith("call_") and _same_form(trace.values.get(s), mine)]


def _same_form(one: object, other: object) -> bool:
    return (
        hasattr(one, "shape")
        and hasattr(other, "shape")
        and (one.shape, getattr(one, "dtype", None)) == (other.shape, getattr(other, "dtype", None))
    )


def _output_nodes(case: GraphCase) -> list[fx.Node]:
    (result,) = next(node for node in reversed(case.graph.graph.nodes) if node.op == "output").args
    return [part for part in result if isinstance(part, fx.Node)] if isinstance(result, (tuple, list)) else []


def _anchor(case: GraphCase) -> fx.Node | None:
    """Return the operator whose value was observed to be the first wrong one, None when nothing was observed."""
    return next((op for op in case.ops() if op.meta.get(FIRST_WRONG)), None)


def value_passes(sought: SearchTarget) -> tuple[GraphPass, ...]:
    """Return the passes for wrong values and metadata: observe, cut, then remove one by one."""
    return (ObserveFirst(sought), CutAroundOutput(sought), *REMOVING_PASSES)


REMOVING_PASSES: tuple[GraphPass, ...] = (
    cut_windows,
    keep_a_minimal_set,
    drop_each_op,
    drop_pairs,
    bypass_each_op,
)
"""For exceptions and gradients, which no output shows, these do the whole work."""
