"""Marks on tensors: which dimensions are to be dynamic in the next capture, and which never."""

import torch

from .base.errors import UserError
from .frontend.context.size_marks import DYNAMIC, RANGES, STATIC


def mark_dynamic(
    tensor: torch.Tensor,
    index: int | list[int] | tuple[int, ...],
    *,
    min: int | None = None,  # noqa: A002  the name in torch
    max: int | None = None,  # noqa: A002  as above
) -> None:
    """Make dimensions of a tensor symbolic from the first capture on (dynamic shapes).

    min, max: bounds of the sizes; a call outside them is captured again.  Raises UserError for a dimension that the
    tensor does not have, or whose size is not within the bounds.
    """
    for dimension in _mark(tensor, index, DYNAMIC):
        if (min is not None and tensor.shape[dimension] < min) or (max is not None and tensor.shape[dimension] > max):
            size = tensor.shape[dimension]
            raise UserError(f"dimension {dimension} has size {size}, not in {min} to {max}", hint="widen the range")
        tensor.__dict__.setdefault(RANGES, {})[dimension] = (min, max)


def maybe_mark_dynamic(tensor: torch.Tensor, index: int | list[int] | tuple[int, ...]) -> None:
    """Do the same as `mark_dynamic`; a size that the program needs as a number is specialised, with an event."""
    _mark(tensor, index, DYNAMIC)


def mark_unbacked(tensor: torch.Tensor, index: int | list[int] | tuple[int, ...]) -> None:
    """Do the same as `mark_dynamic`: sizes 0 and 1 are specialised, and no other size is assumed."""
    _mark(tensor, index, DYNAMIC)


def mark_static(tensor: torch.Tensor, index: int | list[int] | tuple[int, ...] | None = None) -> None:
    """Specialise on dimensions of a tensor (None: all), whatever `dynamic` says."""
    _mark(tensor, list(range(tensor.dim())) if index is None else index, STATIC)


def _mark(tensor: torch.Tensor, index: int | list[int] | tuple[int, ...], name: str) -> list[int]:
    dimensions = list(index) if isinstance(index, list | tuple) else [index]
    for dimension in dimensions:
        if not -tensor.dim() <= dimension < tensor.dim():
            raise UserError(
                f"a tensor of {tensor.dim()} dimensions has no dimension {dimension}", hint="name one it has"
            )
    indexes = [dimension % tensor.dim() for dimension in dimensions]
    marked: set[int] = tensor.__dict__.setdefault(name, set())
    marked.update(indexes)
    return indexes
