"""Whole numbers made from sizes through floats, as when an image is resized by a factor: functions of two numbers.

The float, a 64-bit one, is passed as its bits, so that texts of sizes hold whole numbers only.  Python and C round
alike, half-way cases to the even neighbour.
"""

import math
import struct
from collections.abc import Callable, Mapping

ROUNDINGS: Mapping[str, tuple[Callable[[float], int], str]] = {  # of a name's first word: in Python, and in C
    "truncated": (math.trunc, "trunc"),
    "floored": (math.floor, "floor"),
    "raised": (math.ceil, "ceil"),
    "rounded": (round, "rint"),
}


def bits_of(factor: float) -> int:
    """Return the bits of a float, as a signed number."""
    return int(struct.unpack("<q", struct.pack("<d", factor))[0])


def float_of(bits: int) -> float:
    """Return the float that has these bits."""
    return float(struct.unpack("<d", struct.pack("<q", bits))[0])


def _product(rounding: Callable[[float], int]) -> Callable[[int, int], int]:
    return lambda size, bits: rounding(float(size) * float_of(bits))


def _quotient(rounding: Callable[[float], int]) -> Callable[[int, int], int]:
    return lambda size, divisor: rounding(size / divisor)


SCALED: Mapping[str, Callable[[int, int], int]] = {
    f"{name}_{kind}": make(rounding)
    for name, (rounding, _) in ROUNDINGS.items()
    for kind, make in (("product", _product), ("quotient", _quotient))
}

FUNCTIONS: Mapping[str, Callable[[int, int], int]] = {  # of two sizes, which C and Python both know by name
    "floor_quotient": lambda a, b: a // b,
    "floor_remainder": lambda a, b: a % b,
    "larger": max,
    "smaller": min,
    **SCALED,
}


def in_c(name: str) -> str:
    """Return the C function of this name."""
    rounding, kind = name.split("_")
    call = f"__builtin_{ROUNDINGS[rounding][1]}"
    head = f"static inline long long {name}(long long a, long long b)"
    if kind == "quotient":
        return f"{head} {{ return (long long){call}((double)a / (double)b); }}"
    return f"{head} {{ double f; __builtin_memcpy(&f, &b, 8); return (long long){call}((double)a * f); }}"
