"""Arithmetic, comparison, logic and selection, element by element."""

from __future__ import annotations

from collections.abc import Callable

import torch

from ..loops.body import Scalar, ScalarBuilder
from .registry import LoweringCall, check_fits, is_one_number, lowers, opmath, rounded_number
from .writer import Index, LoopTensor, NoLowering, broadcast_index

aten = torch.ops.aten
B = ScalarBuilder


def truth(b: B, value: Scalar) -> Scalar:
    """Return whether a value is not zero."""
    return value if value.dtype == torch.bool else b.op("ne", value, b.constant(0, value.dtype))


def arithmetic(name: str, on_bool: str) -> Callable[..., Scalar]:
    """Return `a <name> b` that means a logical operation on bool."""

    def apply(b: B, x: Scalar, y: Scalar) -> Scalar:
        return b.op(on_bool if x.dtype == torch.bool else name, x, y)

    return apply


def plus_product(b: B, term: Scalar, x: Scalar, y: Scalar) -> Scalar:
    """Return term + x * y; with one rounding, as eager's kernels have it where the CPU has the instruction."""
    if term.dtype.is_floating_point:
        return b.op("fma", x, y, term)
    return b.op("add", term, b.op("mul", x, y))


def scaled(call: LoweringCall, name: str, left: str, right: str) -> LoopTensor:
    """Return `left <name> alpha * right`; eager rounds alpha to the dtype of the result."""
    inside = opmath(call.dtype)
    alpha = rounded_number(call.number("alpha"), call.dtype)
    if alpha != 1:
        check_fits(alpha, inside)

    def apply(b: B, x: Scalar, y: Scalar) -> Scalar:
        if x.dtype == torch.bool:
            if name != "add":
                raise NoLowering("subtraction of bool")
            return b.op("bit_or", x, b.op("bit_and", y, b.constant(bool(alpha), torch.bool)))
        if alpha == 1:
            return b.op(name, x, y)
        if y.dtype.is_floating_point:
            return plus_product(b, x, b.constant(alpha if name == "add" else -alpha, y.dtype), y)
        return b.op(name, x, b.op("mul", b.constant(alpha, y.dtype), y))

    return call.pointwise(apply, left, right, round_numbers=True)


@lowers(aten.add.Tensor, aten.add.Scalar)
def lower_add(call: LoweringCall) -> LoopTensor:
    """x + alpha * y."""
    return scaled(call, "add", "self", "other")


@lowers(aten.sub.Tensor, aten.sub.Scalar)
def lower_sub(call: LoweringCall) -> LoopTensor:
    """x - alpha * y."""
    return scaled(call, "sub", "self", "other")


@lowers(aten.rsub.Tensor, aten.rsub.Scalar)
def lower_rsub(call: LoweringCall) -> LoopTensor:
    """y - alpha * x."""
    return scaled(call, "sub", "other", "self")


@lowers(aten.mul.Tensor, aten.mul.Scalar)
def lower_mul(call: LoweringCall) -> LoopTensor:
    """x * y; `and` on bool."""
    return call.pointwise(arithmetic("mul", "bit_and"), "self", "other", round_numbers=True, exact="other")


def _quotient(b: B, x: Scalar, y: Scalar) -> Scalar:
    return b.op("div", x, y)


@lowers(aten.div.Tensor, aten.div.Scalar)
def lower_div(call: LoweringCall) -> LoopTensor:
    """True division; the result is always floating."""
    return call.pointwise(_quotient, "self", "other", round_numbers=True, exact="other")


@lowers(aten.div.Tensor_mode, aten.div.Scalar_mode)
def lower_div_mode(call: LoweringCall) -> LoopTensor:
    """Division rounded as asked."""
    mode = call.arguments["rounding_mode"]
    if mode is None:
        return call.pointwise(_quotient, "self", "other", round_numbers=True, exact="other")
    stored, divide = _rounded_between(call), floor_divide if mode == "floor" else trunc_divide
    return call.pointwise(lambda b, x, y: divide(b, x, y, stored), "self", "other", round_numbers=True, exact="other")


