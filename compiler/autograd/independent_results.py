"""Which results of a graph eager lets one run the backward of one after the other, without keeping the graph.

In eager a step of history frees the tensors it has saved when its backward has run, and a second run raises. Results
whose histories share no step with saved tensors do not disturb each other. A compiled graph is one step of history for
all its results; so it holds what backward reads by parts, and frees each part on its own.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache

import torch
from torch import fx
from torch.autograd.graph import Node

from ..graph.node_values import outputs, placeholders


@dataclass(frozen=True, slots=True)
class ResultPart:
    """Results that share saved tensors in eager.

    tangents: their places among the results with a gradient.  kept: which kept values their backward reads.
    frees: whether eager saves anything for them; if not, their backward may run any number of times.
    """

    tangents: frozenset[int]
    kept: tuple[int, ...]
    frees: bool


def independent_results(values: Sequence[torch.Tensor]) -> tuple[tuple[frozenset[int], bool], ...]:
    """Return values, by place, that share a step with saved tensors, and whether there is such a step at all.

    To be asked before their backward runs. Values without any saved tensor behind them are one group.
    """
    histories = _Histories()
    holding = [histories.visit(place, value.grad_fn) for place, value in enumerate(values)]
    groups: dict[int, list[int]] = {}
    for place, holds in enumerate(holding):
        groups.setdefault(histories.group_of(place) if holds else -1, []).append(place)
    return tuple((frozenset(places), number >= 0) for number, places in groups.items())


class _Histories:
    """Walks histories, each step once; groups are a forest of places, each pointing to one in its group."""

    def __init__(self) -> None:
        self.above: dict[int, int] = {}
        self.first: dict[Node, int] = {}  # the first value that a step belongs to
        self.holds: dict[Node, bool] = {}  # whether it or a step behind it has saved tensors

    def group_of(self, place: int) -> int:
        """Return the place that stands for the group."""
        while (higher := self.above.setdefault(place, place)) != place:
            place = higher
        return place

    def visit(self, place: int, root: Node | None) -> bool:
        """Walk one history; return whether anything in it has saved tensors."""
        if root is None:
            return False
        stack = [root]
        while stack:
            node = stack[-1]
            if node in self.holds:
                self._meet(place, stack.pop())
                continue
            sources = [source for source, _ in node.next_functions if source is not None]
            if node not in self.first:
                self.first[node] = place
                stack.extend(source for source in sources if source not in self.holds)
                for source in sources:
                    if source in self.holds:
                        self._meet(place, source)
                continue
            self.holds[node] = _has_saved_tensors(stack.pop()) or any(self.holds[source] for source in sources)
        return self.holds[root]

    def _meet(self, place: int, node: Node) -> None:
        if self.holds[node]:
            self.above[self.group_of(place)] = self.group_of(self.first[node])


def _has_saved_tensors(node: Node) -> bool:
    if node.name() == "CopySlices":  # it has another step inside, and frees it
        return True
    return any(getattr(node, name) != () for name in _names_of_saved(type(node)))


@cache
def _names_of_saved(kind: type) -> tuple[str, ...]:
    """Return the attributes of a kind of step that give the tensors it has saved, as they are held."""
    return tuple(name for name in dir(kind) if name.startswith("_raw_saved_"))


def parts_of(backward: fx.Graph, kept: int, groups: Iterable[tuple[frozenset[int], bool]]) -> tuple[ResultPart, ...]:
    """Return the groups of results with the kept values that the backward graph reads for each of them.

    kept: how many of the first inputs of the graph are kept values; the others are tangents.
    """
    inputs = placeholders(backward)
    values: dict[fx.Node, int] = {node: 1 << place for place, node in enumerate(inputs[:kept])}
    tangents: dict[fx.Node, int] = {node: 1 << place for place, node in enumerate(inputs[kept:])}
    read = [0] * len(tangents)  # by tangent: the kept values, as bits
    for node in backward.nodes:
        if node.op != "call_function":
            continue
        mine = plain = 0
        for source in node.all_input_nodes:
            mine |= tangents.get(source, 0)
            plain |= 0 if source in tangents else values.get(source, 0)
        if mine:  # a sum of what two tangents give reads what each of them has read, not what both have
            tangents[node] = mine
            read = [bits | plain if mine >> place & 1 else bits for place, bits in enumerate(read)]
        else:
            values[node] = plain
    always = 0  # gradients that are the same for every tangent
    for part in outputs(backward):
        always |= values.get(part, 0) if isinstance(part, fx.Node) else 0
    found = []
    for places, frees in groups:
        bits = always
        for place in places:
            bits |= read[place]
        found.append(ResultPart(places, tuple(place for place in range(kept) if bits >> place & 1), frees))
    return tuple(found)


def kept_for(parts: Sequence[ResultPart], pattern: Sequence[bool], kept: int) -> list[int]:
    """Return which of the kept values are held for the tangents that exist; all where there are no parts."""
    if not parts:
        return list(range(kept))
    return sorted({place for part in parts_with(parts, pattern) for place in part.kept})


def parts_with(parts: Iterable[ResultPart], pattern: Sequence[bool]) -> list[ResultPart]:
    """Return the parts of which a tangent exists."""
    return [part for part in parts if any(pattern[place] for place in part.tangents)]
