"""Before a tensor of floats is said to be wrong: more lanes, where those of before say too little about its noise.

Eight replicas measure noise that is one bell. They miss a pole of a function, which one rounding hits or misses
(`digamma(tanh(x))`, a correlation of equal numbers), and a few large errors among many small ones (the gradient of
a distance of nearly zero).
"""

from collections.abc import Iterable

import torch
from torch import Tensor

from .bits import as_reals
from .noise_units import ELEMENT

DOUBTFUL = 32.0
"""Up to this margin a second opinion is asked for: beyond, noise would have to be 256 times what replicas show."""
HEAVY = 4.0
"""Lanes that go this many units away show that noise is no bell: of 64 of one, the farthest is 2.5 units away."""
REACH = 2.0
"""How much farther than the farthest lane a legitimate value may be."""


def excused(actual: Tensor, exact: Tensor, replicas: Tensor, further: Iterable[Tensor]) -> Tensor:
    """Return the elements at which the lanes allow what a compiled tensor holds.

    Either some lanes are finite there and others are not, or their farthest is far beyond their spread, and nearly as
    far as the compiled value.  exact, replicas: the lanes that were judged by.  further: more of them, a few at a time.
    """
    actual, exact, replicas = as_reals(actual).double(), as_reals(exact), as_reals(replicas)
    finite = torch.isfinite(replicas)
    ever, always = finite.any(0), finite.all(0)
    spread = torch.where(finite, replicas - exact, 0.0).square().mean(0).sqrt()
    reach = torch.where(finite, (replicas - exact).abs(), 0.0).amax(0)
    for lanes in further:
        rows = as_reals(lanes)
        finite = torch.isfinite(rows)
        ever, always = ever | finite.any(0), always & finite.all(0)
        reach = torch.maximum(reach, torch.where(finite, (rows - exact).abs(), 0.0).amax(0))
    apart = (actual - exact).abs()
    heavy = (reach > HEAVY * spread) & (apart > ELEMENT / 2 * spread) & (apart <= REACH * reach)
    return (ever & ~always) | (heavy & torch.isfinite(actual))
