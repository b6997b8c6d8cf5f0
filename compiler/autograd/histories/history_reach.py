"""From which results of a graph their histories lead to which of its inputs.

In eager every result has a history of its own, and what is not part of it is never visited: hooks there are not called.
A compiled graph is one step of history for all results, and the engine visits everything behind it.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from ...base.torch_facts import number_and_gradients
from .independent_results import steps_from_above

HANDS_ON = "plumbline_hands_on"
"""An attribute of our own steps that give what they are given."""


@dataclass(frozen=True, slots=True)
class PartialInputs:
    """Inputs to which the histories of some results lead, and of others not.

    tangents: these results, by their place among those with a gradient.  inputs: by their number.
    """

    tangents: frozenset[int]
    inputs: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class InnerResult:
    """A result on the way to others: in eager their gradients arrive at it.

    tangent: its place among the results with a gradient.  later: those of the others.
    """

    tangent: int
    later: frozenset[int]


@dataclass(frozen=True, slots=True)
class GradientPaths:
    """Which inputs of a graph the histories of its results lead to.

    unreached: inputs, by their number, that none leads to.  partial: those that only some lead to.  inner: results that
    the histories of others lead to.  hooked: whether the program puts hooks on inputs when the graph has run.
    """

    unreached: frozenset[int] = frozenset()
    partial: tuple[PartialInputs, ...] = ()
    inner: tuple[InnerResult, ...] = ()
    hooked: bool = False

    @classmethod
    def of(
        cls, reach: Sequence[frozenset[int]], tangents: int, inner: tuple[InnerResult, ...], hooked: bool
    ) -> "GradientPaths":
        """Return the paths. reach: as reach_of tells.  tangents: how many results have a gradient."""
        unreached = frozenset(number for number, places in enumerate(reach) if not places)
        if len(unreached) == len(reach):
            return cls(inner=inner, hooked=hooked)
        groups: dict[frozenset[int], list[int]] = {}
        for number, places in enumerate(reach):
            if 0 < len(places) < tangents:
                groups.setdefault(places, []).append(number)
        partial = tuple(PartialInputs(places, tuple(numbers)) for places, numbers in groups.items())
        return cls(unreached, partial, inner, hooked)


def reach_of(values: Sequence[torch.Tensor], inputs: Sequence[torch.Tensor]) -> tuple[frozenset[int], ...]:
    """Return for each input the places of the values whose history leads to it; to be asked before their backward."""
    reached: dict[object, int] = {}
    leaves: dict[int, int] = {}  # from which values each leaf is reached, as bits
    for place, value in enumerate(values):
        if value.grad_fn is not None:
            reached[value.grad_fn] = reached.get(value.grad_fn, 0) | 1 << place
        else:
            leaves[id(value)] = leaves.get(id(value), 0) | 1 << place
    for step in steps_from_above([value.grad_fn for value in values if value.grad_fn is not None]):
        leaf = getattr(step, "variable", None)
        if leaf is not None:
            leaves[id(leaf)] = leaves.get(id(leaf), 0) | reached[step]
        for source, _ in step.next_functions:
            if source is not None:
                reached[source] = reached.get(source, 0) | reached[step]
    bits = [leaves.get(id(one), 0) for one in inputs]
    return tuple(frozenset(place for place in range(len(values)) if found >> place & 1) for found in bits)


def inner_results(values: Sequence[torch.Tensor]) -> tuple[InnerResult, ...]:
    """Return the values that the histories of others lead to; to be asked before their backward."""
    places: dict[tuple[object, int], int] = {}  # results by their step, and by which of its results they are
    reached: dict[object, int] = {}  # from which values a step is reached, as bits
    for place, value in enumerate(values):
        if value.grad_fn is not None:
            places.setdefault((value.grad_fn, value.output_nr), place)
            reached[value.grad_fn] = reached.get(value.grad_fn, 0) | 1 << place
    later: dict[int, int] = {}
    for step in steps_from_above([value.grad_fn for value in values if value.grad_fn is not None]):
        for source, number in step.next_functions:
            if source is not None:
                reached[source] = reached.get(source, 0) | reached[step]
                inner = places.get((source, number))
                if inner is not None:
                    later[inner] = later.get(inner, 0) | reached[step]
    return tuple(
        InnerResult(place, frozenset(other for other in range(len(values)) if bits >> other & 1))
        for place, bits in sorted(later.items())
    )


def steps_of_several(values: Sequence[torch.Tensor]) -> frozenset[int] | None:
    """Return the numbers of the steps in the histories of values that take several gradients.

    None where a step is a user's own: what it does with a missing gradient, and whether what it gives depends on the
    gradient at all, may not show in the calls that it makes.
    """
    found: set[int] = set()
    for step in steps_from_above([value.grad_fn for value in values if value.grad_fn is not None]):
        if isinstance(step, torch.autograd.function.BackwardCFunction) and not getattr(step, HANDS_ON, False):
            return None
        number, gradients = number_and_gradients(step)
        if gradients > 1:
            found.add(number)
    return frozenset(found)
