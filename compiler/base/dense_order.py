"""Memory orders: dimensions from the slowest to the fastest, of tensors whose elements fill their memory."""

from collections.abc import Sequence
from typing import Any


def dense_order(sizes: Sequence[int], strides: Sequence[int]) -> tuple[int, ...] | None:
    """Return the order of dimensions in memory, from which alone `dense_strides` gives these strides; None without one.

    Row-major order comes first where several would do.  strides: in elements.
    """
    natural = tuple(range(len(sizes)))
    by_stride = tuple(sorted(natural, key=lambda dimension: (-strides[dimension], -sizes[dimension], dimension)))
    for order in (natural, by_stride):
        if dense_strides(sizes, order) == tuple(strides):
            return order
    return None


def dense_strides(sizes: Sequence[Any], order: Sequence[int]) -> tuple[Any, ...]:
    """Return the strides, in elements, of a dense tensor; sizes may be symbols."""
    strides: list[Any] = [1] * len(sizes)
    step: Any = 1
    for dimension in reversed(order):
        strides[dimension] = step
        step = step * sizes[dimension]
    return tuple(strides)
