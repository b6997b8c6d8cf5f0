"""What a spread of few replicas is at least: the compiler's scale of noise and the oracle's have the same floors."""

import torch
from torch import Tensor

# Where the replicas happen to be close together: half the typical relative spread, a third of the neighbours' spread.
RELATIVE_FLOOR, NEIGHBOUR_FLOOR = 0.5, 0.3


def with_floors(spread: Tensor, size: Tensor, moving: Tensor, near: Tensor) -> Tensor:
    """Return the spread of each element's replicas, raised to its floors.

    size: of the values, not negative.  moving: where the spread is known and not zero; the relative floor is for these.
    near: where the floor from the neighbours is for.
    """
    relevant = moving & (size > 0)
    if not bool(relevant.any()):
        return spread
    typical = float((spread[relevant] / size[relevant]).median())
    raised = torch.maximum(spread, torch.where(moving, RELATIVE_FLOOR * typical * size, 0.0))
    return torch.maximum(raised, torch.where(near, NEIGHBOUR_FLOOR * _neighbour_spread(spread, moving), 0.0))


def _neighbour_spread(spread: Tensor, moving: Tensor) -> Tensor:
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
