"""Tensors full of hard values, and the distance between two results in units in the last place."""

import math

import torch

SPECIAL = (
    0.0,
    -0.0,
    1.0,
    -1.0,
    math.inf,
    -math.inf,
    math.nan,
    0.5,
    1.5,
    2.5,
    -2.5,
    1e-45,
    6e-8,
    3e38,
    1e10,
    -300.7,
    300.7,
    -5.3,
    65504.0,
    0.1,
    2.0**31,
    2.0**63,
    -(2.0**63),
    1e-3,
    7.0,
    3.0,
)


def hard_tensor(dtype: torch.dtype, count: int, seed: int) -> torch.Tensor:
    """Return [count] values: ordinary ones with special ones strewn in at random places."""
    generator = torch.Generator().manual_seed(seed)
    if dtype == torch.bool:
        return torch.randint(0, 2, (count,), generator=generator).bool()
    places = torch.randperm(count, generator=generator)
    if dtype.is_floating_point:
        values = torch.randn(count, generator=generator, dtype=torch.float64) * 3
        chosen = torch.tensor(SPECIAL, dtype=torch.float64)[torch.randperm(len(SPECIAL), generator=generator)]
        taken = max(count // 2, 1) if count else 0
        values[places[:taken]] = chosen[:taken] if taken <= len(SPECIAL) else values[places[:taken]]
        values[places[: min(taken, len(SPECIAL))]] = chosen[: min(taken, len(SPECIAL))]
        return values.to(dtype)
    limits = torch.iinfo(dtype)
    values = torch.randint(max(limits.min, -9), 10, (count,), generator=generator).to(dtype)
    chosen = torch.tensor([limits.min, limits.max, 0, 1, limits.max // 3, limits.min // 3], dtype=dtype)
    taken = min(len(chosen), count // 2)
    values[places[:taken]] = chosen[torch.randperm(len(chosen), generator=generator)][:taken]
    return values


def ulps_apart(found: torch.Tensor, wanted: torch.Tensor) -> torch.Tensor:
    """Return per element how many units in the last place of `wanted` lie between; inf where NaN meets a number.

    NaN equals NaN.  Zeros of different sign are half a unit apart.
    """
    if not wanted.dtype.is_floating_point:
        return torch.where(found == wanted, 0.0, math.inf).double()
    same = (found == wanted) & (torch.signbit(found) == torch.signbit(wanted)) | (found.isnan() & wanted.isnan())
    limits = torch.finfo(wanted.dtype)
    size = torch.maximum(wanted.double().abs(), torch.tensor(limits.tiny, dtype=torch.float64))
    unit = torch.exp2(torch.floor(torch.log2(size))) * limits.eps
    apart = (found.double() - wanted.double()).abs() / unit
    apart = torch.where(apart.isnan(), math.inf, apart)
    apart = torch.where((found == 0) & (wanted == 0), 0.5, apart)
    return torch.where(same, 0.0, apart)
