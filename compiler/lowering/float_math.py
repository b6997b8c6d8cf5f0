"""Elementary functions, activations and their derivatives: floats in, floats out, rounded once at the end."""

from __future__ import annotations

from collections.abc import Callable
from math import inf, isfinite, nan, pi, sqrt

import torch

from ..graph.exact_operators import EXACT_SQRT
from ..loops.body import Scalar, ScalarBuilder
from ..loops.scalar_ops import SCALAR_OPS
from .registry import LoweringCall, check_fits, lowers, rounded_number
from .writer import LoopTensor, NoLowering

aten = torch.ops.aten
B = ScalarBuilder

for _name in (operation.name for operation in SCALAR_OPS.values() if operation.direct):

    def _lower_direct(call: LoweringCall, name: str = _name) -> LoopTensor:
        """One elementary function; integers become floats first."""
        return call.pointwise(lambda b, x: b.op(name, x), "self")

    lowers(getattr(aten, _name).default)(_lower_direct)


@lowers(EXACT_SQRT)
def _lower_exact_sqrt(call: LoweringCall) -> LoopTensor:
    """C's square root, correctly rounded."""
    return call.pointwise(lambda b, x: b.op("sqrt", x), "self")


for _name in ("floor", "ceil", "trunc", "round"):

    def _lower_rounding(call: LoweringCall, name: str = _name) -> LoopTensor:
        """Rounding of floats; integers stay."""
        return call.pointwise(lambda b, x: b.op(name, x) if x.dtype.is_floating_point else x, "self")

    lowers(getattr(aten, _name).default)(_lower_rounding)

for _name in ("atan2", "hypot", "nextafter"):

    def _lower_two(call: LoweringCall, name: str = _name) -> LoopTensor:
        """One function of two floats."""
        if call.dtype in (torch.float16, torch.bfloat16) and name == "nextafter":
            raise NoLowering("nextafter of a half type")
        return call.pointwise(lambda b, x, y: b.op(name, x, y), "self", "other")

    lowers(getattr(aten, _name).default)(_lower_two)


def number(b: B, value: float, like: Scalar) -> Scalar:
    """Return a constant of another scalar's dtype."""
    return b.constant(value, like.dtype)


def unary(*operators: object) -> Callable[[Callable[[B, Scalar], Scalar]], Callable[[B, Scalar], Scalar]]:
    """Register a function of one float as the lowering of operators whose input is called `self`."""

    def register(function: Callable[[B, Scalar], Scalar]) -> Callable[[B, Scalar], Scalar]:
        def lower(call: LoweringCall) -> LoopTensor:
            if not call.dtype.is_floating_point:
                raise NoLowering(f"{call.name} of {call.dtype}")
            return call.pointwise(function, "self")

        lowers(*operators)(lower)  # type: ignore[arg-type]  # OpOverloads, found by getattr
        return function

    return register


@unary(aten.reciprocal.default)
def reciprocal(b: B, x: Scalar) -> Scalar:
    """1 / x."""
    return b.op("div", number(b, 1, x), x)


@unary(aten.rsqrt.default)
def rsqrt(b: B, x: Scalar) -> Scalar:
    """1 / sqrt(x)."""
    return b.op("div", number(b, 1, x), b.op("sqrt", x))


@unary(aten.sigmoid.default)
def sigmoid(b: B, x: Scalar) -> Scalar:
    """1 / (1 + exp(-x))."""
    return b.op("div", number(b, 1, x), b.op("add", number(b, 1, x), b.op("exp", b.op("neg", x))))


@unary(aten.silu.default)
def silu(b: B, x: Scalar) -> Scalar:
    """x * sigmoid(x), as one quotient."""
    return b.op("div", x, b.op("add", number(b, 1, x), b.op("exp", b.op("neg", x))))


@unary(aten.frac.default)
def frac(b: B, x: Scalar) -> Scalar:
    """What is left of x after trunc."""
    return b.op("sub", x, b.op("trunc", x))


@unary(aten.hardsigmoid.default)
def hardsigmoid(b: B, x: Scalar) -> Scalar:
    """clamp(x + 3, 0, 6) / 6."""
    return b.op("div", _clamped(b, b.op("add", x, number(b, 3, x)), 0, 6), number(b, 6, x))


@unary(aten.hardswish.default)
def hardswish(b: B, x: Scalar) -> Scalar:
    """x * clamp(x + 3, 0, 6) / 6."""
    return b.op("div", b.op("mul", x, _clamped(b, b.op("add", x, number(b, 3, x)), 0, 6)), number(b, 6, x))


