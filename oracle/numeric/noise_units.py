"""One unit of noise for every element, and the distance of a compiled tensor in those units.

Per element, sigma is the spread of the Monte-Carlo-arithmetic replicas around the exact value, with floors for what
a spread of few samples cannot say.  Eager's own distance calibrates it.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from plumbline.compiler.comparison.spread_floors import with_floors

from ..noise.monte_carlo import WIDE, unit_roundoff
from ..verdict import ErrorStatistics

# One element may be this many units off: rounding errors are bounded combinations of bounded noises; with the
# 8 replicas that estimate a unit, 8 of them is what 1e6 legitimate elements stay below.
ELEMENT = 8.0
# In low precision the last rounding dominates and is bounded, not Gaussian: u|R| each way, and a third one for a
# value that was rounded twice.  Noise from before the last rounding still counts ELEMENT times.
LAST_ROUNDINGS = 3.0
# The compiled rms may be twice eager's (or twice one unit): the precision contract.  So may a single element where
# eager is further off than the units say: with ties few replicas take the branch that rounding seldom takes.
PRECISION = 2.0
# The root mean square of a single draw is that error, bounded like an element: 2 * (1 + 3) = 8; of many draws, 2.
FEW_DRAWS = 3.0
# A mean over k independent roundings is below 3.5/sqrt(k); comparing m slices adds sqrt(2 ln m).
BIAS_NULL = 3.5
# Mean offsets that another order of evaluation may leave: float32 kernels differ in their last bit
# systematically; in low precision the final rounding dominates and is unbiased.
BIAS_FLOOR_FULL, BIAS_FLOOR_LOW = 0.6, 0.05
# Rounding to nearest has standard deviation u/sqrt(3).
ROUNDING = 0.58
# Where no lane moves and eager is exact, nothing is rounded: one ulp off is then an error.
EXACT_SHARE = 0.1
# A position is undetermined when a unit of noise is a quarter of the value's scale: no digit is certain.
UNDETERMINED = 0.25

# Distances are cut off here, in units; LEAST: the smallest float64, which a unit is never below.
FARTHEST = 1e140
LEAST = 5e-324
# A jump: wide replicas move this much more than their amplification explains.
JUMP = 3.0

LOW_PRECISION = frozenset({torch.float16, torch.bfloat16})


@dataclass(frozen=True, slots=True)
class NoiseUnits:
    """Distances in units of noise.

    z, z_eager: signed distance from the exact value of the compiled value and of eager's.  sigma: one unit.
    allowed: the largest error a single element may have.  calibration: how much wider eager is than the replicas.
    counted: positions that are compared.  unstable: positions that rounding alone decides.
    """

    z: Tensor
    z_eager: Tensor
    sigma: Tensor
    allowed: Tensor
    calibration: float
    counted: Tensor
    unstable: Tensor


def measured(
    actual: Tensor, eager: Tensor, exact: Tensor, replicas: Tensor, jumped: Tensor | None = None
) -> tuple[NoiseUnits, ErrorStatistics]:
    """Return the units of noise and the test statistics in them; positions in `jumped` are left out."""
    units = _noise_units(actual, eager, exact, replicas, jumped)
    return units, _error_statistics(actual, eager, exact, replicas, units)


def jumped_places(actual: Tensor, eager: Tensor, exact: Tensor, wide: Tensor, units: NoiseUnits) -> Tensor:
    """Return where the compiled value or eager took a branch that rounding can take.

    There wide replicas jump (move more than their amplification explains), and at least as far.
    """
    sigma = units.sigma / units.calibration
    reach = torch.where(torch.isfinite(wide), (wide - exact).abs(), 0.0).amax(0)
    jumps = units.counted & (reach > JUMP * WIDE * sigma)
    result = torch.zeros_like(jumps)
    for value in (actual.double(), eager.double()):
        distance = (value - exact).abs()
        result |= jumps & (distance <= 1.5 * reach) & (distance > ELEMENT / 2 * sigma)
    return result


def _noise_units(actual: Tensor, eager: Tensor, exact: Tensor, replicas: Tensor, jumped: Tensor | None) -> NoiseUnits:
    """Measure the compiled tensor and eager's against the replicas; positions in `jumped` are left out."""
    a, e = actual.double(), eager.double()
    lanes_finite = torch.isfinite(exact) & torch.isfinite(replicas).all(0)
    counted = torch.isfinite(a) & lanes_finite
    if jumped is not None:
        counted &= ~jumped
    zero = torch.zeros_like(exact)
    r = torch.where(lanes_finite, exact, zero)
    spread = _spread(r, replicas, lanes_finite)
    sigma, allowed = _sigma(spread, r, e, lanes_finite, eager.dtype)
    z_eager = _bounded(torch.where(counted & torch.isfinite(e), (e - r) / sigma, zero))
    calibration = _calibration(z_eager[counted]) if bool(counted.any()) else 1.0
    sigma = sigma * calibration
    z = _bounded(torch.where(counted, (a - r) / sigma, zero))
    level = float(r[lanes_finite].square().mean().sqrt()) if bool(lanes_finite.any()) else 0.0
    unstable = lanes_finite & (spread > UNDETERMINED * r.abs().clamp(min=level)) & (spread > 0)
    unstable |= ~lanes_finite & torch.isfinite(exact)
    if jumped is not None:
        unstable |= jumped
    return NoiseUnits(z, z_eager / calibration, sigma, allowed * calibration, calibration, counted, unstable)


