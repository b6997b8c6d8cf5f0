"""Marks on tensors that say which sizes are to be open: ours, and those that torch's functions leave.

torch's are known by the attributes they leave on the tensor; `mark_unbacked` asks for a size without any assumption,
and is taken as a size that is open (0 and 1 are captured apart).
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import torch

from ...base.real_objects.past_methods import is_really

DYNAMIC, RANGES, STATIC = "_plumbline_dynamic", "_plumbline_ranges", "_plumbline_static"
_OPEN = (
    DYNAMIC,
    "_dynamo_dynamic_indices",
    "_dynamo_weak_dynamic_indices",
    "_dynamo_unbacked_indices",
    "_dynamo_strict_unbacked_indices",
)
_FIXED = (STATIC, "_dynamo_static_indices")
Range = tuple[int | None, int | None]


@dataclass(frozen=True, slots=True)
class SizeMarks:
    """Dimensions that are to be open, those that are to stay fixed, and (least, greatest) size where that is known."""

    opened: frozenset[int] = frozenset()
    fixed: frozenset[int] = frozenset()
    ranges: dict[int, Range] = field(default_factory=dict)


_NONE = SizeMarks()


def size_marks(tensor: torch.Tensor) -> SizeMarks:
    """Return the marks on a tensor."""
    namespace = tensor.__dict__
    if not namespace:
        return _NONE
    opened = frozenset(index for name in _OPEN for index in namespace.get(name, ()))
    fixed = frozenset(index for name in _FIXED for index in namespace.get(name, ()))
    if not opened and not fixed:
        return _NONE
    ranges: dict[int, Range] = {}
    for mark in namespace.get("_dynamo_dynamic_range", ()):
        ranges[mark.dim] = (mark.min, mark.max)
    ranges.update(namespace.get("_dynamo_unbacked_bounds", {}))
    ranges.update(namespace.get(RANGES, {}))
    known = {index: bounds for index, bounds in ranges.items() if bounds != (None, None)}
    return SizeMarks(opened - fixed, fixed, known)


def has_marks(value: object, depth: int = 3) -> bool:
    """Return whether an argument, or what lists, tuples and dictionaries of it hold, has dimensions marked open."""
    if is_really(value, torch.Tensor):
        return bool(size_marks(value).opened)
    for kind, items in _HELD:  # past the methods of a subclass
        if depth and is_really(value, kind):
            return any(has_marks(item, depth - 1) for item in items(value))
    return False


_HELD: tuple[tuple[type, Callable[..., Iterable[object]]], ...] = (
    (list, list.__iter__),
    (tuple, tuple.__iter__),
    (dict, dict.values),
)
