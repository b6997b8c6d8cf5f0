"""Batch normalisation: with running statistics a pointwise formula, in training two sums per channel before it.

As in eager's kernels for dense tensors, sums run in float64 and are rounded to the tensor's dtype, and what is applied
is x * alpha + beta, where alpha and beta are one number per channel.
"""

from __future__ import annotations

import torch

from ..loops.body import Scalar, ScalarBuilder
from ..symbolic.expr import ZERO
from ..symbolic.index_space import product
from ..symbolic.symbolic_sizes import Extent, surely_at_least
from .registry import LoweringCall, Result, lowers
from .writer import Index, LoopTensor, NoLowering, Reduction

aten = torch.ops.aten
B = ScalarBuilder
WIDE = torch.float64


def channel(index: Index) -> Index:
    """Return the index into a tensor of one number per channel."""
    return index[1:2]


def _optional(call: LoweringCall, name: str) -> LoopTensor | None:
    value = call.arguments.get(name)
    return value if isinstance(value, LoopTensor) else None


def _normalised(
    call: LoweringCall, source: LoopTensor, mean: LoopTensor, invstd: LoopTensor | None, variance: LoopTensor | None
) -> LoopTensor:
    """Return the loop of x * alpha + beta; invstd: the reciprocal deviation, or else variance is given."""
    weight, bias, epsilon, dtype = (
        _optional(call, "weight"),
        _optional(call, "bias"),
        call.number("eps"),
        source.dtype,
    )

    def factor(b: B, at: Index) -> Scalar:
        if invstd is not None:
            alpha = invstd.at(b, at)
        elif variance is not None:
            root = b.op("sqrt", b.op("add", variance.at(b, at), b.constant(epsilon, dtype)))
            alpha = b.op("div", b.constant(1, dtype), root)
        else:
            raise NoLowering("batch norm without statistics")
        return alpha if weight is None else b.op("mul", alpha, weight.at(b, at))

    # a tensor of its own, for a root and a quotient per channel are not to be taken once per element
    alpha = call.writer.compute(mean.shape, dtype, factor, name=f"{call.name}_factor")

    def element(b: B, index: Index) -> Scalar:
        at = channel(index)
        zero = b.constant(0, dtype) if bias is None else bias.at(b, at)
        beta = b.op("fma", b.op("neg", mean.at(b, at)), alpha.at(b, at), zero)
        return b.op("fma", source.at(b, index), alpha.at(b, at), beta)

    return call.elements(element)


def _source(call: LoweringCall) -> LoopTensor:
    """Return the input where loops give what eager's kernel for dense tensors gives."""
    source = call.tensor("input")
    if len(source.shape) < 2 or source.dtype not in (torch.float32, torch.float64):
        raise NoLowering("batch norm of half precision, or without channels")
    if not surely_at_least(product(source.shape), 1):
        raise NoLowering("batch norm of nothing")
    if not _is_laid_out_as_images_are(call.results[0]):
        raise NoLowering("batch norm of another layout, which eager's kernel does not keep")
    for name in ("weight", "bias", "running_mean", "running_var"):
        value = call.arguments.get(name)
        if value is not None and (not isinstance(value, LoopTensor) or value.dtype != source.dtype):
            raise NoLowering(f"batch norm with a {name} of another dtype")
    return source


def _is_laid_out_as_images_are(result: torch.Tensor) -> bool:
    """Return whether channels are innermost or in their place: shape rules keep any layout, kernels only these."""
    innermost = {4: torch.channels_last, 5: torch.channels_last_3d}.get(result.dim(), torch.contiguous_format)
    return result.is_contiguous() or result.is_contiguous(memory_format=innermost)


def _applied(call: LoweringCall) -> Result:
    """Return the results with running statistics; the saved ones are empty on a CPU, and those that ran on a GPU."""
    source, mean, variance = _source(call), _optional(call, "running_mean"), _optional(call, "running_var")
    if mean is None or variance is None:
        raise NoLowering("batch norm without running statistics")
    results: list[LoopTensor | None] = [_normalised(call, source, mean, None, variance)]
    epsilon = call.number("eps")

    def deviation(b: B, index: Index) -> Scalar:
        root = b.op("sqrt", b.op("add", variance.at(b, index), b.constant(epsilon, source.dtype)))
        return b.op("div", b.constant(1, source.dtype), root)

    for number, element in ((1, mean.at), (2, deviation)):
        is_empty = not call.results[number].numel()
        results.append(call.elements((lambda b, _: b.constant(0, source.dtype)) if is_empty else element, number))
    for given, number in ((mean, 3), (variance, 4)):
        if number < len(call.results):
            results.append(call.elements(given.at, number))
    return tuple(results)


