"""The table of operators whose meaning is held to eager's: what to call, on which dtypes, how exactly.

Each entry is one function of tensors; `ulp` is how many units in the last place of the result's dtype a value may
differ (0: bit for bit, NaN equal to NaN, signs of zero included).
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F  # noqa: N812  the field's name for it

FLOATS = (torch.float32, torch.float64, torch.float16, torch.bfloat16)
INTS = (torch.int64, torch.int32, torch.int8, torch.uint8)
SIGNED = (torch.int64, torch.int32, torch.int8)
BOOL = (torch.bool,)
ALL = FLOATS + INTS + BOOL


@dataclass(frozen=True)
class Case:
    name: str
    function: Callable[..., torch.Tensor]
    dtypes: tuple[torch.dtype, ...]
    ulp: float = 0
    nonzero_divisor: bool = False
    """The second argument must have no zeros (integer division raises)."""
    noise: Callable[[torch.Tensor, torch.Tensor], torch.Tensor] | None = None
    """Absolute error allowed on top, for formulas whose terms cancel: a few roundings of the greatest term."""
    domain: Callable[[torch.Tensor, torch.Tensor], torch.Tensor] | None = None
    """Where eager itself is right; elsewhere it is not compared, and the reason stands beside the entry."""


def _terms(weight: float) -> Callable[[torch.Tensor, torch.Tensor], torch.Tensor]:
    """Two roundings of a term as large as both arguments together: eager fuses a product and a sum, or does not.

    A rounding is never smaller than the smallest subnormal number: half of it may become zero on one CPU, itself on
    another (oneDNN's gelu of float16).
    """

    def noise(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        limits = torch.finfo(x.dtype)
        terms = x.double().abs() + (weight * y.double().abs() if weight else 0)
        return 2 * limits.eps * terms + limits.smallest_normal * limits.eps

    return noise


def _exponent_rounding(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """Eager rounds a Python exponent to the tensor's dtype in vectors, and does not in their tails."""
    size = x.double().abs()
    return torch.finfo(x.dtype).eps * (2 + size.log().abs()) * size**1.7


def _moderate(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """Eager's vectorised fmod of float32 gives NaN for very large quotients (Sleef's limit); C's is exact."""
    ratio = x.double().abs() / torch.where(y == 0, 1, y).double().abs()
    return ~(ratio > 1e6)


def _small(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """oneDNN's gelu overflows beyond the square root of the greatest float."""
    return ~(x.abs() > 1e4)


def _first_only(function: Callable[[torch.Tensor], torch.Tensor]) -> Callable[..., torch.Tensor]:
    return lambda x, y: function(x)


def _unary(names: str, dtypes: tuple[torch.dtype, ...], ulp: float) -> list[Case]:
    return [Case(name, _first_only(getattr(torch, name)), dtypes, ulp) for name in names.split()]


def _binary(names: str, dtypes: tuple[torch.dtype, ...], ulp: float) -> list[Case]:
    return [Case(name, getattr(torch, name), dtypes, ulp) for name in names.split()]


POINTWISE = [
    *_unary("neg abs floor ceil trunc round", FLOATS, 0),
    *_unary("neg abs square relu", INTS, 0),
    *_unary("relu square reciprocal isnan isinf isfinite sign frac", FLOATS, 0),
    *_unary("sqrt rsqrt", FLOATS, 2),  # MKL's are not correctly rounded; ours are
    *_unary("exp exp2 expm1 log log2 log10 log1p sin cos tan asin acos atan sinh cosh tanh", FLOATS, 2),
    *_unary("asinh acosh atanh erfc sigmoid", FLOATS, 2),
    # eager's bfloat16 erf is a polynomial of absolute, not relative, accuracy
    Case("erf", lambda x, y: torch.erf(x), FLOATS, 2, noise=lambda x, y: torch.full(x.shape, 6e-7).double()),
    *_unary("exp sin sqrt sigmoid", (torch.int64, torch.int32), 2),
    *_unary("logical_not", ALL, 0),
    *_unary("bitwise_not", INTS + BOOL, 0),
    *_binary("add mul", ALL, 0),
    *_binary("sub div", FLOATS, 0),
    *_binary("sub", INTS, 0),
    *_binary("maximum minimum fmax fmin eq ne lt le gt ge logical_and logical_or logical_xor", ALL, 0),
    *_binary("copysign", FLOATS, 0),
    *(Case(name, getattr(torch, name), FLOATS, 0, domain=_moderate) for name in ("fmod", "remainder", "floor_divide")),
    *_binary("atan2 pow hypot", (torch.float32, torch.float64), 2),
    *_binary("nextafter", (torch.float32, torch.float64), 0),
    *_binary("bitwise_and bitwise_or bitwise_xor", INTS + BOOL, 0),
    *_binary("bitwise_left_shift bitwise_right_shift", (torch.int64, torch.int32), 0),
    *(
        Case(name, getattr(torch, name), INTS, 0, nonzero_divisor=True)
        for name in ("remainder", "fmod", "floor_divide")
    ),
    Case("div_trunc", lambda x, y: torch.div(x, y, rounding_mode="trunc"), FLOATS),
    Case("div_floor", lambda x, y: torch.div(x, y, rounding_mode="floor"), FLOATS, domain=_moderate),
    Case("div_trunc_int", lambda x, y: torch.div(x, y, rounding_mode="trunc"), INTS, nonzero_divisor=True),
    Case("div_int", torch.div, INTS, nonzero_divisor=True),
    Case("add_alpha_int", lambda x, y: torch.add(x, y, alpha=3), INTS),
    Case("add_alpha", lambda x, y: torch.add(x, y, alpha=3), FLOATS, noise=_terms(3)),
    Case("add_number", lambda x, y: x + 0.1, FLOATS),
    Case("mul_number", lambda x, y: x * 0.1, FLOATS),
    Case("div_number", lambda x, y: x / 0.3, FLOATS),
    Case("rsub_number", lambda x, y: 1 - x, FLOATS + SIGNED),
    Case("fmod_number", lambda x, y: torch.fmod(x, 0.7), FLOATS, domain=_small),
    Case("remainder_number", lambda x, y: torch.remainder(x, -0.7), FLOATS, domain=_small),
    Case("copysign_minus_zero", lambda x, y: torch.copysign(x, -0.0), FLOATS),
    Case("lt_number", lambda x, y: x < 0.3, FLOATS + SIGNED),
    Case("eq_number", lambda x, y: x == 0.1, FLOATS),
    Case("int_plus_float", lambda x, y: x + 0.5, INTS + BOOL),
    Case("where", lambda x, y: torch.where(x > y, x, y), ALL),
    Case("where_number", lambda x, y: torch.where(x > 0, x, 0), FLOATS + INTS),
    Case("masked_fill", lambda x, y: x.masked_fill(y > 0, 1), ALL),
    Case("clamp", lambda x, y: x.clamp(-1, 1), FLOATS + SIGNED),
    Case("clamp_tensor", lambda x, y: torch.clamp(x, y, y), FLOATS + INTS),
    Case("pow2", lambda x, y: x**2, FLOATS + INTS),
    Case("pow3", lambda x, y: x**3, FLOATS + INTS, 1),
    Case("pow_half", lambda x, y: x**0.5, FLOATS, 1),
    Case("pow_minus_2", lambda x, y: x**-2.0, FLOATS, 1),
    Case("pow_number", lambda x, y: x**1.7, (torch.float32, torch.float64), 2, noise=_exponent_rounding),
    Case("lerp", lambda x, y: torch.lerp(x, y, 0.3), (torch.float32, torch.float64), noise=_terms(1)),
    Case("gelu", lambda x, y: F.gelu(x), FLOATS, noise=_terms(0), domain=_small),
    Case("gelu_tanh", lambda x, y: F.gelu(x, approximate="tanh"), FLOATS, noise=_terms(0), domain=_small),
    Case("silu", lambda x, y: F.silu(x), FLOATS, 2),
    Case("leaky_relu", lambda x, y: F.leaky_relu(x, 0.1), FLOATS),
    Case("elu", lambda x, y: F.elu(x, 1.5), FLOATS, 2),
    Case("softplus", lambda x, y: F.softplus(x), FLOATS, 2),
    Case("hardtanh", lambda x, y: F.hardtanh(x), FLOATS),
    Case("hardswish", lambda x, y: F.hardswish(x), FLOATS, 1),
    Case("hardsigmoid", lambda x, y: F.hardsigmoid(x), FLOATS, 1),
    *(
        Case(f"to_{str(target)[6:]}", lambda x, y, target=target: x.to(target), tuple(d for d in ALL if d != target))
        for target in (*FLOATS, *INTS, torch.int16, torch.bool)
    ),
]
