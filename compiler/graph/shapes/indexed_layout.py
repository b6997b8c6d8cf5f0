"""The strides of what advanced indexing gives: those of a kernel that visits the source and the indexes together.

torch's shape rule follows the layout of the source alone.  The kernel orders dimensions by the strides of the source,
and where those do not tell, by the strides of the index tensors; so does this (TensorIterator's reorder_dimensions).
"""

from collections.abc import Sequence
from itertools import pairwise

import torch

from ...base.torch_facts import without_dispatch_modes

Strides = Sequence[int]


def with_indexed_strides(source: object, indices: object, result: object) -> object:
    """Return what the shape rule of `aten.index` gave, with the strides of the kernel where all sizes are known."""
    if (
        not isinstance(source, torch.Tensor)
        or not isinstance(result, torch.Tensor)
        or not isinstance(indices, Sequence)
    ):
        return result
    tensors = [index for index in indices if isinstance(index, torch.Tensor)]
    masks = any(index.dtype in (torch.bool, torch.uint8) for index in tensors)
    if (
        masks
        or not tensors
        or all(index.is_contiguous() for index in tensors)
        or not _is_known(source, result, *tensors)
    ):
        return result
    if not result.numel() or not source.numel():
        return result
    places = [place for place, index in enumerate(indices) if index is not None]
    operands = _operand_strides(source, tensors, places, tuple(result.shape))
    strides = dense_strides(tuple(result.shape), operands)
    return (
        result
        if strides == result.stride()
        else torch.empty_strided(result.shape, strides, dtype=result.dtype, device=result.device)
    )


def _is_known(*tensors: torch.Tensor) -> bool:
    return all(type(number) is int for tensor in tensors for number in (*tensor.shape, *tensor.stride()))


def _operand_strides(
    source: torch.Tensor, tensors: Sequence[torch.Tensor], places: Sequence[int], shape: tuple[int, ...]
) -> list[Strides]:
    """Return the strides of source and indexes over the dimensions of the result, 0 where one does not move."""
    if any(second != first + 1 for first, second in pairwise(places)):  # the indexed dimensions come first then
        order = [*places, *(dim for dim in range(source.dim()) if dim not in places)]
        source, places = source.permute(order), range(len(places))
    first, rank = places[0], max(index.dim() for index in tensors)
    source_strides = source.stride()
    moved = (*source_strides[:first], *(0 for _ in range(rank)), *source_strides[first + len(places) :])
    picked = shape[first : first + rank]
    operands: list[Strides] = [moved]
    around = (*(1 for _ in range(first)), *picked, *(1 for _ in shape[first + rank :]))
    operands += [_reshaped_strides(index, picked, around, shape) for index in tensors]
    return operands


def _reshaped_strides(
    index: torch.Tensor, picked: tuple[int, ...], around: tuple[int, ...], shape: tuple[int, ...]
) -> Strides:
    """Return the strides of an index as the kernel reshapes it: dimensions of size 1 have some, and count."""
    with without_dispatch_modes(), torch.no_grad():
        twin = torch.empty_strided(index.shape, index.stride(), device="meta").expand(picked).reshape(around)
    rows = zip(twin.shape, twin.stride(), shape, strict=True)
    return tuple(0 if size == 1 and whole != 1 else step for size, step, whole in rows)


def dense_strides(shape: tuple[int, ...], operands: Sequence[Strides]) -> tuple[int, ...]:
    """Return the strides of a dense tensor whose dimensions are ordered as those of the operands are."""
    order = list(reversed(range(len(shape))))  # fastest first
    for begin in range(1, len(order)):
        moving = begin
        for other in reversed(range(begin)):
            answer = _compare(order[other], order[moving], shape, operands)
            if answer < 0:
                break
            if answer > 0:
                order[other], order[moving] = order[moving], order[other]
                moving = other
    strides, step = [0] * len(shape), 1
    for dim in order:
        strides[dim] = step
        step *= shape[dim]
    return tuple(strides)


def _compare(one: int, other: int, shape: tuple[int, ...], operands: Sequence[Strides]) -> int:
    """Return 1 where the first dimension has to be slower than the second, -1 where it is faster, 0 for either."""
    for strides in operands:
        if not strides[one] or not strides[other]:
            continue
        if strides[one] != strides[other]:
            return 1 if strides[one] > strides[other] else -1
        if shape[one] > shape[other]:
            return 1
    return 0
