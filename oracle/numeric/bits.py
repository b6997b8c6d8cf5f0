"""Two tensors compared bit by bit; payloads of NaN never count, signs of zero are counted apart."""

import torch
from torch import Tensor

from ..equal_memory import equal_memory

_COMMON = frozenset({torch.float16, torch.bfloat16, torch.float32, torch.float64})


def equal_bits(first: Tensor, second: Tensor) -> bool:
    """Return whether two tensors of equal shape and dtype hold the same bits (any NaN equals any NaN)."""
    with torch.no_grad():
        if equal_memory(first, second):
            return True
        if "meta" in (first.device.type, second.device.type):  # no numbers: the form alone, which is compared elsewhere
            return first.device == second.device
        left, right = first.detach().cpu().resolve_conj(), second.detach().cpu().resolve_conj()
        if left.is_complex():
            left, right = torch.view_as_real(left), torch.view_as_real(right)
        if not left.is_floating_point():
            return torch.equal(left, right)
        if left.itemsize == 1:  # of eight bits, which torch stores and converts, and hardly computes with
            left, right = left.float(), right.float()
        if left.dtype in _COMMON and not torch.equal(left, right) and not bool(left.sum(dtype=left.dtype).isnan()):
            return False  # a sum without NaN has no NaN among its terms, so that some number differs
        both_nan = left.isnan() & right.isnan()
        same = (left == right) & (left.signbit() == right.signbit())
        return bool((same | both_nan).all())


def zero_sign_differences(actual: Tensor, eager: Tensor) -> int:
    """Return the number of positions where both are zeros of different signs."""
    if not (actual.is_floating_point() or actual.is_complex()):
        return 0
    actual, eager = as_reals(actual), as_reals(eager)
    both = (actual == 0) & (eager == 0)
    return int((both & (torch.signbit(actual) != torch.signbit(eager))).sum())


def as_reals(value: Tensor) -> Tensor:
    """Return the values detached; complex ones as pairs of floats in a last dimension, those of eight bits widened."""
    value = value.detach()
    if value.is_floating_point() and value.itemsize == 1:
        return value.float()
    return torch.view_as_real(value.resolve_conj()) if value.is_complex() else value


def equal_values(first: Tensor, second: Tensor) -> bool:
    """Return whether values are equal everywhere, as `torch.equal` says, which does not know every dtype."""
    if first.dtype != second.dtype or first.shape != second.shape:
        return False
    return torch.equal(as_reals(first), as_reals(second))


def same_values(actual: Tensor, eager: Tensor) -> bool:
    """Return whether values are equal everywhere; NaN equals NaN, and zeros of either sign are equal."""
    actual, eager = as_reals(actual), as_reals(eager)
    if torch.equal(actual, eager):
        return True
    return bool(((actual == eager) | ((actual != actual) & (eager != eager))).all())
