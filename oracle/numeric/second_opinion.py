"""Before a tensor of floats is said to be wrong: more lanes, where those of before say too little about its noise.

Eight replicas measure noise that is one bell.  They miss a few large errors among many small ones (the gradient of a
distance of nearly zero), and a pole that one rounding hits or misses (`digamma(tanh(x))`, a correlation of equal
numbers).
"""

from collections.abc import Iterable

import torch
from torch import Tensor

from .bits import as_reals
from .noise_units import ELEMENT

DOUBTFUL = 32.0
"""Up to this margin a second opinion is asked for: beyond, noise would have to be 256 times what replicas show."""
MOST_NUMBERS = 1 << 18
"""Of a tensor that a second opinion is asked about: 64 lanes of it are 128 MB."""
HEAVY = 4.0
"""Where noise is a bell, the farthest of 64 replicas is 2.5 units away, and so far in one of 250 elements."""
REACH = 2.0
"""How much farther than the farthest replica a legitimate value may be, where noise is no bell."""


def in_heavy_tails(actual: Tensor, exact: Tensor, replicas: Tensor) -> Tensor:
    """Return the elements whose noise is no bell, where a compiled value is nearly as far off as some replica."""
    actual, exact, replicas = as_reals(actual).double(), as_reals(exact), as_reals(replicas)
    finite = torch.isfinite(replicas).all(0) & torch.isfinite(actual)
    apart = torch.where(finite, (actual - exact).abs(), 0.0)
    distances = torch.where(finite, (replicas - exact).abs(), 0.0)
    spread, reach = distances.square().mean(0).sqrt(), distances.amax(0)
    return (reach > HEAVY * spread) & (apart > ELEMENT / 2 * spread) & (apart <= REACH * reach)


def at_poles(exact: Tensor, lanes: Iterable[Tensor]) -> Tensor:
    """Return the elements that some lanes have finite and others have not; exact: one more lane."""
    finite = torch.isfinite(as_reals(exact))
    ever, always = finite, finite
    for rows in lanes:
        finite = torch.isfinite(as_reals(rows))
        ever, always = ever | finite.any(0), always & finite.all(0)
    return ever & ~always
