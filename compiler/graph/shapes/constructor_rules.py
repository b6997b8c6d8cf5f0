"""New tensors, whose sizes are said or are those of another."""

from collections.abc import Sequence
from typing import Any

import torch

from .fake_templates import key_of
from .sized_call import SizedCall, Undecided, gives

aten = torch.ops.aten


@gives(aten.empty_strided.default)
def made(call: SizedCall) -> torch.Tensor:
    """Sizes and strides are said; torch computes for each new tensor what follows from its sizes."""
    return call.new(call.value("size"), call.value("stride"), _dtype(call), _device(call))


@gives(aten.empty.memory_format, aten.zeros.default, aten.ones.default)
def made_row_major(call: SizedCall) -> torch.Tensor:
    """Sizes are said."""
    if call.kwargs.get("memory_format") not in (None, torch.contiguous_format):
        raise Undecided
    return _row_major(call, call.value("size"), _dtype(call), _device(call))


@gives(aten.new_empty.default, aten.new_zeros.default, aten.new_ones.default, aten.new_full.default)
def made_beside(call: SizedCall) -> torch.Tensor:
    """Sizes are said, dtype and device are those of another tensor where they are not."""
    like = call.operand("self").tensor
    dtype, device = call.value("dtype") or like.dtype, torch.device(call.value("device") or like.device)
    if call.value("layout") not in (None, torch.strided) or call.value("pin_memory"):
        raise Undecided
    return _row_major(call, call.value("size"), dtype, device)


def _dtype(call: SizedCall) -> torch.dtype:
    dtype: torch.dtype = call.value("dtype") or torch.get_default_dtype()
    return dtype


def _device(call: SizedCall) -> torch.device:
    """Return where a new tensor is, if nothing else is special about it."""
    if call.value("device") is None or call.value("layout") not in (None, torch.strided) or call.value("pin_memory"):
        raise Undecided
    return torch.device(call.value("device"))


def _row_major(call: SizedCall, sizes: Sequence[Any], dtype: torch.dtype, device: torch.device) -> torch.Tensor:
    if not sizes:  # a number, which capture may know
        raise Undecided
    return call.new(sizes, call.row_major_strides(sizes, key_of(sizes)), dtype, device)


@gives(aten.clone.default)
def cloned(call: SizedCall) -> torch.Tensor:
    """The same elements in new memory."""
    operand, order = call.operand("self"), call.value("memory_format")
    if order is torch.contiguous_format:
        return call.row_major(operand.sizes, operand.tensor.dtype, operand)
    if order not in (None, torch.preserve_format):
        raise Undecided
    return call.laid_out_as(operand, operand.tensor.dtype)


@gives(aten.zeros_like.default, aten.ones_like.default, aten.full_like.default, aten.empty_like.default)
def filled_like(call: SizedCall) -> torch.Tensor:
    """New elements, where the operand has its own."""
    if any(value is not None for name, value in call.kwargs.items() if name not in ("dtype", "memory_format")):
        raise Undecided
    operand, order = call.operand("self"), call.value("memory_format")
    dtype = call.value("dtype") or operand.tensor.dtype
    if order is torch.contiguous_format:
        return call.row_major(operand.sizes, dtype, operand)
    if order not in (None, torch.preserve_format):
        raise Undecided
    return call.laid_out_as(operand, dtype)