def _bounded(z: Tensor) -> Tensor:
    """Return distances whose squares and sums are finite: beside an exact 0 of float64 a unit is next to nothing."""
    return z.nan_to_num(nan=0.0).clamp(-FARTHEST, FARTHEST)


def _spread(r: Tensor, replicas: Tensor, finite: Tensor) -> Tensor:
    """Return the root mean square distance of the replicas from the exact value, one replica at a time."""
    total = torch.zeros_like(r)
    for row in replicas:
        total += torch.where(finite, row - r, torch.zeros_like(r)).square_()
    return total.div_(replicas.shape[0]).sqrt_()


def _sigma(spread: Tensor, r: Tensor, e: Tensor, finite: Tensor, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """Return one unit of noise an element (the replicas' spread, its floors, the final rounding), and its bound."""
    u = unit_roundoff(dtype)
    size = r.abs()
    moving = finite & (spread > 0)
    sigma = with_floors(spread, size, moving, moving)
    still = ~moving & (e == r)
    rounding = torch.where(still, EXACT_SHARE, 1.0) * ROUNDING * u * size
    tiny = max(u * torch.finfo(dtype).tiny, LEAST)
    unit = sigma + rounding + tiny
    if dtype not in LOW_PRECISION:
        return unit, ELEMENT * unit
    before = (sigma.square() - (ROUNDING * u * size).square()).clamp(min=0).sqrt()
    last = torch.where(still, ELEMENT * rounding, LAST_ROUNDINGS * u * size)
    return unit, ELEMENT * (before + tiny) + last


def _calibration(z: Tensor) -> float:
    """Return how much wider than the replicas eager itself is: libm, order of summation (at least 1)."""
    size = z.abs()
    index = max(0, math.ceil(0.995 * size.numel()) - 1)
    high = float(size.kthvalue(index + 1).values)
    return max(1.0, high / 3, float(size.max()) / 6, float(size.square().mean().sqrt()))


def _error_statistics(
    actual: Tensor, eager: Tensor, exact: Tensor, replicas: Tensor, units: NoiseUnits
) -> ErrorStatistics:
    """Return the three test statistics and the worst element; nothing counted gives statistics of 0."""
    z, counted = units.z, units.counted
    total = int(counted.sum())
    share = float(units.unstable.double().mean()) if units.unstable.numel() else 0.0
    if not total:
        return ErrorStatistics(0.0, 0.0, 0.0, 0.0, unstable=share)
    error = torch.where(counted, actual.double() - exact, 0.0).abs()
    eager_error = torch.where(torch.isfinite(eager), (eager.double() - exact).abs(), 0.0)
    excess = _bounded(error / torch.maximum(units.allowed, PRECISION * eager_error.nan_to_num(nan=0.0)))
    at = tuple(map(int, torch.unravel_index(excess.argmax(), z.shape)))
    rms = float((z.square().sum() / total).sqrt())
    rms_eager = float((units.z_eager[counted].square().mean()).sqrt())
    t_element = float(excess[at])
    copies = repetitions(exact[counted])
    few = 1 + FEW_DRAWS / math.sqrt(total / copies)
    t_rms = rms / (PRECISION * max(1.0, rms_eager) * few)
    t_bias = _bias(eager.dtype, exact, replicas, units, copies)
    return ErrorStatistics(
        t_element=t_element,
        t_rms=t_rms,
        t_bias=t_bias,
        margin=max(t_element, t_rms, t_bias),
        unstable=share,
        worst_index=at,
        actual=float(actual[at]),
        eager=float(eager[at]),
        reference=float(exact[at]),
        error=abs(float(actual[at]) - float(exact[at])),
        scale=float(units.sigma[at]),
    )


def repetitions(values: Tensor) -> float:
    """Return how often each value occurs on average: equal values round alike, and count as one draw."""
    distinct = int(torch.unique(values).numel())
    return values.numel() / max(1, distinct)


def _bias(dtype: torch.dtype, exact: Tensor, replicas: Tensor, units: NoiseUnits, copies: float) -> float:
    """Return the largest mean of z over the tensor and every slice of every dimension, over what chance allows.

    copies: how often each value occurs; a mean over equal roundings is no more certain than a single one.
    """
    floor = BIAS_FLOOR_LOW if dtype in LOW_PRECISION else BIAS_FLOOR_FULL
    counted = units.counted
    sign = torch.where(exact < 0, -1.0, 1.0)
    dims: list[int | None] = [None, *[d for d in range(exact.dim()) if exact.shape[d] > 1 and exact.dim() > 1]]
    weights = counted.double()
    counts = {dim: fold(weights, dim) for dim in dims}
    nulls = dict.fromkeys([(dim, signed) for dim in dims for signed in (False, True)], 0.0)
    for sample in _null_samples(exact, replicas, units):  # one after the other: a large tensor has room for few
        for dim, signed in nulls:
            mean = float(_means(sample, sign if signed else None, dim, counts[dim]).max())
            nulls[dim, signed] = max(nulls[dim, signed], mean)
    worst = 0.0
    for (dim, signed), null in nulls.items():
        count = counts[dim]
        slices = int((count > 0).sum())
        many = math.sqrt(2 * math.log(slices + 1)) if dim is not None else 0.0
        means = _means(units.z, sign if signed else None, dim, count)
        allowed = floor + 2 * null + (BIAS_NULL + many) / (count / copies).clamp(min=1).sqrt()
        worst = max(worst, float((means / allowed).max()))
    return worst


def _null_samples(exact: Tensor, replicas: Tensor, units: NoiseUnits) -> Iterator[Tensor]:
    """Yield the distances of what is right: eager's, and those of the replicas."""
    yield units.z_eager
    for row in replicas:
        yield _bounded(torch.where(units.counted, (row - exact) / units.sigma, 0.0))


def fold(value: Tensor, dim: int | None) -> Tensor:
    """Return sums over the whole tensor, or over every slice of one dimension."""
    if dim is None:
        return value.sum().reshape(1)
    others = [d for d in range(value.dim()) if d != dim]
    return value.sum(others) if others else value


def _means(z: Tensor, direction: Tensor | None, dim: int | None, count: Tensor) -> Tensor:
    return fold(z if direction is None else z * direction, dim).abs_() / count.clamp(min=1)