def _clamped(b: B, x: Scalar, low: float, high: float) -> Scalar:
    return b.op("minimum", number(b, high, x), b.op("maximum", number(b, low, x), x))  # of equal zeros, that of x


@lowers(aten.relu.default)
def lower_relu(call: LoweringCall) -> LoopTensor:
    """Zero for what is below zero; NaN and minus zero stay."""
    if call.dtype == torch.bool:
        raise NoLowering("relu of bool")

    def apply(b: B, x: Scalar) -> Scalar:
        zero = b.constant(0, x.dtype)
        return b.op("where", b.op("lt", x, zero), zero, x)

    return call.pointwise(apply, "self")


@lowers(aten.square.default)
def lower_square(call: LoweringCall) -> LoopTensor:
    """x * x."""
    if call.dtype == torch.bool:
        raise NoLowering("square of bool")
    return call.pointwise(lambda b, x: b.op("mul", x, x), "self")


def _power_by_number(b: B, x: Scalar, exponent: float, stored: torch.dtype) -> Scalar | None:
    """Return x ** exponent for the exponents eager treats apart, else None.

    stored: eager rounds each step to bfloat16; it treats square roots of float16 as general powers.
    """

    def step(value: Scalar) -> Scalar:
        return b.cast(b.cast(value, stored), x.dtype) if stored == torch.bfloat16 else value

    square = step(b.op("mul", x, x))
    if exponent == 2:
        return square
    if exponent == 3:
        return b.op("mul", square, x)
    if not x.dtype.is_floating_point:
        return None
    if exponent in (0.5, -0.5) and stored != torch.float16:
        root = step(b.op("sqrt", x))
        return root if exponent > 0 else b.op("div", number(b, 1, x), root)
    if exponent == -1:
        return reciprocal(b, x)
    if exponent == -2:
        return b.op("div", number(b, 1, x), square)
    return None


def _power_of_single(b: B, x: Scalar, exponent: float) -> Scalar:
    """Return x ** exponent as of the exponent in double precision, which eager rounds in whole vectors alone.

    x ** (near + rest) = x ** near * (1 + rest * log(x)), where the rest is what single precision leaves.  That holds
    where the power is neither 0 nor infinite, for then the rest is small.  A whole number that is odd leaves an even
    one when it is large, of which the sign of x is lost.
    """
    near = float(torch.tensor(exponent, dtype=torch.float32, device="cpu").item())
    rest = exponent - near
    if not rest or not isfinite(rest):
        return b.op("pow", x, number(b, near, x))
    is_odd = exponent % 2 == 1
    base = b.op("abs", x) if is_odd else x
    power = b.op("pow", base, number(b, near, x))
    factor = b.op("add", number(b, 1, x), b.op("mul", number(b, rest, x), b.op("log", base)))
    is_moderate = b.op("bit_and", b.op("gt", power, number(b, 0, x)), b.op("lt", power, number(b, inf, x)))
    moderate = b.op("where", is_moderate, b.op("mul", power, factor), power)
    if is_odd:
        return b.op("copysign", moderate, x)
    if exponent % 1 and not near % 1:  # no real number is the power of a negative one; that of -inf is as of inf
        is_negative = b.op("bit_and", b.op("lt", x, number(b, 0, x)), b.op("gt", x, number(b, -inf, x)))
        power = b.op("where", is_negative, number(b, nan, x), power)
    return b.op("where", b.op("gt", x, number(b, 0, x)), moderate, power)


@lowers(aten.pow.Tensor_Scalar)
def lower_pow_number(call: LoweringCall) -> LoopTensor:
    """x ** number."""
    exponent = call.number("exponent")
    if isinstance(exponent, bool):
        raise NoLowering("bool exponent")
    if exponent in (0, 1):
        source = call.tensor("self")
        if exponent == 0:
            return call.elements(lambda b, _: b.constant(1, call.dtype))
        return call.elements(lambda b, index: source.at(b, index))

    def apply(b: B, x: Scalar) -> Scalar:
        special = _power_by_number(b, x, exponent, call.dtype)
        if special is not None:
            return special
        if not x.dtype.is_floating_point:
            raise NoLowering("integer power")
        if call.dtype == torch.float32:
            return _power_of_single(b, x, exponent)
        return b.op("pow", x, number(b, rounded_number(exponent, call.dtype), x))

    return call.pointwise(apply, "self")


@lowers(aten.pow.Tensor_Tensor, aten.pow.Scalar)
def lower_pow(call: LoweringCall) -> LoopTensor:
    """x ** y for floats."""
    if not call.dtype.is_floating_point:
        raise NoLowering("integer power")
    return call.pointwise(lambda b, x, y: b.op("pow", x, y), "self", "exponent", round_numbers=True)


