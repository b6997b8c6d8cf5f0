"""The scalar operations a loop body is made of: one table of names, arities, result types and meanings.

The meaning is a function on torch tensors of the operation's own dtype, so that the interpreter and the printed
loops compute exactly what the table says.  float16 and bfloat16 are storage types: values of these dtypes are only
loaded, stored, cast, selected and compared; arithmetic happens in float32 between two casts, which is eager's meaning.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch

STORAGE_ONLY = frozenset({torch.float16, torch.bfloat16})
COMPUTED = frozenset(
    {torch.float32, torch.float64, torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8, torch.bool}
)
SUPPORTED = STORAGE_ONLY | COMPUTED
FLOATS = frozenset({torch.float32, torch.float64})
INTEGERS = frozenset({torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8})
ANY = SUPPORTED


@dataclass(frozen=True, slots=True)
class Sign:
    """C has a symbol for it, on scalars and vectors alike, in front of one argument or between two."""

    text: str


@dataclass(frozen=True, slots=True)
class Elementary:
    """A function of libm, and of Sleef where the process offers its vectors.

    name: libm's for double, and the stem of Sleef's.  single, double: the accuracy in the name of Sleef's function for
    floats and doubles ("u10" is one unit in the last place); None where Sleef's is not good enough.
    """

    name: str
    single: str | None
    double: str | None


@dataclass(frozen=True, slots=True)
class Helper:
    """A function that the C writer has a text for (`codegen.c_functions.c_library.Library.helper`).

    narrows: whether its result can leave the range of a small integer type.  fails: whether it can set *error.
    """

    name: str
    narrows: bool = False
    fails: bool = False


CForm = Sign | Elementary | Helper


@dataclass(frozen=True, slots=True)
class ScalarOp:
    """One scalar operation, declared here once: printing, checking, interpreting and C all read this.

    meaning: a function on tensors of its dtypes.  c: how C writes it.  to_bool: whether it answers a bool.
    costly: whether computing it again costs more than reading it from memory.  direct: whether it is all there is to
    the ATen operator of the same name on floats; `lowering.float_math` lowers those.
    """

    name: str
    arity: int
    dtypes: frozenset[torch.dtype]
    meaning: Callable[..., torch.Tensor]
    c: CForm
    to_bool: bool = False
    costly: bool = False
    direct: bool = False


class WrongDtype(Exception):
    """An operation on a dtype that it is not defined for; where eager computes it all the same, ATen does."""


def _trunc_div(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return torch.div(a, b, rounding_mode="trunc")


def _shift_left(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    bits = torch.iinfo(a.dtype).bits
    inside = (b >= 0) & (b < bits)
    return torch.where(inside, a << torch.where(inside, b, torch.zeros_like(b)), torch.zeros_like(a))


def _shift_right(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    bits = torch.iinfo(a.dtype).bits
    inside = (b >= 0) & (b < bits)
    return a >> torch.where(inside, b, torch.full_like(b, furthest_shift(a.dtype)))


def _fused_multiply_add(a: torch.Tensor, b: torch.Tensor, c: torch.Tensor) -> torch.Tensor:
    """Return a * b + c with one rounding; for doubles but for the rarest ties (Dekker's product, Knuth's sum)."""
    if a.dtype == torch.float32:
        return (a.double() * b.double() + c.double()).float()  # the product of floats is exact in doubles
    product = a * b
    total = product + c
    lost_of_product = _lost_of_product(a, b, product)
    part = total - product
    lost_of_sum = (product - (total - part)) + (c - part)
    exact = total + (lost_of_sum + lost_of_product)
    return torch.where(exact.isfinite(), exact, total)


def _lost_of_product(a: torch.Tensor, b: torch.Tensor, product: torch.Tensor) -> torch.Tensor:
    """Return a * b - product, by the halves of each factor's digits."""
    (a_high, a_low), (b_high, b_low) = (
        (high, value - high) for value in (a, b) for high in [(2.0**27 + 1) * value - (2.0**27 * value)]
    )
    return ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low


def furthest_shift(dtype: torch.dtype) -> int:
    """Return by how many bits to shift right so that nothing is left but the sign, if there is one."""
    bits = torch.iinfo(dtype).bits
    return bits - 1 if dtype.is_signed else bits


_NUMBERS = FLOATS | INTEGERS
_BITS = INTEGERS | {torch.bool}


def _comparison(name: str, meaning: Callable[..., torch.Tensor]) -> ScalarOp:
    return ScalarOp(name, 2, ANY, meaning, Helper("compare"), to_bool=True)


def _elementary(name: str, single: str | None = "u10", double: str | None = "u10", *, arity: int = 1) -> ScalarOp:
    form = Elementary(name, single, double)
    return ScalarOp(name, arity, FLOATS, getattr(torch, name), form, costly=True, direct=arity == 1)


def _rounding(name: str, libm: str) -> ScalarOp:
    return ScalarOp(name, 1, FLOATS, getattr(torch, name), Elementary(libm, "", ""))


