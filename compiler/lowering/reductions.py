"""Sums, extremes, moments, softmax and layer normalisation.

Half types are summed in float32 and rounded once.  Variances take the mean first and then the squares of the
differences, which loses nothing to cancellation; softmax subtracts the greatest element first.
"""

from __future__ import annotations

import torch

from ..loops.body import Scalar, ScalarBuilder
from ..symbolic.expr import ZERO
from ..symbolic.index_space import product
from .pointwise import truth
from .registry import LoweringCall, dimensions, lowers, opmath
from .writer import Index, LoopTensor, NoLowering, Reduction

aten = torch.ops.aten
B = ScalarBuilder


def folded(index: Index, dims: tuple[int, ...]) -> Index:
    """Return the index into a tensor that kept the reduced dims with size one."""
    return tuple(ZERO if n in dims else part for n, part in enumerate(index))


def _argument_dtype(call: LoweringCall, source: LoopTensor) -> torch.dtype:
    asked = call.arguments.get("dtype")
    return asked if isinstance(asked, torch.dtype) else source.dtype


@lowers(aten.sum.default, aten.sum.dim_IntList)
def lower_sum(call: LoweringCall) -> LoopTensor:
    """Sum; integers and bool in int64."""
    source = call.tensor("self")
    inside = opmath(call.dtype)
    # a dtype given to sum converts every element first
    entry = _argument_dtype(call, source) if call.arguments.get("dtype") is not None else source.dtype
    dims = dimensions(call, "dim", len(source.shape))
    kind = "any" if inside == torch.bool else "sum"  # a sum asked for in bool adds truths
    return call.reduction(
        Reduction(source.shape, dims, kind, inside, lambda b, i: b.cast(b.cast(source.at(b, i), entry), inside))
    )


@lowers(aten.mean.default, aten.mean.dim)
def lower_mean(call: LoweringCall) -> LoopTensor:
    """Sum divided by the count, rounded once."""
    source = call.tensor("self")
    inside = opmath(call.dtype)
    dims = dimensions(call, "dim", len(source.shape))
    count = product(source.shape[dim] for dim in dims)
    return call.reduction(
        Reduction(
            source.shape,
            dims,
            "sum",
            inside,
            lambda b, i: b.cast(source.at(b, i), inside),
            finish=lambda b, s: b.op("div", s, b.constant(count, inside)),
        )
    )


def _extreme(call: LoweringCall, kind: str, dims: tuple[int, ...], result: int = 0) -> LoopTensor:
    source = call.tensor("self")
    if any(source.shape[dim] == 0 for dim in dims):
        raise NoLowering("extreme of nothing")
    if source.dtype == torch.bool:
        truth_kind = "any" if kind == "max" else "all"
        return call.reduction(Reduction(source.shape, dims, truth_kind, torch.bool, source.at), result=result)
    inside = opmath(source.dtype)
    return call.reduction(
        Reduction(source.shape, dims, kind, inside, lambda b, i: b.cast(source.at(b, i), inside)), result=result
    )


@lowers(aten.amax.default)
def lower_amax(call: LoweringCall) -> LoopTensor:
    """The greatest; NaN wins."""
    return _extreme(call, "max", dimensions(call, "dim", len(call.tensor("self").shape)))


@lowers(aten.amin.default)
def lower_amin(call: LoweringCall) -> LoopTensor:
    """The least; NaN wins."""
    return _extreme(call, "min", dimensions(call, "dim", len(call.tensor("self").shape)))


@lowers(aten.max.default)
def lower_max(call: LoweringCall) -> LoopTensor:
    """The greatest of all."""
    return _extreme(call, "max", tuple(range(len(call.tensor("self").shape))))


@lowers(aten.min.default)
def lower_min(call: LoweringCall) -> LoopTensor:
    """The least of all."""
    return _extreme(call, "min", tuple(range(len(call.tensor("self").shape))))


def _extreme_and_place(call: LoweringCall, kind: str) -> tuple[LoopTensor, LoopTensor]:
    source = call.tensor("self")
    if not source.shape or source.dtype == torch.bool:
        raise NoLowering("place in a scalar or among bools")
    dims = dimensions(call, "dim", len(source.shape))
    return _extreme(call, kind, dims), _place(call, kind, dims, result=1)


@lowers(aten.max.dim)
def lower_max_dim(call: LoweringCall) -> tuple[LoopTensor, LoopTensor]:
    """The greatest and its first place."""
    return _extreme_and_place(call, "max")


@lowers(aten.min.dim)
def lower_min_dim(call: LoweringCall) -> tuple[LoopTensor, LoopTensor]:
    """The least and its first place."""
    return _extreme_and_place(call, "min")


