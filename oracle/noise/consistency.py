"""Checks that an operator's float64 evaluation is the function that eager computed; runs for diagnosis only."""

from typing import Any

import torch
from torch import Tensor

from .lane_evaluation import LaneCall, plain
from .monte_carlo import INTERNAL, map_tensors, unit_roundoff
from .shadow_memory import wide_dtype

# Gross differences only: sums and libm of the same function stay far below these limits.
_STORAGE_UNITS, _INTERNAL_UNITS = 32.0, 1024.0


def inconsistency(call: LaneCall, real_args: Any, real_kwargs: Any) -> str | None:
    """Return how eager's result departs from float64 on eager's own inputs, None when both compute the same function.

    real_args, real_kwargs: eager's arguments as they were before the call, floating dtypes widened.
    """
    results = plain(call, map_tensors(real_args, _upcast), map_tensors(real_kwargs, _upcast))
    for value, real in zip(results, call.real, strict=False):
        if value.shape != real.shape:
            return f"float64 has shape {tuple(value.shape)}, eager {tuple(real.shape)}"
        departure = _departure(value, real)
        if departure is not None:
            return departure
    return None


def _upcast(value: Tensor) -> Tensor:
    return value.to(wide_dtype(value.dtype))


def _departure(value: Tensor, real: Tensor) -> str | None:
    if not (real.is_floating_point() or real.is_complex()):
        count = int((value != real).sum())
        return f"{count} of {real.numel()} integers differ" if count else None
    gap = (value - _upcast(real)).abs()
    fine = torch.isfinite(gap)
    if not bool(fine.any()):
        return None
    size = max(float(_upcast(real)[fine].abs().max()), torch.finfo(real.dtype).tiny)  # subnormals are as far apart
    allowed = (_STORAGE_UNITS * unit_roundoff(real.dtype) + _INTERNAL_UNITS * INTERNAL) * size
    worst = float(gap[fine].max())
    return f"{worst:.3g} off where the largest value is {size:.3g}" if worst > allowed else None