# Sleef overflows at 88.7, before the result does; eager calls libm instead from torch 2.14 or 2.15 on. It does so for
# the last few elements always, so many are asked.
_HYPERBOLIC = None if torch.sinh(torch.full((256,), 89.0)).isfinite().all() else "u10"

_DECLARED: tuple[ScalarOp, ...] = (
    ScalarOp("add", 2, _NUMBERS, torch.add, Sign("+")),
    ScalarOp("sub", 2, _NUMBERS, torch.sub, Sign("-")),
    ScalarOp("mul", 2, _NUMBERS, torch.mul, Sign("*")),
    ScalarOp("neg", 1, _NUMBERS, torch.neg, Sign("-")),
    ScalarOp("fma", 3, FLOATS, _fused_multiply_add, Helper("fused")),
    ScalarOp("abs", 1, _NUMBERS, torch.abs, Helper("absolute", narrows=True)),
    ScalarOp("div", 2, FLOATS, torch.div, Sign("/")),
    ScalarOp("trunc_div", 2, INTEGERS, _trunc_div, Helper("trunc_divide", narrows=True, fails=True), costly=True),
    ScalarOp("minimum", 2, _NUMBERS, torch.minimum, Helper("extreme")),
    ScalarOp("maximum", 2, _NUMBERS, torch.maximum, Helper("extreme")),
    ScalarOp("bit_and", 2, _BITS, torch.bitwise_and, Sign("&")),
    ScalarOp("bit_or", 2, _BITS, torch.bitwise_or, Sign("|")),
    ScalarOp("bit_xor", 2, _BITS, torch.bitwise_xor, Sign("^")),
    ScalarOp("bit_not", 1, _BITS, torch.bitwise_not, Sign("~")),
    ScalarOp("shift_left", 2, INTEGERS, _shift_left, Helper("shift", narrows=True)),
    ScalarOp("shift_right", 2, INTEGERS, _shift_right, Helper("shift", narrows=True)),
    _comparison("eq", torch.eq),
    _comparison("ne", torch.ne),
    _comparison("lt", torch.lt),
    _comparison("le", torch.le),
    _comparison("gt", torch.gt),
    _comparison("ge", torch.ge),
    ScalarOp("where", 3, ANY, torch.where, Helper("select")),
    ScalarOp("copysign", 2, FLOATS, torch.copysign, Helper("copysign")),
    ScalarOp("sqrt", 1, FLOATS, torch.sqrt, Helper("square_root"), direct=True),
    _rounding("floor", "floor"),
    _rounding("ceil", "ceil"),
    _rounding("trunc", "trunc"),
    _rounding("round", "rint"),
    _elementary("exp"),
    _elementary("exp2"),
    _elementary("expm1"),
    _elementary("log"),
    _elementary("log2"),
    _elementary("log10"),
    _elementary("log1p"),
    _elementary("sin"),
    _elementary("cos"),
    _elementary("tan"),
    _elementary("asin"),
    _elementary("acos"),
    _elementary("atan"),
    _elementary("sinh", _HYPERBOLIC),
    _elementary("cosh", _HYPERBOLIC),
    _elementary("tanh"),
    _elementary("asinh", None, None),  # Sleef squares the argument, which overflows, and libm does not
    _elementary("acosh", None, None),
    _elementary("atanh"),
    _elementary("erf"),
    _elementary("erfc", "u15", "u15"),
    _elementary("lgamma"),
    _elementary("pow", arity=2),
    _elementary("atan2", arity=2),
    _elementary("hypot", "u05", "u05", arity=2),
    _elementary("fmod", None, None, arity=2),
    _elementary("nextafter", None, None, arity=2),
)
SCALAR_OPS: Mapping[str, ScalarOp] = {operation.name: operation for operation in _DECLARED}
assert len(SCALAR_OPS) == len(_DECLARED), "a scalar operation is declared twice"

# How a reduction starts and combines: the value of an empty reduction, per kind.
REDUCTIONS = ("sum", "prod", "max", "min", "any", "all", "argmax", "argmin")
# Of these there are results so far, too: an extreme is the last of those that are equal, and NaN for good.
SCANS = ("sum", "prod", "max", "min", "logsumexp")


def identity(kind: str, dtype: torch.dtype) -> float | int | bool:
    """Return the value that leaves a reduction of this kind unchanged."""
    if kind in ("sum", "any"):
        return False if dtype == torch.bool else 0
    if kind in ("prod", "all"):
        return True if dtype == torch.bool else 1
    if kind == "logsumexp":
        return -float("inf")
    if kind not in ("max", "min"):
        raise ValueError(f"{kind} has no identity")
    sign = -1 if kind == "max" else 1
    if dtype.is_floating_point:
        return sign * float("inf")
    if dtype == torch.bool:
        return kind == "min"
    return torch.iinfo(dtype).min if kind == "max" else torch.iinfo(dtype).max
