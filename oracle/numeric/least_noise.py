"""The least noise that a tensor has: what passes in these units passes in those of any replicas, so none are run.

Every element that rounds is rounded once at least, when it is stored.  A unit of noise is never below that, whatever
the replicas show, and all three statistics of the full judgement get smaller where units get larger.
"""

import math

import torch
from torch import Tensor

from ..noise.monte_carlo import unit_roundoff
from .noise_units import (
    BIAS_FLOOR_FULL,
    BIAS_FLOOR_LOW,
    BIAS_NULL,
    ELEMENT,
    EXACT_SHARE,
    FEW_DRAWS,
    LAST_ROUNDINGS,
    LEAST,
    LOW_PRECISION,
    PRECISION,
    ROUNDING,
    fold,
    repetitions,
)

# Eager farther from float64 than this many u of a value may have jumped there: with these units its calibration could
# pass `float_values.SUSPECT`, and wide lanes would be asked.
EAGER_FARTHEST = 6.5


def margin_bound(actual: Tensor, eager: Tensor, exact: Tensor) -> float:
    """Return a bound on the margin that replicas would give: 1 or less is an acceptance; infinite where none is known.

    actual, eager: of one shape and floating dtype.  exact: the float64 value.  No bound is known where something is
    not finite, or where eager itself is far from the exact value.
    """
    a, e, r = actual.double(), eager.double(), exact
    u, low = unit_roundoff(eager.dtype), eager.dtype in LOW_PRECISION
    error, eager_error, size = (a - r).abs(), (e - r).abs(), r.abs()
    if not eager.numel() or not bool((eager_error <= EAGER_FARTHEST * u * size).all()):  # nor where it is NaN
        return math.inf
    tiny = max(u * torch.finfo(eager.dtype).tiny, LEAST)
    rounding = torch.where(e == r, EXACT_SHARE, 1.0) * ROUNDING * u * size
    unit = rounding + tiny
    allowed = ELEMENT * unit
    if low:
        allowed = ELEMENT * tiny + torch.where(e == r, ELEMENT * rounding, LAST_ROUNDINGS * u * size)
    element = float((error / allowed).max())
    if math.isnan(element):
        return math.inf
    z = error / unit
    total, copies = z.numel(), repetitions(r)
    few = 1 + FEW_DRAWS / math.sqrt(total / copies)
    rms = float(z.square().mean().sqrt()) / (PRECISION * few)
    return max(element, rms, _bias_bound(z, copies, BIAS_FLOOR_LOW if low else BIAS_FLOOR_FULL))


def _bias_bound(z: Tensor, copies: float, floor: float) -> float:
    """Return a bound on the means over slices beside what chance allows: a mean is no larger than that of sizes."""
    worst = 0.0
    for dim in (None, *(d for d in range(z.dim()) if z.shape[d] > 1 and z.dim() > 1)):
        slices = 1 if dim is None else z.shape[dim]
        count = z.numel() / slices
        many = 0.0 if dim is None else math.sqrt(2 * math.log(slices + 1))
        allowed = floor + (BIAS_NULL + many) / math.sqrt(max(1.0, count / copies))
        worst = max(worst, float(fold(z, dim).max()) / count / allowed)
    return worst
