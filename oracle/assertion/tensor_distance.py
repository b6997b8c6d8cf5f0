"""Whether rounding explains how far a tensor is from the expected one: by a reference, or by units of the dtype.

With a reference the unit of noise is the expected tensor's own error against it; without one it is the dtype's unit in
the last place, at the element or at the tensor's typical size.
"""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from ..noise.monte_carlo import unit_roundoff
from ..numeric.bits import as_reals, same_values, zero_sign_differences
from ..numeric.element_places import discrete_difference, first_place, positions, shown
from ..numeric.noise_units import ELEMENT, PRECISION, ROUNDING
from ..numeric.value_decision import FinalDecision
from ..verdict import ErrorStatistics, VerdictKind

# The compiled rms error below this share of the expected one's is better.
BETTER_SHARE = 0.5
# Of few elements the root mean square is as uncertain as one of them.
FEW = 3.0


@dataclass(frozen=True, slots=True)
class AllowedDistance:
    """What a difference may be: `units` without a reference, `multiple` of expected's own error with one."""

    units: float = 16.0
    multiple: float = ELEMENT


def judge_tensors(
    actual: Tensor, expected: Tensor, reference: Tensor | None, allowed: AllowedDistance
) -> FinalDecision:
    """Judge two tensors of equal shape and dtype; reference: the same values in a wider dtype.

    NaN is equal to NaN, zeros of either sign are equal, and infinities have to be at the same places, unless the
    reference says that expected has them in the wrong ones.
    """
    signs = zero_sign_differences(actual, expected)
    dtype = expected.dtype
    if same_values(actual, expected):
        if signs:
            return FinalDecision(VerdictKind.NOISE, None, f"equal but for the sign of zero at {positions(signs)}")
        return FinalDecision(VerdictKind.EQUAL, None, "bitwise equal")
    a, e = as_reals(actual), as_reals(expected)
    if not e.is_floating_point():
        differs = a != e
        return FinalDecision(VerdictKind.WRONG, None, _integers(a, e, first_place(differs), int(differs.sum())))
    u = unit_roundoff(dtype)
    # In wide numbers; the reference of a complex tensor is complex, too.
    r = None if reference is None else as_reals(reference).to(a.device, torch.float64)
    misplaced = _misplaced(a, e, r)
    if misplaced is not None:
        return FinalDecision(VerdictKind.WRONG, None, misplaced)
    if r is None:
        return _by_dtype(a.double(), e.double(), u, float(torch.finfo(dtype).tiny), allowed)
    return _by_reference(a.double(), e.double(), r, u, float(torch.finfo(dtype).tiny), allowed)


def _integers(actual: Tensor, expected: Tensor, at: tuple[int, ...], count: int) -> str:
    words = discrete_difference(actual, expected, at, count).replace("eager has", "expected has")
    return f"{words}; integers and booleans do not round"


def _misplaced(actual: Tensor, expected: Tensor, reference: Tensor | None) -> str | None:
    """Return which element is not finite where it should be, or the other way round; None when all are right."""
    same = (actual == expected) | (actual.isnan() & expected.isnan())
    wrong = ~same & (~actual.isfinite() | ~expected.isfinite())
    if reference is not None:
        rounded = reference.to(expected.dtype).to(actual.dtype)
        right = (actual == rounded) | (actual.isnan() & reference.isnan()) | (actual.isfinite() & reference.isfinite())
        wrong &= ~right
    if not bool(wrong.any()):
        return None
    at = first_place(wrong)
    words = f"{shown(actual[at])} at {list(at)}, expected has {shown(expected[at])}"
    if reference is not None:
        words += f", the reference {shown(reference[at])}"
    return f"{words} (at {positions(int(wrong.sum()))})"


