"""The scalar operations a loop body is made of: one table of names, arities, result types and meanings.

The meaning is a function on torch tensors of the operation's own dtype, so that the interpreter and the printed
loops compute exactly what the table says.  float16 and bfloat16 are storage types: values of these dtypes are only
loaded, stored, cast, selected and compared; arithmetic happens in float32 between two casts, which is eager's meaning.
"""

from __future__ import annotations

from collections.abc import Callable
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
class ScalarOp:
    """One scalar operation: how many arguments, on which dtypes, whether it answers a bool, and what it means."""

    name: str
    arity: int
    dtypes: frozenset[torch.dtype]
    to_bool: bool
    meaning: Callable[..., torch.Tensor]
    costly: bool = False


class WrongDtype(Exception):
    """An operation on a dtype that it is not defined for; where eager computes it all the same, ATen does."""


SCALAR_OPS: dict[str, ScalarOp] = {}


def _define(
    name: str,
    arity: int,
    dtypes: frozenset[torch.dtype],
    meaning: Callable[..., torch.Tensor],
    *,
    to_bool: bool = False,
    costly: bool = False,
) -> None:
    if name in SCALAR_OPS:
        raise ValueError(f"scalar operation {name} is defined twice")
    SCALAR_OPS[name] = ScalarOp(name, arity, dtypes, to_bool, meaning, costly)


def _trunc_div(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return torch.div(a, b, rounding_mode="trunc")


def _shift_left(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    bits = torch.iinfo(a.dtype).bits
    inside = (b >= 0) & (b < bits)
    return torch.where(inside, a << torch.where(inside, b, torch.zeros_like(b)), torch.zeros_like(a))


def _shift_right(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    bits = torch.iinfo(a.dtype).bits
    inside = (b >= 0) & (b < bits)
    return a >> torch.where(inside, b, torch.full_like(b, bits - 1))


_NUMBERS = FLOATS | INTEGERS
_define("add", 2, _NUMBERS, torch.add)
_define("sub", 2, _NUMBERS, torch.sub)
_define("mul", 2, _NUMBERS, torch.mul)
_define("neg", 1, _NUMBERS, torch.neg)
_define("abs", 1, _NUMBERS, torch.abs)
_define("div", 2, FLOATS, torch.div)
_define("trunc_div", 2, INTEGERS, _trunc_div, costly=True)
_define("minimum", 2, _NUMBERS, torch.minimum)
_define("maximum", 2, _NUMBERS, torch.maximum)
_define("fmod", 2, FLOATS, torch.fmod, costly=True)
_BITS: dict[str, Callable[..., torch.Tensor]] = {
    "bit_and": torch.bitwise_and,
    "bit_or": torch.bitwise_or,
    "bit_xor": torch.bitwise_xor,
}
for _name, _bits in _BITS.items():
    _define(_name, 2, INTEGERS | {torch.bool}, _bits)
_define("bit_not", 1, INTEGERS | {torch.bool}, torch.bitwise_not)
_define("shift_left", 2, INTEGERS, _shift_left)
_define("shift_right", 2, INTEGERS, _shift_right)
_COMPARISONS: dict[str, Callable[..., torch.Tensor]] = {
    "eq": torch.eq,
    "ne": torch.ne,
    "lt": torch.lt,
    "le": torch.le,
    "gt": torch.gt,
    "ge": torch.ge,
}
for _name, _comparison in _COMPARISONS.items():
    _define(_name, 2, ANY, _comparison, to_bool=True)
_define("where", 3, ANY, torch.where)
for _name in ("floor", "ceil", "trunc", "round", "sqrt"):
    _define(_name, 1, FLOATS, getattr(torch, _name))
for _name in (
    "exp exp2 expm1 log log2 log10 log1p sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh erf erfc lgamma"
).split():
    _define(_name, 1, FLOATS, getattr(torch, _name), costly=True)
for _name in ("pow", "atan2", "hypot", "nextafter"):
    _define(_name, 2, FLOATS, getattr(torch, _name), costly=True)
_define("copysign", 2, FLOATS, torch.copysign)

# How a reduction starts and combines: the value of an empty reduction, per kind.
REDUCTIONS = ("sum", "prod", "max", "min", "any", "all", "argmax", "argmin")


def identity(kind: str, dtype: torch.dtype) -> float | int | bool:
    """Return the value that leaves a reduction of this kind unchanged."""
    if kind in ("sum", "any"):
        return False if dtype == torch.bool else 0
    if kind in ("prod", "all"):
        return True if dtype == torch.bool else 1
    if kind not in ("max", "min"):
        raise ValueError(f"{kind} has no identity")
    sign = -1 if kind == "max" else 1
    if dtype.is_floating_point:
        return sign * float("inf")
    if dtype == torch.bool:
        return kind == "min"
    return torch.iinfo(dtype).min if kind == "max" else torch.iinfo(dtype).max