@lowers(aten.floor_divide.default, aten.floor_divide.Scalar)
def lower_floor_divide(call: LoweringCall) -> LoopTensor:
    """Division rounded down."""
    stored = _rounded_between(call)
    return call.pointwise(
        lambda b, x, y: floor_divide(b, x, y, stored), "self", "other", round_numbers=True, exact="other"
    )


def _rounded_between(call: LoweringCall) -> torch.dtype:
    """Return the dtype that eager rounds the steps of a division to: that of the result, but for a single divisor.

    Half types divided by one number, a tensor of one element included, are divided in float32 and rounded once.
    """
    return opmath(call.dtype) if is_one_number(call.arguments["other"]) else call.dtype


def trunc_divide(b: B, x: Scalar, y: Scalar, stored: torch.dtype) -> Scalar:
    """Return x / y rounded towards zero, after it was rounded to the dtype stored."""
    if x.dtype.is_floating_point:
        return b.op("trunc", b.cast(b.cast(b.op("div", x, y), stored), x.dtype))
    return b.op("trunc_div", x, y)


def signs_differ(b: B, x: Scalar, y: Scalar) -> Scalar:
    """Return whether exactly one of two numbers is negative."""
    zero = b.constant(0, x.dtype)
    return b.op("bit_xor", b.op("lt", x, zero), b.op("lt", y, zero))


def floor_divide(b: B, x: Scalar, y: Scalar, stored: torch.dtype) -> Scalar:
    """Return x / y rounded down, exact for floats as Python's own: from the exact remainder, not the rounded ratio.

    stored: the dtype that every step is rounded to.
    """

    def step(value: Scalar) -> Scalar:
        return b.cast(b.cast(value, stored), x.dtype)

    zero, one = b.constant(0, x.dtype), b.constant(1, x.dtype)
    if not x.dtype.is_floating_point:
        whole = b.op("trunc_div", x, y)
        rest = b.op("sub", x, b.op("mul", whole, y))
        low = b.op("bit_and", b.op("ne", rest, zero), signs_differ(b, rest, y))
        return b.op("where", low, b.op("sub", whole, one), whole)
    rest = step(b.op("fmod", x, y))
    whole = step(b.op("div", step(b.op("sub", x, rest)), y))
    low = b.op("bit_and", b.op("ne", rest, zero), signs_differ(b, rest, y))
    whole = b.op("where", low, step(b.op("sub", whole, one)), whole)
    down = b.op("floor", whole)
    half = b.constant(0.5, x.dtype)
    up = b.op("where", b.op("gt", step(b.op("sub", whole, down)), half), step(b.op("add", down, one)), down)
    ratio = step(b.op("div", x, y))
    result = b.op("where", b.op("ne", whole, zero), up, b.op("copysign", zero, ratio))
    return b.op("where", b.op("eq", y, zero), ratio, result)


def remainder_towards_zero(b: B, x: Scalar, y: Scalar) -> Scalar:
    """Return the remainder with the dividend's sign, as C's fmod and %."""
    if x.dtype.is_floating_point:
        return b.op("fmod", x, y)
    return b.op("sub", x, b.op("mul", b.op("trunc_div", x, y), y))


def remainder_of(b: B, x: Scalar, y: Scalar) -> Scalar:
    """Return the remainder with the divisor's sign."""
    zero = b.constant(0, x.dtype)
    rest = remainder_towards_zero(b, x, y)
    other = b.op("bit_and", b.op("ne", rest, zero), signs_differ(b, rest, y))
    return b.op("where", other, b.op("add", rest, y), rest)


@lowers(aten.remainder.Tensor, aten.remainder.Scalar, aten.remainder.Scalar_Tensor)
def lower_remainder(call: LoweringCall) -> LoopTensor:
    """Python's `%`."""
    return call.pointwise(remainder_of, "self", "other", round_numbers=True)


@lowers(aten.fmod.Tensor, aten.fmod.Scalar)
def lower_fmod(call: LoweringCall) -> LoopTensor:
    """C's fmod: the dividend's sign."""
    return call.pointwise(remainder_towards_zero, "self", "other", round_numbers=True)


