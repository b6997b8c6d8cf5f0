"""The decision on a tensor of floats without a float64 reference: by a few ulp of eager."""

import torch
from torch import Tensor

from ..noise.monte_carlo import unit_roundoff
from ..verdict import VerdictKind
from .value_decision import OpenDecision, ValueDecision

# Reordering explains differences of this many ulp; a relative difference above the share is an error.
BLIND_ULPS, BLIND_SHARE = 16.0, 0.02


def judge_without_reference(actual: Tensor, eager: Tensor) -> OpenDecision:
    """Judge by eager alone, by a few ulp of the tensor's scale; NaN and Inf are where they may be."""
    a, e = actual.double(), eager.double()
    fine = torch.isfinite(a) & torch.isfinite(e)
    gap = torch.where(fine, (a - e).abs(), torch.zeros_like(a))
    u = unit_roundoff(eager.dtype)
    size = torch.where(fine, e.abs(), torch.zeros_like(e))
    typical = float(size.square().mean().sqrt())
    allowed = 2 * BLIND_ULPS * u * size.clamp(min=typical) + torch.finfo(eager.dtype).tiny
    at = tuple(map(int, torch.unravel_index((gap / allowed).argmax(), gap.shape)))
    ratio = float((gap / allowed)[at])
    where = f"{float(gap[at]):.2g} off at {list(at)} (eager {float(e[at]):.6g}, compiled {float(a[at]):.6g})"
    if ratio <= 1:
        sentence = f"{where}: within {BLIND_ULPS:.0f} ulp of eager; there is no float64 reference"
        return ValueDecision(VerdictKind.NO_REFERENCE, None, sentence)
    share = float((gap > allowed).double().mean())
    gross = float((gap / size.clamp(min=typical).clamp(min=torch.finfo(eager.dtype).tiny)).max())
    if gross > max(BLIND_SHARE, 64 * BLIND_ULPS * u):
        sentence = f"{where}: far beyond rounding; there is no float64 reference"
        return ValueDecision(VerdictKind.WRONG, None, sentence)
    sentence = f"{where}: beyond {BLIND_ULPS:.0f} ulp at {share:.1%} of positions; there is no float64 reference"
    return ValueDecision(VerdictKind.NO_REFERENCE, None, sentence)