def _normal_cdf(b: B, x: Scalar) -> Scalar:
    scaled = b.op("mul", x, number(b, sqrt(0.5), x))
    return b.op("mul", number(b, 0.5, x), b.op("add", number(b, 1, x), b.op("erf", scaled)))


def _gelu_inner(b: B, x: Scalar) -> Scalar:
    cube = b.op("mul", b.op("mul", x, x), x)
    inner = b.op("add", x, b.op("mul", number(b, 0.044715, x), cube))
    return b.op("mul", number(b, sqrt(2 / pi), x), inner)


@lowers(aten.gelu.default)
def lower_gelu(call: LoweringCall) -> LoopTensor:
    """x times the normal distribution at x, exact or by tanh."""
    exact = call.arguments["approximate"] == "none"

    def apply(b: B, x: Scalar) -> Scalar:
        if exact:
            return b.op("mul", x, _normal_cdf(b, x))
        half = b.op("mul", number(b, 0.5, x), x)
        return b.op("mul", half, b.op("add", number(b, 1, x), b.op("tanh", _gelu_inner(b, x))))

    return call.pointwise(apply, "self")


@lowers(aten.gelu_backward.default)
def lower_gelu_backward(call: LoweringCall) -> LoopTensor:
    """The derivative of gelu times the incoming gradient."""
    exact = call.arguments["approximate"] == "none"

    def apply(b: B, grad: Scalar, x: Scalar) -> Scalar:
        one, half = number(b, 1, x), number(b, 0.5, x)
        square = b.op("mul", x, x)
        if exact:
            density = b.op("mul", number(b, 1 / sqrt(2 * pi), x), b.op("exp", b.op("mul", b.op("neg", half), square)))
            slope = b.op("add", _normal_cdf(b, x), b.op("mul", x, density))
            return b.op("mul", grad, slope)
        curve = b.op("tanh", _gelu_inner(b, x))
        left = b.op("mul", half, b.op("add", one, curve))
        inner = b.op("add", one, b.op("mul", number(b, 3 * 0.044715, x), square))
        bend = b.op("mul", b.op("sub", one, b.op("mul", curve, curve)), b.op("mul", number(b, sqrt(2 / pi), x), inner))
        right = b.op("mul", b.op("mul", half, x), bend)
        return b.op("mul", grad, b.op("add", left, right))

    return call.pointwise(apply, "grad_output", "self")


@lowers(aten.silu_backward.default)
def lower_silu_backward(call: LoweringCall) -> LoopTensor:
    """grad * s * (1 + x * (1 - s)), s the sigmoid of x."""

    def apply(b: B, grad: Scalar, x: Scalar) -> Scalar:
        s, one = sigmoid(b, x), number(b, 1, x)
        inner = b.op("add", one, b.op("mul", x, b.op("sub", one, s)))
        return b.op("mul", b.op("mul", grad, s), inner)

    return call.pointwise(apply, "grad_output", "self")


@lowers(aten.sigmoid_backward.default)
def lower_sigmoid_backward(call: LoweringCall) -> LoopTensor:
    """grad * (1 - y) * y."""
    return call.pointwise(
        lambda b, g, y: b.op("mul", g, b.op("mul", b.op("sub", number(b, 1, y), y), y)), "grad_output", "output"
    )


@lowers(aten.tanh_backward.default)
def lower_tanh_backward(call: LoweringCall) -> LoopTensor:
    """grad * (1 - y * y)."""
    return call.pointwise(
        lambda b, g, y: b.op("mul", g, b.op("sub", number(b, 1, y), b.op("mul", y, y))), "grad_output", "output"
    )


@lowers(aten.threshold_backward.default)
def lower_threshold_backward(call: LoweringCall) -> LoopTensor:
    """The gradient where the input is not at or below the threshold."""
    threshold = call.number("threshold")
    return call.pointwise(
        lambda b, g, x: b.op("where", b.op("le", x, b.constant(threshold, x.dtype)), b.constant(0, g.dtype), g),
        "grad_output",
        "self",
    )


@lowers(aten.threshold.default)
def lower_threshold(call: LoweringCall) -> LoopTensor:
    """x above the threshold, a number at or below it; a NaN stays. For integers the kernel cuts both numbers."""
    limit, value = call.number("threshold"), call.number("value")
    if not call.dtype.is_floating_point:
        limit, value = int(limit), int(value)
        check_fits(limit, call.dtype)
        check_fits(value, call.dtype)
    return call.pointwise(
        lambda b, x: b.op("where", b.op("le", x, number(b, limit, x)), number(b, value, x), x), "self"
    )


