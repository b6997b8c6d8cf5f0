"""Sizes and strides of the tangents that a backward was traced with."""

from collections.abc import Callable, Sequence

from torch import fx

from ..graph.node_values import placeholders, tensor_of
from .dynamic_arguments import at_sizes

Sizes = tuple[float, ...]
Layout = tuple[tuple[int, ...], tuple[int, ...]]


def layouts_of(joint: fx.Graph, inputs: int) -> tuple[Layout, ...]:
    """Return them as the trace has them, symbols inside; inputs: how many placeholders stand before the tangents."""
    tangents = placeholders(joint)[inputs:]
    return tuple((tuple(tensor_of(node).shape), tensor_of(node).stride()) for node in tangents)


def layouts_at(layouts: tuple[Layout, ...], names: Sequence[str]) -> Callable[[Sizes], tuple[Layout, ...]]:
    """Return what gives them from the dynamic sizes, whose names are given in order."""
    return at_sizes(layouts, names) or (lambda sizes: layouts)
