"""Tensors made from numbers alone."""

from __future__ import annotations

import torch

from ..loops.body import Scalar, ScalarBuilder
from ..symbolic.expr import add, as_expr, scale
from ..symbolic.symbolic_sizes import Size
from .registry import LoweringCall, check_fits, lowers, opmath
from .writer import Index, LoopTensor, NoLowering

aten = torch.ops.aten
B = ScalarBuilder


def filled(call: LoweringCall, value: float | int | bool) -> LoopTensor:
    """Return a tensor of one value."""
    check_fits(value, call.dtype)
    return call.elements(lambda b, _: b.cast(b.constant(value, opmath(call.dtype)), call.dtype))


@lowers(aten.full.default, aten.full_like.default, aten.new_full.default)
def lower_full(call: LoweringCall) -> LoopTensor:
    """One value everywhere."""
    return filled(call, call.number("fill_value"))


@lowers(aten.fill.Scalar)
def lower_fill(call: LoweringCall) -> LoopTensor:
    """A tensor's form with one value."""
    return filled(call, call.number("value"))


@lowers(aten.zeros.default, aten.zeros_like.default, aten.new_zeros.default)
def lower_zeros(call: LoweringCall) -> LoopTensor:
    """Zero everywhere."""
    return filled(call, 0)


@lowers(aten.ones.default, aten.ones_like.default, aten.new_ones.default)
def lower_ones(call: LoweringCall) -> LoopTensor:
    """One everywhere."""
    return filled(call, 1)


@lowers(aten.scalar_tensor.default)
def lower_scalar_tensor(call: LoweringCall) -> LoopTensor:
    """A number as a tensor."""
    return filled(call, call.number("s"))


@lowers(aten.arange.default, aten.arange.start, aten.arange.start_step)
def lower_arange(call: LoweringCall) -> LoopTensor:
    """start, start + step, ...; floats are ATen's, which adds them its own way."""
    start = call.arguments.get("start", 0)
    step = call.arguments.get("step", 1)
    if call.dtype not in (torch.int64, torch.int32) or not isinstance(start, int | Size) or not isinstance(step, int):
        raise NoLowering("range of floats")

    def element(b: B, index: Index) -> Scalar:
        return b.cast(b.index(add(scale(index[0], step), as_expr(start)), torch.int64), call.dtype)

    return call.elements(element)