@lowers(aten._prelu_kernel.default)
def lower_prelu(call: LoweringCall) -> LoopTensor:
    """x above zero, weight * x below."""
    return call.pointwise(
        lambda b, x, w: b.op("where", b.op("gt", x, number(b, 0, x)), x, b.op("mul", w, x)), "self", "weight"
    )


@lowers(aten._prelu_kernel_backward.default)
def lower_prelu_backward(call: LoweringCall) -> tuple[LoopTensor, LoopTensor]:
    """The gradient, times weight where x is not above zero; and for the weight, x * gradient there."""

    def by_input(b: B, g: Scalar, x: Scalar, w: Scalar) -> Scalar:
        return b.op("where", b.op("gt", x, number(b, 0, x)), g, b.op("mul", w, g))

    def by_weight(b: B, g: Scalar, x: Scalar) -> Scalar:
        return b.op("where", b.op("gt", x, number(b, 0, x)), number(b, 0, x), b.op("mul", x, g))

    return (
        call.pointwise(by_input, "grad_output", "self", "weight"),
        call.pointwise(by_weight, "grad_output", "self"),
    )


@lowers(aten.leaky_relu.default)
def lower_leaky_relu(call: LoweringCall) -> LoopTensor:
    """x above zero, slope * x below."""
    slope = call.number("negative_slope")
    return call.pointwise(
        lambda b, x: b.op("where", b.op("gt", x, number(b, 0, x)), x, b.op("mul", x, number(b, slope, x))), "self"
    )


@lowers(aten.leaky_relu_backward.default)
def lower_leaky_relu_backward(call: LoweringCall) -> LoopTensor:
    """grad above zero, slope * grad below."""
    slope = call.number("negative_slope")
    return call.pointwise(
        lambda b, g, x: b.op("where", b.op("gt", x, number(b, 0, x)), g, b.op("mul", g, number(b, slope, x))),
        "grad_output",
        "self",
    )


@lowers(aten.hardtanh.default)
def lower_hardtanh(call: LoweringCall) -> LoopTensor:
    """clamp(x, low, high)."""
    low, high = call.number("min_val"), call.number("max_val")
    if not call.dtype.is_floating_point:
        raise NoLowering("hardtanh of integers")
    return call.pointwise(lambda b, x: _clamped(b, x, low, high), "self")


@lowers(aten.hardtanh_backward.default)
def lower_hardtanh_backward(call: LoweringCall) -> LoopTensor:
    """The gradient strictly between the limits."""
    low, high = call.number("min_val"), call.number("max_val")

    def apply(b: B, g: Scalar, x: Scalar) -> Scalar:
        outside = b.op("bit_or", b.op("le", x, number(b, low, x)), b.op("ge", x, number(b, high, x)))
        return b.op("where", outside, number(b, 0, g), g)

    return call.pointwise(apply, "grad_output", "self")


@lowers(aten.elu.default)
def lower_elu(call: LoweringCall) -> LoopTensor:
    """scale * x above zero, scale * alpha * (exp(x * input_scale) - 1) below."""
    alpha, scale, input_scale = (call.number(name) for name in ("alpha", "scale", "input_scale"))

    def apply(b: B, x: Scalar) -> Scalar:
        low = b.op("mul", b.op("expm1", b.op("mul", x, number(b, input_scale, x))), number(b, alpha * scale, x))
        high = b.op("mul", x, number(b, scale, x))
        return b.op("where", b.op("lt", x, number(b, 0, x)), low, high)

    return call.pointwise(apply, "self")


@lowers(aten.softplus.default)
def lower_softplus(call: LoweringCall) -> LoopTensor:
    """log(1 + exp(beta * x)) / beta; x itself beyond the threshold."""
    beta, threshold = call.number("beta"), call.number("threshold")

    def apply(b: B, x: Scalar) -> Scalar:
        z = b.op("mul", x, number(b, beta, x))
        soft = b.op("div", b.op("log1p", b.op("exp", z)), number(b, beta, x))
        return b.op("where", b.op("gt", z, number(b, threshold, x)), x, soft)

    return call.pointwise(apply, "self")


@lowers(aten.native_dropout_backward.default)
def lower_dropout_backward(call: LoweringCall) -> LoopTensor:
    """grad * mask * scale."""
    scale = call.number("scale")
    return call.pointwise(lambda b, g, m: b.op("mul", g, b.op("mul", m, number(b, scale, g))), "grad_output", "mask")