for _operator, _name in {
    aten.eq: "eq",
    aten.ne: "ne",
    aten.lt: "lt",
    aten.le: "le",
    aten.gt: "gt",
    aten.ge: "ge",
}.items():

    def _lower_compare(call: LoweringCall, name: str = _name) -> LoopTensor:
        """Compare in the promoted dtype; numbers are rounded to it as eager rounds them."""
        return call.pointwise(
            lambda b, x, y: b.op(name, x, y),
            "self",
            "other",
            compute=call.common_dtype("self", "other"),
            round_numbers=True,
        )

    lowers(_operator.Tensor, _operator.Scalar)(_lower_compare)


def logical(function: Callable[..., Scalar], *names: str) -> Callable[[LoweringCall], LoopTensor]:
    """Return a lowering that applies function to the truth of each argument."""

    def lower(call: LoweringCall) -> LoopTensor:
        def element(b: B, index: Index) -> Scalar:
            tensors = [call.tensor(name) for name in names]
            return function(b, *(truth(b, _widened(b, t.at(b, broadcast_index(index, t.shape)))) for t in tensors))

        return call.elements(element)

    return lower


def _widened(b: B, value: Scalar) -> Scalar:
    return b.cast(value, opmath(value.dtype))


lowers(aten.logical_and.default)(logical(lambda b, x, y: b.op("bit_and", x, y), "self", "other"))
lowers(aten.logical_or.default)(logical(lambda b, x, y: b.op("bit_or", x, y), "self", "other"))
lowers(aten.logical_xor.default)(logical(lambda b, x, y: b.op("bit_xor", x, y), "self", "other"))
lowers(aten.logical_not.default)(logical(lambda b, x: b.op("bit_not", x), "self"))

for _operator, _name in {
    aten.bitwise_and: "bit_and",
    aten.bitwise_or: "bit_or",
    aten.bitwise_xor: "bit_xor",
    aten.bitwise_left_shift: "shift_left",
    aten.bitwise_right_shift: "shift_right",
}.items():

    def _lower_bits(call: LoweringCall, name: str = _name) -> LoopTensor:
        """Bits of integers; logic on bool."""
        if call.dtype.is_floating_point or (call.dtype == torch.bool and name.startswith("shift")):
            raise NoLowering(f"{name} on {call.dtype}")
        return call.pointwise(lambda b, x, y: b.op(name, x, y), "self", "other")

    lowers(_operator.Tensor, getattr(_operator, "Tensor_Scalar" if "shift" in _name else "Scalar"))(_lower_bits)


@lowers(aten.bitwise_not.default)
def lower_bitwise_not(call: LoweringCall) -> LoopTensor:
    """Every bit turned; `not` on bool."""
    return call.pointwise(lambda b, x: b.op("bit_not", x), "self")


@lowers(aten.maximum.default)
def lower_maximum(call: LoweringCall) -> LoopTensor:
    """The greater one; NaN wins."""
    return call.pointwise(arithmetic("maximum", "bit_or"), "self", "other")


@lowers(aten.minimum.default)
def lower_minimum(call: LoweringCall) -> LoopTensor:
    """The lesser one; NaN wins."""
    return call.pointwise(arithmetic("minimum", "bit_and"), "self", "other")


def _number_wins(name: str) -> Callable[..., Scalar]:
    """Return the choice between two of which NaN is the worse one; of zeros of both signs it is the first."""

    def apply(b: B, x: Scalar, y: Scalar) -> Scalar:
        if x.dtype == torch.bool:
            return b.op("bit_or" if name == "ge" else "bit_and", x, y)
        first = b.op("bit_or", b.op(name, x, y), b.op("ne", y, y))
        return b.op("where", first, x, y)

    return apply


@lowers(aten.fmax.default)
def lower_fmax(call: LoweringCall) -> LoopTensor:
    """The greater one; a number wins over NaN."""
    return call.pointwise(_number_wins("ge"), "self", "other")


