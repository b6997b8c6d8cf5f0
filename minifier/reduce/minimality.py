"""The check that a reduced graph is minimal: everything that is left of it is tried without, one thing at a time."""

from collections.abc import Callable, Iterator, Mapping

import torch

from ..graphs.graph_case import GraphCase
from ..graphs.subgraph import record, subgraph
from .graph_passes import GraphProblem
from .input_passes import PLAIN_UP_TO, ones_in_place_of, sizes_of, with_size
from .problem import QueriesExhausted

Simpler = Callable[[GraphCase], list[GraphCase]]


def minimality(problem: GraphProblem, again: Callable[[], bool]) -> Mapping[str, int]:
    """Return how many candidates of each kind were tried, all in vain; empty where the budget ran out.

    again: reduces once more after a candidate that failed after all, and returns whether the budget was enough.
    """
    try:
        while True:
            tried: dict[str, int] = {}
            for kind, simpler in SIMPLER.items():
                candidates = simpler(problem.current)
                if any(problem.attempt(candidate) for candidate in candidates):
                    break
                tried[kind] = len(candidates)
            else:
                return tried
            if not again():
                return {}
    except QueriesExhausted:
        return {}


def without_each_operator(case: GraphCase) -> list[GraphCase]:
    """Return the case without each of its operators, if it has more than one."""
    ops = case.ops()
    if len(ops) < 2:
        return []
    trace = record(case)
    return [subgraph(trace, [other for other in ops if other is not op]) for op in ops]


def with_each_size_smaller(case: GraphCase) -> list[GraphCase]:
    """Return the case with each size of its inputs as 1, and as one less."""
    return [with_size(case, size, smaller) for size in sorted(sizes_of(case)) for smaller in sorted({1, size - 1})]


def with_plain_values(case: GraphCase) -> list[GraphCase]:
    """Return the case with the values of each input as ones, where they are something else and few enough to read."""
    return list(_plain(case))


def _plain(case: GraphCase) -> Iterator[GraphCase]:
    for number, value in enumerate(case.inputs):
        if not isinstance(value, torch.Tensor) or not value.is_floating_point() or value.numel() > PLAIN_UP_TO:
            continue
        if not bool((value.detach() == 1).all()):
            yield ones_in_place_of(case, number)


SIMPLER: Mapping[str, Simpler] = {
    "operators": without_each_operator,
    "sizes": with_each_size_smaller,
    "values": with_plain_values,
}
"""What is tried without, in the order in which it removes most."""