def _place(call: LoweringCall, kind: str, dims: tuple[int, ...], result: int = 0) -> LoopTensor:
    source = call.tensor("self")
    if any(source.shape[dim] == 0 for dim in dims) or source.dtype == torch.bool:
        raise NoLowering("place of an extreme of nothing")
    inside = opmath(source.dtype)
    return call.reduction(
        Reduction(source.shape, dims, f"arg{kind}", torch.int64, lambda b, i: b.cast(source.at(b, i), inside)),
        result=result,
    )


@lowers(aten.argmax.default)
def lower_argmax(call: LoweringCall) -> LoopTensor:
    """The first place of the greatest."""
    return _place(call, "max", dimensions(call, "dim", len(call.tensor("self").shape)))


@lowers(aten.argmin.default)
def lower_argmin(call: LoweringCall) -> LoopTensor:
    """The first place of the least."""
    return _place(call, "min", dimensions(call, "dim", len(call.tensor("self").shape)))


def _truths(call: LoweringCall, kind: str) -> LoopTensor:
    source = call.tensor("self")
    wide = opmath(source.dtype)
    dim = call.arguments.get("dim")
    if isinstance(dim, list | tuple) and not dim:  # nothing is reduced, unlike in a sum
        return call.elements(lambda b, i: b.cast(truth(b, b.cast(source.at(b, i), wide)), call.dtype))
    dims = dimensions(call, "dim", len(source.shape))
    return call.reduction(
        Reduction(source.shape, dims, kind, torch.bool, lambda b, i: truth(b, b.cast(source.at(b, i), wide)))
    )


@lowers(aten.any.default, aten.any.dim, aten.any.dims)
def lower_any(call: LoweringCall) -> LoopTensor:
    """Whether some element is not zero."""
    return _truths(call, "any")


@lowers(aten.all.default, aten.all.dim, aten.all.dims)
def lower_all(call: LoweringCall) -> LoopTensor:
    """Whether every element is not zero."""
    return _truths(call, "all")


@lowers(aten.prod.default, aten.prod.dim_int)
def lower_prod(call: LoweringCall) -> LoopTensor:
    """Product; integers and bool in int64."""
    source = call.tensor("self")
    if call.dtype in (torch.float16, torch.bfloat16) or (source.dtype != call.dtype and call.dtype != torch.int64):
        raise NoLowering("product with a change of float type")
    dims = dimensions(call, "dim", len(source.shape))
    return call.reduction(
        Reduction(source.shape, dims, "prod", call.dtype, lambda b, i: b.cast(source.at(b, i), call.dtype))
    )


def _mean(call: LoweringCall, source: LoopTensor, dims: tuple[int, ...], inside: torch.dtype) -> LoopTensor:
    """Append the loop of the mean, dims kept, in dtype `inside`; returns it."""
    count = product(source.shape[dim] for dim in dims)
    return call.writer.reduce(
        Reduction(
            source.shape,
            dims,
            "sum",
            inside,
            lambda b, i: b.cast(source.at(b, i), inside),
            finish=lambda b, s: b.op("div", s, b.constant(count, inside)),
        ),
        dtype=inside,
        name=f"{call.name}_mean",
    )


def _squares(b: B, index: Index, source: LoopTensor, mean: LoopTensor, dims: tuple[int, ...]) -> Scalar:
    centred = b.op("sub", b.cast(source.at(b, index), mean.dtype), mean.at(b, folded(index, dims)))
    return b.op("mul", centred, centred)


def _variance(call: LoweringCall, *, root: bool, result: int = 0) -> tuple[LoopTensor, LoopTensor]:
    source = call.tensor("self")
    if source.dtype.is_complex:
        raise NoLowering("complex variance")
    dims = dimensions(call, "dim", len(source.shape))
    correction = call.arguments.get("correction")
    freedom = 1 if correction is None else correction
    count = product(source.shape[dim] for dim in dims)
    if not isinstance(freedom, int | float) or freedom != int(freedom):
        raise NoLowering("variance with a correction that is no whole number")
    if count == 0 or count - int(freedom) <= 0:
        raise NoLowering("variance of too few elements")
    inside = torch.float64  # as eager's kernels, whose squares neither vanish nor overflow
    mean = _mean(call, source, dims, inside)

    def finish(b: B, total: Scalar) -> Scalar:
        value = b.op("div", total, b.constant(count - int(freedom), inside))
        return b.op("sqrt", value) if root else value

    spread = call.reduction(
        Reduction(source.shape, dims, "sum", inside, lambda b, i: _squares(b, i, source, mean, dims), finish=finish),
        result=result,
    )
    return spread, mean


@lowers(aten.var.correction)
def lower_var(call: LoweringCall) -> LoopTensor:
    """Variance by two passes."""
    return _variance(call, root=False)[0]