@lowers(aten.fmin.default)
def lower_fmin(call: LoweringCall) -> LoopTensor:
    """The lesser one; a number wins over NaN."""
    return call.pointwise(_number_wins("le"), "self", "other")


@lowers(aten.where.self, aten.where.ScalarOther, aten.where.ScalarSelf, aten.where.Scalar)
def lower_where(call: LoweringCall) -> LoopTensor:
    """Choose by condition; the values keep their bits."""

    def element(b: B, index: Index) -> Scalar:
        condition = call.tensor("condition")
        chosen = truth(b, condition.at(b, broadcast_index(index, condition.shape)))
        parts = [
            b.cast(call.operand(b, index, call.arguments[name], opmath(call.dtype), rounded=None), call.dtype)
            for name in ("self", "other")
        ]
        return b.op("where", chosen, *parts)

    return call.elements(element)


@lowers(aten.masked_fill.Scalar, aten.masked_fill.Tensor)
def lower_masked_fill(call: LoweringCall) -> LoopTensor:
    """Put a value where the mask is true."""

    def element(b: B, index: Index) -> Scalar:
        mask, source = call.tensor("mask"), call.tensor("self")
        value = b.cast(call.operand(b, index, call.arguments["value"], opmath(call.dtype), rounded=None), call.dtype)
        old = source.at(b, broadcast_index(index, source.shape))
        return b.op("where", mask.at(b, broadcast_index(index, mask.shape)), value, old)

    return call.elements(element)


def _limit(b: B, value: Scalar, low: Scalar | None, high: Scalar | None, *, numbers: bool) -> Scalar:
    """Keep a value between limits; beside a number that is a zero of the other sign, kernels keep the value's."""
    if low is not None:
        value = b.op("maximum", low, value) if numbers else b.op("maximum", value, low)
    if high is not None:
        value = b.op("minimum", high, value) if numbers else b.op("minimum", value, high)
    return value


@lowers(aten.clamp.default, aten.clamp.Tensor)
def lower_clamp(call: LoweringCall) -> LoopTensor:
    """min(max(x, low), high); NaN anywhere gives NaN."""
    if call.dtype == torch.bool:
        raise NoLowering("clamp of bool")
    bounds = [name for name in ("min", "max") if call.arguments[name] is not None]
    numbers = not any(isinstance(call.arguments[name], LoopTensor) for name in bounds)

    def apply(b: B, x: Scalar, *limits: Scalar) -> Scalar:
        named = dict(zip(bounds, limits, strict=True))
        return _limit(b, x, named.get("min"), named.get("max"), numbers=numbers)

    return call.pointwise(apply, "self", *bounds, round_numbers=True)


@lowers(aten.clamp_min.default, aten.clamp_min.Tensor)
def lower_clamp_min(call: LoweringCall) -> LoopTensor:
    """max(x, low)."""
    numbers = not isinstance(call.arguments["min"], LoopTensor)
    return call.pointwise(lambda b, x, low: _limit(b, x, low, None, numbers=numbers), "self", "min", round_numbers=True)


@lowers(aten.clamp_max.default, aten.clamp_max.Tensor)
def lower_clamp_max(call: LoweringCall) -> LoopTensor:
    """min(x, high)."""
    numbers = not isinstance(call.arguments["max"], LoopTensor)
    return call.pointwise(
        lambda b, x, high: _limit(b, x, None, high, numbers=numbers), "self", "max", round_numbers=True
    )


@lowers(aten.neg.default)
def lower_neg(call: LoweringCall) -> LoopTensor:
    """-x; the sign bit turns even for zero and NaN."""
    return call.pointwise(lambda b, x: b.op("neg", x), "self")


@lowers(aten.abs.default)
def lower_abs(call: LoweringCall) -> LoopTensor:
    """|x|."""
    return call.pointwise(lambda b, x: x if x.dtype == torch.bool else b.op("abs", x), "self")


