"""Which results of a graph eager lets one run the backward of one after the other, without keeping the graph.

In eager a step of history frees the tensors it has saved when its backward has run, and a second run raises. Results
whose histories share no step with saved tensors do not disturb each other, also if a third shares steps with both. A
compiled graph is one step of history for all its results; so it holds what backward reads by parts.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache

import torch
from torch import fx
from torch.autograd.graph import Node

from ...graph.node_values import outputs, placeholders

Group = tuple[frozenset[int], frozenset[int]]  # places of results, and of those whose backward theirs ends


@dataclass(frozen=True, slots=True)
class ResultPart:
    """Results that end the backward of the same results in eager.

    tangents: their places among the results with a gradient.  kept: which kept values their backward reads.
    spends: places of the results with which they share a step with saved tensors, themselves among them; none if eager
    saves nothing for them, and their backward may run any number of times.
    """

    tangents: frozenset[int]
    kept: tuple[int, ...]
    spends: frozenset[int]


def independent_results(values: Sequence[torch.Tensor]) -> tuple[Group, ...]:
    """Return values, by place, that share steps with saved tensors with the same values, and which these are.

    To be asked before their backward runs. Values without any saved tensor behind them are one group.
    """
    reached: dict[Node, int] = {}  # from which values a step can be reached, as bits
    for place, value in enumerate(values):
        if value.grad_fn is not None:
            reached[value.grad_fn] = reached.get(value.grad_fn, 0) | 1 << place
    spends = [0] * len(values)
    for node in steps_from_above(list(reached)):
        for source in _sources(node):
            reached[source] = reached.get(source, 0) | reached[node]
        if _has_saved_tensors(node):
            for place in _places(reached[node]):
                spends[place] |= reached[node]
    groups: dict[int, list[int]] = {}
    for place, bits in enumerate(spends):
        groups.setdefault(bits, []).append(place)
    return tuple((frozenset(places), frozenset(_places(bits))) for bits, places in groups.items())


def _places(bits: int) -> list[int]:
    return [place for place in range(bits.bit_length()) if bits >> place & 1]


def _sources(node: Node) -> list[Node]:
    return [source for source, _ in node.next_functions if source is not None]


def steps_from_above(roots: Sequence[Node]) -> list[Node]:
    """Return all steps of histories, each before those that it leads to."""
    ended: list[Node] = []
    seen: set[Node] = set()
    stack = [(root, False) for root in roots]
    while stack:
        node, visited = stack.pop()
        if visited:
            ended.append(node)
        elif node not in seen:
            seen.add(node)
            stack.append((node, True))
            stack.extend((source, False) for source in _sources(node) if source not in seen)
    return ended[::-1]


def _has_saved_tensors(node: Node) -> bool:
    if node.name() == "CopySlices":  # it has another step inside, and frees it
        return True
    return any(getattr(node, name) != () for name in _names_of_saved(type(node)))


@cache
def _names_of_saved(kind: type) -> tuple[str, ...]:
    """Return the attributes of a kind of step that give the tensors it has saved, as they are held."""
    return tuple(name for name in dir(kind) if name.startswith("_raw_saved_"))


def parts_of(backward: fx.Graph, kept: int, groups: Iterable[Group]) -> tuple[ResultPart, ...]:
    """Return the groups of results with the kept values that the backward graph reads for each of them.

    kept: how many of the first inputs of the graph are kept values; the others are tangents.
    """
    inputs = placeholders(backward)
    values: dict[fx.Node, int] = {node: 1 << place for place, node in enumerate(inputs[:kept])}
    tangents: dict[fx.Node, int] = {node: 1 << place for place, node in enumerate(inputs[kept:])}
    # By tangent: the kept values, as bits; all for one whose value makes no difference, for what it adds to gradients
    # is read by what the others give.
    read = [0 if node.users else (1 << kept) - 1 for node in tangents]
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
    for places, spends in groups:
        bits = always
        for place in places:
            bits |= read[place]
        found.append(ResultPart(places, tuple(place for place in range(kept) if bits >> place & 1), spends))
    return tuple(found)


def kept_for(parts: Sequence[ResultPart], pattern: Sequence[bool], kept: int) -> list[int]:
    """Return which of the kept values are held for the tangents that exist; all where there are no parts."""
    if not parts:
        return list(range(kept))
    return sorted({place for part in parts_with(parts, pattern) for place in part.kept})


def parts_with(parts: Iterable[ResultPart], pattern: Sequence[bool]) -> list[ResultPart]:
    """Return the parts of which a tangent exists."""
    return [part for part in parts if any(pattern[place] for place in part.tangents)]


def spent_with(parts: Sequence[ResultPart], pattern: Sequence[bool]) -> list[ResultPart]:
    """Return the parts whose backward is over when that of the existing tangents has run."""
    places = frozenset(place for part in parts_with(parts, pattern) for place in part.spends)
    return [part for part in parts if part.tangents & places]
