"""What whole numbers a value of a loop body can be, where that is known: intervals, by the shape of the value alone.

A place that is computed, a window kept inside an image for instance, needs no check of whether it lies in its
dimension.  What is read from memory can be anything.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

import torch

from ..symbolic.expr import bounds
from ..symbolic.symbolic_sizes import Extent, Size
from .body import Scalar, walk

Range = tuple[int, int]
"""The least and the greatest number; both can be."""


def _sum(first: Range, second: Range) -> Range:
    return first[0] + second[0], first[1] + second[1]


def _difference(first: Range, second: Range) -> Range:
    return first[0] - second[1], first[1] - second[0]


def _product(first: Range, second: Range) -> Range:
    corners = [a * b for a in first for b in second]
    return min(corners), max(corners)


def _smaller(first: Range, second: Range) -> Range:
    return min(first[0], second[0]), min(first[1], second[1])


def _larger(first: Range, second: Range) -> Range:
    return max(first[0], second[0]), max(first[1], second[1])


_RULES: Mapping[str, Callable[[Range, Range], Range]] = MappingProxyType(
    {"add": _sum, "sub": _difference, "mul": _product, "minimum": _smaller, "maximum": _larger}
)


def ranges_of(roots: Sequence[Scalar]) -> dict[int, Range]:
    """Return the range of each whole number below some values, by its id; without those that can be anything."""
    found: dict[int, Range] = {}
    for scalar in walk(roots):
        known = _range(scalar, found)
        if known is not None and _holds(scalar.dtype, known):
            found[id(scalar)] = known
    return found


def surely_within(known: Range | None, size: Extent) -> bool:
    """Return whether every number of a range is a place in a dimension of a size."""
    return known is not None and isinstance(size, int) and known[0] >= 0 and known[1] < size


def _range(scalar: Scalar, found: Mapping[int, Range]) -> Range | None:
    if scalar.dtype.is_floating_point or scalar.dtype == torch.bool:
        return None
    if scalar.name == "constant":
        return (scalar.detail, scalar.detail) if isinstance(scalar.detail, int) else None
    if scalar.name == "index":
        low, high = bounds(scalar.expression)
        return None if isinstance(low, Size) or isinstance(high, Size) else (low, high)
    given = [found.get(id(arg)) for arg in scalar.args]
    if scalar.name == "cast":
        return given[0]
    if scalar.name == "where":
        given = given[1:]
        first, second = given
        return None if first is None or second is None else (min(first[0], second[0]), max(first[1], second[1]))
    if scalar.name in ("minimum", "maximum"):
        return _extreme(scalar, given)
    rule = _RULES.get(scalar.name)
    if rule is None or None in given:
        return None
    first, second = given
    return None if first is None or second is None else rule(first, second)


def _extreme(scalar: Scalar, given: Sequence[Range | None]) -> Range:
    """Return the range of an extreme, of which one side is known even where one of its arguments can be anything."""
    limits = torch.iinfo(scalar.dtype)
    first, second = ((limits.min, limits.max) if each is None else each for each in given)
    return _RULES[scalar.name](first, second)


def _holds(dtype: torch.dtype, known: Range) -> bool:
    """Return whether a dtype has all numbers of a range: where one wraps, nothing is known."""
    limits = torch.iinfo(dtype)
    return limits.min <= known[0] and known[1] <= limits.max
