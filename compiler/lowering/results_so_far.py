"""Results so far along a dimension: `cumsum`, `cummax` and their like, as loops where kernels can have scans.

Sums and products run in the dtype of the result, float32 for half types.  Eager on a CPU adds float32 in float64, one
element after the other; on a GPU it adds in float32 in the order of a tree, as kernels do.  An extreme so far is the
last of those that are equal, and its place is a result so far itself: the last place at which there was a new one.
"""

from __future__ import annotations

import torch

from ..loops.body import Scalar, ScalarBuilder
from ..symbolic.expr import Expr
from ..symbolic.symbolic_sizes import same
from .registry import LoweringCall, lowers, opmath
from .writer import LoopTensor, NoLowering, Scan

aten = torch.ops.aten


def _source(call: LoweringCall) -> tuple[LoopTensor, int]:
    """Return what is scanned, and along which dimension."""
    if not call.writer.scans:
        raise NoLowering("scans are loops in Triton alone")
    source = call.tensor("self")
    if any(same(size, 0) for size in source.shape):
        raise NoLowering("a scan of nothing")
    if not source.shape:
        raise NoLowering("a scan of a scalar")
    return source, call.dimension(len(source.shape))


def _scanned(call: LoweringCall, kind: str) -> LoopTensor:
    source, dim = _source(call)
    if call.dtype == torch.bool:
        raise NoLowering("a scan in bool")
    inside = opmath(call.dtype)
    if same(source.shape[dim], 1):
        return call.elements(lambda b, i: b.cast(source.at(b, i), call.dtype))

    def element(builder: ScalarBuilder, index: tuple[Expr, ...]) -> Scalar:
        # a dtype that is asked for converts every element first
        return builder.cast(builder.cast(source.at(builder, index), call.dtype), inside)

    return _written(call, Scan(source.shape, dim, kind, inside, element))


def _written(call: LoweringCall, scan: Scan, result: int = 0) -> LoopTensor:
    fake = call.results[result]
    return call.writer.scan(scan, dtype=fake.dtype, name=call.name, strides=call.read.sizes(fake.stride()))


@lowers(aten.cumsum.default)
def lower_cumsum(call: LoweringCall) -> LoopTensor:
    """The sums so far; of whole numbers and bool in int64."""
    return _scanned(call, "sum")


@lowers(aten.cumprod.default)
def lower_cumprod(call: LoweringCall) -> LoopTensor:
    """The products so far; of whole numbers and bool in int64."""
    return _scanned(call, "prod")


@lowers(aten.logcumsumexp.default)
def lower_logcumsumexp(call: LoweringCall) -> LoopTensor:
    """The logarithms of the sums of exponentials so far."""
    return _scanned(call, "logsumexp")


def _extreme_and_place(call: LoweringCall, kind: str) -> tuple[LoopTensor, LoopTensor]:
    source, dim = _source(call)
    inside = torch.uint8 if source.dtype == torch.bool else opmath(source.dtype)
    if same(source.shape[dim], 1):
        nothing_before = call.elements(lambda b, i: b.constant(0, torch.int64), result=1)
        return call.elements(lambda b, i: source.at(b, i)), nothing_before

    def element(builder: ScalarBuilder, index: tuple[Expr, ...]) -> Scalar:
        return builder.cast(source.at(builder, index), inside)

    def place(builder: ScalarBuilder, index: tuple[Expr, ...]) -> Scalar:
        value = element(builder, index)
        reached = builder.op("eq", value, builder.scan(kind, value, inside))
        if inside.is_floating_point:
            reached = builder.op("bit_or", reached, builder.op("ne", value, value))
        first = builder.constant(0, torch.int64)
        return builder.op("where", reached, builder.index(index[dim], torch.int64), first)

    values = _written(call, Scan(source.shape, dim, kind, inside, element))
    return values, _written(call, Scan(source.shape, dim, "max", torch.int64, place), result=1)


@lowers(aten.cummax.default)
def lower_cummax(call: LoweringCall) -> tuple[LoopTensor, LoopTensor]:
    """The greatest so far and its last place; NaN stays."""
    return _extreme_and_place(call, "max")


@lowers(aten.cummin.default)
def lower_cummin(call: LoweringCall) -> tuple[LoopTensor, LoopTensor]:
    """The least so far and its last place; NaN stays."""
    return _extreme_and_place(call, "min")