@lowers(aten.std.correction)
def lower_std(call: LoweringCall) -> LoopTensor:
    """Square root of the variance."""
    return _variance(call, root=True)[0]


@lowers(aten.var_mean.correction)
def lower_var_mean(call: LoweringCall) -> tuple[LoopTensor, LoopTensor]:
    """Variance and mean."""
    return _with_mean(call, *_variance(call, root=False))


@lowers(aten.std_mean.correction)
def lower_std_mean(call: LoweringCall) -> tuple[LoopTensor, LoopTensor]:
    """Square root of the variance, and mean."""
    return _with_mean(call, *_variance(call, root=True))


def _with_mean(call: LoweringCall, spread: LoopTensor, mean: LoopTensor) -> tuple[LoopTensor, LoopTensor]:
    """Return a spread and the mean as the second result of the call."""
    dims = dimensions(call, "dim", len(call.tensor("self").shape))
    shown = call.results[1]
    shape = call.read.sizes(shown.shape)
    keeps = len(shape) == len(mean.shape)

    def element(b: B, index: Index) -> Scalar:
        rest = iter(index)
        full = index if keeps else tuple(ZERO if n in dims else next(rest) for n in range(len(mean.shape)))
        return mean.at(b, full)

    strides = call.read.sizes(shown.stride())
    return spread, call.writer.compute(shape, shown.dtype, element, name=call.name, strides=strides)


def _softmax_parts(call: LoweringCall) -> tuple[LoopTensor, tuple[int, ...], torch.dtype, LoopTensor]:
    source = call.tensor("self")
    if not source.shape or 0 in source.shape:
        raise NoLowering("softmax of a scalar or of nothing")
    dims = dimensions(call, "dim", len(source.shape))
    inside = opmath(source.dtype)
    if call.dtype != source.dtype:
        inside = call.dtype
    peak = call.writer.reduce(
        Reduction(source.shape, dims, "max", inside, lambda b, i: b.cast(source.at(b, i), inside)),
        dtype=inside,
        name=f"{call.name}_peak",
    )
    return source, dims, inside, peak


@lowers(aten._softmax.default)
def lower_softmax(call: LoweringCall) -> LoopTensor:
    """exp(x - max) divided by its sum."""
    source, dims, inside, peak = _softmax_parts(call)
    lifted = call.writer.compute(
        source.shape,
        inside,
        lambda b, i: b.op("exp", b.op("sub", b.cast(source.at(b, i), inside), peak.at(b, folded(i, dims)))),
        name=f"{call.name}_exp",
    )
    total = call.writer.reduce(
        Reduction(source.shape, dims, "sum", inside, lifted.at), dtype=inside, name=f"{call.name}_sum"
    )
    return call.elements(lambda b, i: b.op("div", lifted.at(b, i), total.at(b, folded(i, dims))))


@lowers(aten._log_softmax.default)
def lower_log_softmax(call: LoweringCall) -> LoopTensor:
    """x - max - log(sum(exp(x - max)))."""
    source, dims, inside, peak = _softmax_parts(call)

    def shifted(b: B, index: Index) -> Scalar:
        return b.op("sub", b.cast(source.at(b, index), inside), peak.at(b, folded(index, dims)))

    total = call.writer.reduce(
        Reduction(
            source.shape,
            dims,
            "sum",
            inside,
            lambda b, i: b.op("exp", shifted(b, i)),
            finish=lambda b, s: b.op("log", s),
        ),
        dtype=inside,
        name=f"{call.name}_sum",
    )
    return call.elements(lambda b, i: b.op("sub", shifted(b, i), total.at(b, folded(i, dims))))


@lowers(aten.logsumexp.default)
def lower_logsumexp(call: LoweringCall) -> LoopTensor:
    """log(sum(exp(x - m))) + m, where m is the greatest element, or zero where that is infinite."""
    source = call.tensor("self")
    dims = dimensions(call, "dim", len(source.shape))
    if not source.shape or 0 in source.shape or not source.dtype.is_floating_point:
        raise NoLowering("logsumexp of a scalar, of nothing or of integers")
    if call.arguments.get("dim") in ([], ()) and not call.arguments.get("keepdim"):
        raise NoLowering("logsumexp over no dimension in particular that keeps none: eager refuses it")
    inside = opmath(source.dtype)

    def finite(b: B, peak: Scalar) -> Scalar:
        infinite = b.op("eq", b.op("abs", peak), b.constant(float("inf"), inside))
        return b.op("where", infinite, b.constant(0, inside), peak)

    peak = call.writer.reduce(
        Reduction(source.shape, dims, "max", inside, lambda b, i: b.cast(source.at(b, i), inside), finish=finite),
        dtype=inside,
        name=f"{call.name}_peak",
    )
    total = call.writer.reduce(
        Reduction(
            source.shape,
            dims,
            "sum",
            inside,
            lambda b, i: b.op("exp", b.op("sub", b.cast(source.at(b, i), inside), peak.at(b, folded(i, dims)))),
            finish=lambda b, s: b.op("log", s),
        ),
        dtype=inside,
        name=f"{call.name}_sum",
    )
    keeps = len(call.shape) == len(source.shape)

    def element(b: B, index: Index) -> Scalar:
        rest = iter(index)
        full = index if keeps else tuple(ZERO if n in dims else next(rest) for n in range(len(source.shape)))
        return b.op("add", total.at(b, full), peak.at(b, full))

    return call.elements(element)


