"""Results so far along a dimension: `cumsum` and `cumprod`, as loops where kernels can have scans.

Sums and products run in the dtype of the result, float32 for half types.  Eager on a CPU adds float32 in float64, one
element after the other; on a GPU it adds in float32 in the order of a tree, as kernels do.
"""

from __future__ import annotations

import torch

from ..symbolic.symbolic_sizes import same
from .registry import LoweringCall, lowers, opmath
from .writer import LoopTensor, NoLowering, Scan

aten = torch.ops.aten


def _scanned(call: LoweringCall, kind: str) -> LoopTensor:
    if not call.writer.scans:
        raise NoLowering("scans are loops in Triton alone")
    source = call.tensor("self")
    if any(same(size, 0) for size in source.shape):
        raise NoLowering("a scan of nothing")
    if not source.shape or call.dtype == torch.bool:
        raise NoLowering("a scan of a scalar, or in bool")
    dim, inside = call.dimension(len(source.shape)), opmath(call.dtype)
    if same(source.shape[dim], 1):
        return call.elements(lambda b, i: b.cast(source.at(b, i), call.dtype))
    scan = Scan(
        source.shape, dim, kind, inside, lambda b, i: b.cast(b.cast(source.at(b, i), call.dtype), inside)
    )  # a dtype that is asked for converts every element first
    return call.writer.scan(scan, dtype=call.dtype, name=call.name, strides=call.read.sizes(call.results[0].stride()))


@lowers(aten.cumsum.default)
def lower_cumsum(call: LoweringCall) -> LoopTensor:
    """The sums so far; of whole numbers and bool in int64."""
    return _scanned(call, "sum")


@lowers(aten.cumprod.default)
def lower_cumprod(call: LoweringCall) -> LoopTensor:
    """The products so far; of whole numbers and bool in int64."""
    return _scanned(call, "prod")
