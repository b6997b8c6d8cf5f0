"""The text of the functions that kernels share: NaN-propagating extremes, first places, floored division.

It stands before every kernel, so a change of it changes every key.
"""

LIBRARY = """
@triton.jit
def plus(a, b):
    return a + b


@triton.jit
def times(a, b):
    return a * b


@triton.jit
def either(a, b):
    return a | b


@triton.jit
def both(a, b):
    return a & b


@triton.jit
def greatest(a, b):
    return tl.maximum(a, b)


@triton.jit
def least(a, b):
    return tl.minimum(a, b)


@triton.jit
def greatest_or_nan(a, b):
    return tl.maximum(a, b, propagate_nan=tl.PropagateNan.ALL)


@triton.jit
def least_or_nan(a, b):
    return tl.minimum(a, b, propagate_nan=tl.PropagateNan.ALL)


@triton.jit
def first_greatest(a, at, b, bt):
    chosen = ((a == a) & ((b > a) | (b != b))) | (((b == a) | ((a != a) & (b != b))) & (bt < at))
    return tl.where(chosen, b, a), tl.where(chosen, bt, at)


@triton.jit
def first_least(a, at, b, bt):
    chosen = ((a == a) & ((b < a) | (b != b))) | (((b == a) | ((a != a) & (b != b))) & (bt < at))
    return tl.where(chosen, b, a), tl.where(chosen, bt, at)


@triton.jit
def later_greatest(a, b):
    return tl.where((b >= a) | (b != b), b, a)


@triton.jit
def later_least(a, b):
    return tl.where((b <= a) | (b != b), b, a)


@triton.jit
def log_of_both(a, b):
    least, most = least_or_nan(a, b), greatest_or_nan(a, b)
    apart = libdevice.log1p(libdevice.exp(least - most)) + most
    return tl.where((least == most) & (least - most != 0), a, apart)


@triton.jit
def floor_quotient(a, b):
    return a // b - tl.where((a % b != 0) & (a < 0), 1, 0)


@triton.jit
def floor_remainder(a, b):
    rest = a % b
    return tl.where(rest < 0, rest + b, rest)
"""

HEADER = """import triton
import triton.language as tl
from triton.language.extra.{maker} import libdevice


@triton.jit
def report(flag, code, bad):
    tl.device_assert(bad == 0, "index out of range")
"""
"""Of a GPU: what a kernel reports ends the program as eager's own kernels do, and no call waits to ask for it."""

INTERPRETED_HEADER = """
@triton.jit
def report(flag, code, bad):
    tl.store(flag + bad.to(tl.int32) * 0, code, mask=bad)
"""
"""Of the interpreter, whose caller asks after each kernel and raises what eager raises on a CPU."""

COMBINE = {
    "sum": "plus",
    "prod": "times",
    "any": "either",
    "all": "both",
    "argmax": "first_greatest",
    "argmin": "first_least",
}
"""The function that combines two values of a reduction; of `max` and `min`, see `extreme`."""

SO_FAR = {
    "sum": "plus",
    "prod": "times",
    "max": "later_greatest",
    "min": "later_least",
    "logsumexp": "log_of_both",
}
"""The function that combines a result so far with the next one."""


def extreme(kind: str, *, is_float: bool) -> str:
    """Return the function for `max` and `min`: among floats NaN is the extreme of all, as in eager."""
    return ("greatest" if kind in ("max", "maximum") else "least") + ("_or_nan" if is_float else "")
