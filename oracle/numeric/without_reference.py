"""The decision on a tensor without a float64 reference: integers exactly, floats by a few ulp of eager."""

import torch
from torch import Tensor

from ..noise.monte_carlo import unit_roundoff
from ..verdict import VerdictKind
from .element_places import discrete_difference, first_place, index_of
from .nonfinite import nonfinite_difference
from .value_decision import OpenDecision, ValueDecision

# Reordering explains differences of this many ulp; a relative difference above the share is an error.
BLIND_ULPS, BLIND_SHARE = 16.0, 0.02


def judge_without_reference(actual: Tensor, eager: Tensor) -> OpenDecision:
    """Judge by eager alone: integers exactly, floats by a few ulp of the tensor's scale."""
    if not actual.is_floating_point():
        differs = actual != eager
        at = first_place(differs)
        return ValueDecision(VerdictKind.WRONG, None, discrete_difference(actual, eager, at, int(differs.sum())))
    nonfinite = nonfinite_difference(actual, eager, None)
    if nonfinite is not None:
        return ValueDecision(VerdictKind.WRONG, None, nonfinite)
    a, e = actual.double(), eager.double()
    fine = torch.isfinite(a) & torch.isfinite(e)
    gap = torch.where(fine, (a - e).abs(), torch.zeros_like(a))
    u = unit_roundoff(eager.dtype)
    size = torch.where(fine, e.abs(), torch.zeros_like(e))
    typical = float(size.square().mean().sqrt())
    allowed = 2 * BLIND_ULPS * u * size.clamp(min=typical) + torch.finfo(eager.dtype).tiny
    flat = int((gap / allowed).argmax())
    at = index_of(flat, gap.shape)
    ratio = float((gap / allowed).reshape(-1)[flat])
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
