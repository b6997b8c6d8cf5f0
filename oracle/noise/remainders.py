"""Remainders by C's own fmod where ATen's vector kernels lose them.

These divide first: where the quotient overflows (by a subnormal number, say) they give NaN, and only the elements at
the end of a row, which the scalar kernel takes, have the remainder.
"""

import math
from typing import Any

import torch
from torch import Tensor


def fmod(x: Any, y: Any) -> Tensor:
    """Return the remainder with the sign of x, elementwise with broadcasting; x, y: float64 tensors or numbers."""
    return _found_again(torch.fmod(x, y), x, y)


def remainder(x: Any, y: Any) -> Tensor:
    """Return the remainder with the sign of y, elementwise with broadcasting; x, y: float64 tensors or numbers."""
    result: Tensor = torch.remainder(x, y)
    again = _found_again(result, x, y)
    if again is result:
        return result
    turned = torch.where((again != 0) & (torch.signbit(again) != torch.signbit(torch.as_tensor(y))), again + y, again)
    return torch.where(torch.isnan(result), turned, result)


def _found_again(result: Tensor, x: Any, y: Any) -> Tensor:
    """Return the result with C's remainders where it is NaN between finite numbers, unless the divisor is zero."""
    if not result.is_floating_point() or not bool(torch.isnan(result).any()):
        return result
    dividend, divisor = (torch.as_tensor(each, dtype=result.dtype).expand(result.shape) for each in (x, y))
    lost = torch.isnan(result) & torch.isfinite(dividend) & torch.isfinite(divisor) & (divisor != 0)
    if not bool(lost.any()):
        return result
    pairs = zip(dividend[lost].tolist(), divisor[lost].tolist(), strict=True)
    again = result.clone()
    again[lost] = torch.tensor([math.fmod(*pair) for pair in pairs], dtype=result.dtype)
    return again
