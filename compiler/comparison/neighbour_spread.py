"""What the neighbours of an element say about its noise: the compiler's scale of noise and the oracle's both ask."""

import torch
from torch import Tensor


def neighbour_spread(spread: Tensor, moving: Tensor) -> Tensor:
    """Return the smallest typical (geometric mean) spread among the slices an element lies in, one a dimension.

    spread: of the replicas, an element each.  moving: where the spread is known and not zero; anywhere at least.
    The result broadcasts to the shape of both.
    """
    logs = torch.where(moving, spread, 1.0).log_()
    weights = moving.double()
    if spread.dim() < 2:
        return (logs.sum() / weights.sum().clamp(min=1)).exp()
    result: Tensor | None = None
    for dim in range(spread.dim()):
        others = [d for d in range(spread.dim()) if d != dim]
        count = weights.sum(others, keepdim=True)
        mean = (logs.sum(others, keepdim=True) / count.clamp(min=1)).exp()
        typical = torch.where(count > 0, mean, 0.0)
        result = typical if result is None else torch.minimum(result, typical)
    assert result is not None
    return result
