"""The places that a choice among nearly equal values might have hit, in a gradient of their maximum, say.

Each lane of such a gradient is zero but for few places, and which these are rounding decides: where no lane has
anything, the compiled program may.
"""

import torch
from torch import Tensor

from .bits import as_reals

UNSEEN = 0.02
"""Share of what lanes hit that only one of them does: the next one hits a place that none has as often."""
FARTHER = 2.0
"""How much larger than all that lanes have anywhere a legitimate value may be."""


def at_unseen_places(actual: Tensor, exact: Tensor, lanes: Tensor) -> Tensor:
    """Return the elements that are zero in every lane, where the next one may well have another of these hit.

    How often it does is estimated by Good and Turing: as often as a place is hit that only one lane has hit.
    """
    actual, exact, lanes = as_reals(actual).double(), as_reals(exact), as_reals(lanes)
    hits = (lanes != 0).sum(0)
    never = (hits == 0) & (exact.abs() <= torch.finfo(torch.float32).eps * lanes.abs().max())
    if int((hits == 1).sum()) < UNSEEN * max(1, int(hits.sum())):
        return torch.zeros_like(never)
    return never & (actual.abs() <= FARTHER * lanes.abs().max())