def _by_dtype(a: Tensor, e: Tensor, u: float, tiny: float, allowed: AllowedDistance) -> FinalDecision:
    """Judge by units in the last place: of the element, or of the root mean square where the element is smaller."""
    fine = a.isfinite() & e.isfinite()
    zero = torch.zeros_like(e)
    size, gap = torch.where(fine, e.abs(), zero), torch.where(fine, (a - e).abs(), zero)
    typical = _rms(size, int(fine.sum()))
    unit = (2 * u * size.clamp(min=typical)).clamp(min=2 * u * tiny)
    worst = _place_of_largest(gap / unit)
    units = float((gap / unit)[worst])
    beyond = int((gap > allowed.units * unit).sum())
    words = (
        f"{float(gap[worst]):.2g} off at {list(worst)} (expected {float(e[worst]):.6g}, actual {float(a[worst]):.6g}): "
        f"{units:.3g} units in the last place"
    )
    if typical > float(size[worst]):
        words += f" of the tensor's typical value {typical:.3g}"
    statistics = _statistics(a, e, None, worst, gap, unit, units / allowed.units)
    if not beyond:
        return FinalDecision(VerdictKind.NOISE, statistics, f"{words}; up to {allowed.units:g} are held for rounding")
    words += f", {allowed.units:g} are held for rounding; {_of(beyond, e.numel())} beyond"
    return FinalDecision(VerdictKind.WRONG, statistics, words)


def _by_reference(a: Tensor, e: Tensor, r: Tensor, u: float, tiny: float, allowed: AllowedDistance) -> FinalDecision:
    """Judge the distance of actual from the reference, in units of the distance of expected from it.

    One unit is the rms error of expected, and no less than the rounding of the element to its dtype.
    """
    fine = a.isfinite() & e.isfinite() & r.isfinite()
    # An infinity of expected's alone is an overflow that the reference does not have: actual is judged by rounding.
    judged = a.isfinite() & r.isfinite()
    zero = torch.zeros_like(r)
    error, expected_error = torch.where(judged, (a - r).abs(), zero), torch.where(fine, (e - r).abs(), zero)
    size = torch.where(judged, r.abs(), zero)
    count = max(1, int(judged.sum()))
    rms, expected_rms = _rms(error, count), _rms(expected_error, int(fine.sum()))
    floor = ROUNDING * u * _rms(size, count)
    unit = torch.maximum(torch.full_like(r, expected_rms), ROUNDING * u * size).clamp(min=u * tiny)
    limit = torch.maximum(allowed.multiple * unit, 2 * expected_error)
    worst = _place_of_largest(error / limit)
    beyond = int((error > limit).sum())
    wide = rms / (PRECISION * max(expected_rms, floor, u * tiny) * (1 + FEW / math.sqrt(count)))
    margin = max(float((error / limit)[worst]), wide)
    statistics = _statistics(a, e, r, worst, error, unit, margin)
    words = (
        f"{float(error[worst]):.2g} from the reference at {list(worst)} (reference {float(r[worst]):.6g}, "
        f"expected {float(e[worst]):.6g}, actual {float(a[worst]):.6g}): {float((error / unit)[worst]):.3g}x the "
        f"noise, which is {float(unit[worst]):.2g} there; rms error {rms:.2g}, expected has {expected_rms:.2g}"
    )
    if beyond:
        words += f"; {_of(beyond, r.numel())} beyond {allowed.multiple:g}x"
        return FinalDecision(VerdictKind.WRONG, statistics, words)
    if wide > 1:
        return FinalDecision(
            VerdictKind.WRONG, statistics, f"{words}; as a whole that is {wide:.2g}x what rounding allows"
        )
    kind = VerdictKind.BETTER if rms < BETTER_SHARE * expected_rms else VerdictKind.NOISE
    return FinalDecision(kind, statistics, words)


def _rms(size: Tensor, count: int) -> float:
    return float(torch.linalg.vector_norm(size)) / math.sqrt(max(1, count))


def _place_of_largest(values: Tensor) -> tuple[int, ...]:
    return tuple(map(int, torch.unravel_index(values.nan_to_num(nan=0.0).argmax(), values.shape)))


def _of(count: int, total: int) -> str:
    return f"{count} of {total} elements {'is' if count == 1 else 'are'}"


def _statistics(
    a: Tensor, e: Tensor, r: Tensor | None, at: tuple[int, ...], gap: Tensor, unit: Tensor, margin: float
) -> ErrorStatistics:
    return ErrorStatistics(
        t_element=margin,
        t_rms=0.0,
        t_bias=0.0,
        margin=margin,
        worst_index=at,
        actual=float(a[at]),
        eager=float(e[at]),
        reference=None if r is None else float(r[at]),
        error=float(gap[at]),
        scale=float(unit[at]),
    )