def _moments_at_once(
    call: LoweringCall, source: LoopTensor, dims: tuple[int, ...], count: Extent
) -> tuple[LoopTensor, LoopTensor]:
    """Append one loop of the means and of the sums of squared distances from them, dims kept: one read less.

    On a GPU, whose own kernel takes other sums than a CPU's anyway.  In float64 the difference of the sum of squares
    and the square of the sum has digits to spare for what are float32 numbers.
    """

    def wide(power: int) -> LoopTensor:
        def element(b: B, index: Index) -> Scalar:
            value = b.cast(source.at(b, index), WIDE)
            return value if power == 1 else b.op("mul", value, value)

        reduction = Reduction(source.shape, dims, "sum", WIDE, element)
        return call.writer.reduce(reduction, dtype=WIDE, name=f"{call.name}_sums_{power}")

    first, second = wide(1), wide(2)

    def mean(b: B, index: Index) -> Scalar:
        return b.cast(b.op("div", first.at(b, index), b.constant(count, WIDE)), source.dtype)

    def squares(b: B, index: Index) -> Scalar:
        total = first.at(b, index)
        apart = b.op("sub", second.at(b, index), b.op("div", b.op("mul", total, total), b.constant(count, WIDE)))
        return b.cast(b.op("maximum", apart, b.constant(0, WIDE)), source.dtype)

    return (
        call.writer.compute(first.shape, source.dtype, mean, name=f"{call.name}_mean"),
        call.writer.compute(first.shape, source.dtype, squares, name=f"{call.name}_squares"),
    )


def _centre(call: LoweringCall, source: LoopTensor, dims: tuple[int, ...], count: Extent) -> LoopTensor:
    """Append the loop of the means, added in float64, dims kept."""
    reduction = Reduction(
        source.shape,
        dims,
        "sum",
        WIDE,
        lambda b, i: b.cast(source.at(b, i), WIDE),
        finish=lambda b, total: b.op("div", total, b.constant(count, WIDE)),
    )
    return call.writer.reduce(reduction, dtype=source.dtype, name=f"{call.name}_mean")


def _kept(tensor: LoopTensor, at: Index) -> Index:
    """Return the index of a channel's number in a tensor that kept the reduced dimensions."""
    return tuple(at[0] if n == 1 else ZERO for n in range(len(tensor.shape)))


def _trained(call: LoweringCall) -> Result:
    """Return the results of training: sums of the batch, saved, and joined to the running statistics."""
    source, epsilon = _source(call), call.number("eps")
    dims = tuple(n for n in range(len(source.shape)) if n != 1)
    count = product(source.shape[n] for n in dims)
    if epsilon == 0 or not surely_at_least(count, 2):
        raise NoLowering("batch norm of one element per channel, or with nothing added to the variance")
    if source.dtype == torch.float32 and call.results[0].device.type != "cpu":
        mean, squares = _moments_at_once(call, source, dims, count)
    else:
        mean, squares = _moments_of_distances(call, source, dims, count)

    def deviation(b: B, index: Index) -> Scalar:
        variance = b.op("div", squares.at(b, _kept(squares, index)), b.constant(count, source.dtype))
        root = b.op("sqrt", b.op("add", b.cast(variance, WIDE), b.constant(epsilon, WIDE)))
        return b.cast(b.op("div", b.constant(1, WIDE), root), source.dtype)

    saved_mean = call.elements(lambda b, i: mean.at(b, _kept(mean, i)), 1)
    saved_invstd = call.elements(deviation, 2)
    results = (_normalised(call, source, saved_mean, saved_invstd, None), saved_mean, saved_invstd)
    return (*results, *_running(call, saved_mean, squares, count))


def _moments_of_distances(
    call: LoweringCall, source: LoopTensor, dims: tuple[int, ...], count: Extent
) -> tuple[LoopTensor, LoopTensor]:
    """Append the loop of the means and that of the sums of squared distances from them, as eager's kernel on a CPU."""
    mean = _centre(call, source, dims, count)

    def square(b: B, index: Index) -> Scalar:
        at = tuple(part if n == 1 else ZERO for n, part in enumerate(index))
        apart = b.op("sub", source.at(b, index), mean.at(b, at))
        return b.cast(b.op("mul", apart, apart), WIDE)

    reduction = Reduction(source.shape, dims, "sum", WIDE, square)
    return mean, call.writer.reduce(reduction, dtype=source.dtype, name=f"{call.name}_squares")


def _running(call: LoweringCall, mean: LoopTensor, squares: LoopTensor, count: Extent) -> tuple[LoopTensor, ...]:
    """Return the new running statistics, for the operator that gives them: a step of size `momentum` towards these."""
    if len(call.results) < 5:
        return ()
    momentum = call.number("momentum")

    def joined(name: str, new: LoopTensor | None, number: int) -> LoopTensor:
        old = call.tensor(name)

        def element(b: B, index: Index) -> Scalar:
            kept = b.op("mul", b.constant(1 - momentum, old.dtype), old.at(b, index))
            step = b.constant(momentum, old.dtype)
            if new is not None:
                return b.op("add", b.op("mul", step, new.at(b, index)), kept)
            value = b.op("div", squares.at(b, _kept(squares, index)), b.constant(count - 1, old.dtype))
            return b.op("fma", step, value, kept)

        return call.elements(element, number)

    return joined("running_mean", mean, 3), joined("running_var", None, 4)


@lowers(aten._native_batch_norm_legit_no_training.default)
def lower_batch_norm_applied(call: LoweringCall) -> Result:
    """Batch norm with running statistics."""
    return _applied(call)


@lowers(
    aten.native_batch_norm.default,
    aten._native_batch_norm_legit.no_stats,
    aten._native_batch_norm_legit_functional.default,
)
def lower_batch_norm(call: LoweringCall) -> Result:
    """Batch norm in training, or with running statistics."""
    if not call.arguments["training"]:
        return _applied(call)
    if _optional(call, "running_mean") is not None and len(call.results) < 5:
        raise NoLowering("batch norm that writes to its running statistics")
    return _trained(call)