@lowers(aten.sign.default, aten.sgn.default)
def lower_sign(call: LoweringCall) -> LoopTensor:
    """-1, 0 or 1; of zeros of both signs and of NaN it is plus zero, as in eager's kernels."""

    def apply(b: B, x: Scalar) -> Scalar:
        if x.dtype == torch.bool:
            return x
        zero = b.constant(0, x.dtype)
        one = b.constant(1, x.dtype)
        negative = b.constant(0, x.dtype) if x.dtype == torch.uint8 else b.constant(-1, x.dtype)
        rest = b.op("where", b.op("lt", x, zero), negative, zero)
        return b.op("where", b.op("gt", x, zero), one, rest)

    return call.pointwise(apply, "self")


@lowers(aten._to_copy.default)
def lower_to_copy(call: LoweringCall) -> LoopTensor:
    """Convert the dtype; other places and layouts are ATen's business."""
    return _copied(call)


@lowers(aten.clone.default)
def lower_clone(call: LoweringCall) -> LoopTensor:
    """A copy in eager's layout."""
    return _copied(call)


@lowers(aten.copy.default)
def lower_copy(call: LoweringCall) -> LoopTensor:
    """What `self` is after its elements were replaced by those of `src`."""
    source = call.tensor("src")
    return call.elements(lambda b, index: source.at(b, broadcast_index(index, source.shape)))


def _copied(call: LoweringCall) -> LoopTensor:
    source = call.tensor("self")
    return call.elements(lambda b, index: source.at(b, index))


@lowers(aten.isnan.default)
def lower_isnan(call: LoweringCall) -> LoopTensor:
    """Whether x is not a number."""
    return call.pointwise(lambda b, x: b.op("ne", x, x), "self", compute=call.common_dtype("self"))


@lowers(aten.isinf.default)
def lower_isinf(call: LoweringCall) -> LoopTensor:
    """Whether x is infinite."""
    dtype = call.common_dtype("self")
    if not dtype.is_floating_point:
        raise NoLowering("isinf of integers")
    return call.pointwise(
        lambda b, x: b.op("eq", b.op("abs", x), b.constant(float("inf"), x.dtype)), "self", compute=dtype
    )


@lowers(aten.copysign.Tensor, aten.copysign.Scalar)
def lower_copysign(call: LoweringCall) -> LoopTensor:
    """The size of x with the sign bit of y, zeros and NaN included."""
    return call.pointwise(lambda b, x, y: b.op("copysign", x, y), "self", "other", round_numbers=True)


@lowers(aten.lerp.Scalar, aten.lerp.Tensor)
def lower_lerp(call: LoweringCall) -> LoopTensor:
    """Between start and end; computed from the nearer end."""

    def apply(b: B, start: Scalar, end: Scalar, weight: Scalar) -> Scalar:
        span = b.op("sub", end, start)
        near = plus_product(b, start, weight, span)
        far = plus_product(b, end, b.op("sub", weight, b.constant(1, weight.dtype)), span)
        small = b.op("lt", b.op("abs", weight), b.constant(0.5, weight.dtype))
        return b.op("where", small, near, far)

    return call.pointwise(apply, "self", "end", "weight")


@lowers(aten.addcmul.default)
def lower_addcmul(call: LoweringCall) -> LoopTensor:
    """self + value * a * b."""
    value = call.number("value")

    def apply(b: B, x: Scalar, y: Scalar, z: Scalar) -> Scalar:
        check_fits(value, x.dtype)
        return plus_product(b, x, b.op("mul", b.constant(value, x.dtype), y), z)

    return call.pointwise(apply, "self", "tensor1", "tensor2")


@lowers(aten.addcdiv.default)
def lower_addcdiv(call: LoweringCall) -> LoopTensor:
    """self + value * a / b; eager refuses to divide whole numbers."""
    value = call.number("value")
    if not any(call.tensor(name).dtype.is_floating_point for name in ("tensor1", "tensor2")):
        raise NoLowering("a division of whole numbers")

    def apply(b: B, x: Scalar, y: Scalar, z: Scalar) -> Scalar:
        return b.op("add", x, b.op("div", b.op("mul", b.constant(value, x.dtype), y), z))

    return call.pointwise(apply, "self", "tensor1", "tensor2")