def _gradient_parts(call: LoweringCall) -> tuple[LoopTensor, LoopTensor, tuple[int, ...], torch.dtype]:
    grad, output = call.tensor("grad_output"), call.tensor("output")
    if not output.shape or 0 in output.shape:
        raise NoLowering("softmax of a scalar or of nothing")
    return grad, output, dimensions(call, "dim", len(output.shape)), opmath(output.dtype)


@lowers(aten._softmax_backward_data.default)
def lower_softmax_backward(call: LoweringCall) -> LoopTensor:
    """(grad - sum(grad * y)) * y."""
    grad, output, dims, inside = _gradient_parts(call)

    def product(b: B, index: Index) -> Scalar:
        return b.op("mul", b.cast(grad.at(b, index), inside), b.cast(output.at(b, index), inside))

    total = call.writer.reduce(
        Reduction(output.shape, dims, "sum", inside, product), dtype=inside, name=f"{call.name}_sum"
    )

    def element(b: B, index: Index) -> Scalar:
        rest = b.op("sub", b.cast(grad.at(b, index), inside), total.at(b, folded(index, dims)))
        return b.op("mul", rest, b.cast(output.at(b, index), inside))

    return call.elements(element)


@lowers(aten._log_softmax_backward_data.default)
def lower_log_softmax_backward(call: LoweringCall) -> LoopTensor:
    """grad - exp(y) * sum(grad)."""
    grad, output, dims, inside = _gradient_parts(call)
    total = call.writer.reduce(
        Reduction(output.shape, dims, "sum", inside, lambda b, i: b.cast(grad.at(b, i), inside)),
        dtype=inside,
        name=f"{call.name}_sum",
    )

    def element(b: B, index: Index) -> Scalar:
        lifted = b.op("exp", b.cast(output.at(b, index), inside))
        return b.op("sub", b.cast(grad.at(b, index), inside), b.op("mul", lifted, total.at(b, folded(index, dims))))

    return call.elements(element)


@lowers(aten.native_layer_norm.default)
def lower_layer_norm(call: LoweringCall) -> tuple[LoopTensor, ...]:
    """(x - mean) / sqrt(var + eps) * weight + bias, with mean and the reciprocal deviation."""
    source = call.tensor("input")
    rank = len(source.shape)
    inner = len(call.extents("normalized_shape"))  # only how many: they are the last sizes of the input
    dims = tuple(range(rank - inner, rank))
    inside, epsilon = opmath(source.dtype), call.number("eps")
    if 0 in source.shape or call.dtype != source.dtype:
        raise NoLowering("layer norm of nothing")
    statistics = call.results[1].dtype  # of half tensors with float32 parameters they are float32
    mean = _mean(call, source, dims, inside)
    count = product(source.shape[dim] for dim in dims)

    def finish(b: B, total: Scalar) -> Scalar:
        spread = b.op("add", b.op("div", total, b.constant(count, inside)), b.constant(epsilon, inside))
        return b.op("div", b.constant(1, inside), b.op("sqrt", spread))

    scale = call.writer.reduce(
        Reduction(source.shape, dims, "sum", inside, lambda b, i: _squares(b, i, source, mean, dims), finish=finish),
        dtype=inside,
        name=f"{call.name}_scale",
    )
    weight, bias = call.arguments.get("weight"), call.arguments.get("bias")

    def element(b: B, index: Index) -> Scalar:
        at = folded(index, dims)
        value = b.op("sub", b.cast(source.at(b, index), inside), mean.at(b, at))
        value = b.op("mul", value, scale.at(b, at))
        if isinstance(weight, LoopTensor):
            value = b.op("mul", value, b.cast(weight.at(b, index[rank - inner :]), inside))
        if isinstance(bias, LoopTensor):
            value = b.op("add", value, b.cast(bias.at(b, index[rank - inner :]), inside))
        return value

    return (
        call.elements(element),
        call.elements(lambda b, i: b.cast(mean.at(b, i), statistics), 1),
        call.elements(lambda b, i: b.cast(scale.at(b, i), statistics), 2),
    )
