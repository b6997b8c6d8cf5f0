"""Whether rounding explains the difference of two tensors; distances are in units of noise.

One unit is the spread of the noisy replicas around the value, with floors for what a few replicas cannot say, as in
`oracle/numeric/noise_units.py`.  Integers and truth values have to be equal, save where noise alone decides them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from .noise import FEW_REPLICAS, REPLICAS
from .spread_floors import with_floors

# One element may be this many units off: eight for each of the two stages that are compared.
ALLOWED_UNITS = 16.0
# In half types the last rounding dominates, and it is bounded.
ALLOWED_IN_HALF_TYPES = 8.0
# So many units in the last place need no replicas.
NEAR = 4.0
# A unit is at least the last rounding, whose standard deviation this is.
LAST_ROUNDING = 0.58
# So many elements of a larger tensor are held to noise.
MOST_ELEMENTS = 1 << 16
# A position is undetermined when a unit is a quarter of the value's scale: no digit is certain.
UNDETERMINED = 0.25

Replicas = Callable[[int], Sequence[Tensor]]


@dataclass(frozen=True, slots=True)
class ValueDifference:
    """units: the greatest distance in units of noise, infinite where no noise explains it; text: the words."""

    units: float
    text: str


@dataclass(frozen=True, slots=True)
class _Worst:
    """The element that is farthest off: by how many units, and its place in the flat tensor."""

    units: float
    place: int


def same_bits(actual: Tensor, expected: Tensor) -> bool:
    """Return whether two tensors of one shape and dtype hold equal values; NaN equals NaN, zeros any sign."""
    if torch.equal(actual, expected):
        return True
    if not (actual.is_floating_point() or actual.is_complex()):
        return False
    return bool(((actual == expected) | ((actual != actual) & (expected != expected))).all())


def value_difference(actual: Tensor, expected: Tensor, replicas: Replicas) -> ValueDifference | None:
    """Return how a tensor departs from the one of the stage before, None where rounding explains it.

    replicas: the same tensor in so many noisy runs of the program; asked for only where bits differ beyond the last
    digits, and for many only where few do not explain the difference.
    """
    actual, expected = _real(actual), _real(expected)
    if same_bits(actual, expected) or (actual.is_floating_point() and _is_near(actual, expected)):
        return None
    compare = _float_difference if actual.is_floating_point() else _discrete_difference
    chosen = _farthest(actual, expected) if actual.numel() > MOST_ELEMENTS else None
    worst = None
    for count in (FEW_REPLICAS, REPLICAS):
        rows = [_part(_real(each), chosen) for each in replicas(count)]
        worst = compare(_part(actual, chosen), _part(expected, chosen), rows)
        if worst is None:
            return None
    assert worst is not None
    flat = worst.place if chosen is None else int(chosen[worst.place])
    value, before = (each.flatten()[flat].item() for each in (actual, expected))
    place = [int(part) for part in torch.unravel_index(torch.tensor(flat), actual.shape)] if actual.dim() else []
    how = f"{worst.units:.3g} units of noise" if actual.is_floating_point() else "values that do not round"
    return ValueDifference(worst.units, f"{value!r} at {place}, the stage before gives {before!r} ({how})")


def _part(value: Tensor, chosen: Tensor | None) -> Tensor:
    return value if chosen is None else value.flatten()[chosen]


def _farthest(actual: Tensor, expected: Tensor) -> Tensor:
    """Return the places of a large tensor that are looked at: where the difference is largest, alone or relative."""
    a, e = actual.flatten(), expected.flatten()
    gap = (a != e).double() if not a.is_floating_point() else (a.double() - e.double()).abs().nan_to_num(torch.inf)
    relative = gap / e.double().abs().nan_to_num().clamp(min=1e-300)
    half = MOST_ELEMENTS // 2
    places: Tensor = torch.cat([gap.topk(half).indices, relative.topk(half).indices]).unique()  # type: ignore[no-untyped-call]  # untyped in torch
    return places


def _is_near(actual: Tensor, expected: Tensor) -> bool:
    """Return whether all elements are equal but for their last digits."""
    kind = torch.finfo(expected.dtype)
    bound = expected.abs() * (NEAR * kind.eps) + kind.smallest_normal * kind.eps
    near = ((actual - expected).abs() <= bound) & torch.isfinite(expected)
    return bool((near | (actual == expected) | ((actual != actual) & (expected != expected))).all())


def _float_difference(actual: Tensor, expected: Tensor, replicas: Sequence[Tensor]) -> _Worst | None:
    kind = torch.finfo(expected.dtype)
    a, e, rows = actual.double(), expected.double(), [each.double() for each in replicas]
    finite = torch.isfinite(a) & torch.isfinite(e)
    same = (a == e) | (torch.isnan(a) & torch.isnan(e))
    steady = torch.isfinite(e)
    for row in rows:
        steady = steady & torch.isfinite(row)
    spread = _spread(e, rows, steady)
    unit = _unit(e, spread, steady, kind.eps / 2) + kind.smallest_normal
    level = float(e[steady].square().mean().sqrt()) if bool(steady.any()) else 0.0
    undetermined = (spread > UNDETERMINED * e.abs().clamp(min=level)) | (~steady & torch.isfinite(e))
    distance = torch.where(finite, (a - e).abs() / unit, torch.inf)
    distance = torch.where(same | undetermined, 0.0, distance)
    worst = float(distance.max())
    if worst <= (ALLOWED_IN_HALF_TYPES if expected.element_size() < 4 else ALLOWED_UNITS):
        return None
    return _Worst(worst, int(distance.argmax()))


def _real(value: Tensor) -> Tensor:
    plain = value.detach().resolve_conj().resolve_neg()
    return torch.view_as_real(plain) if plain.is_complex() else plain


def _spread(e: Tensor, rows: Sequence[Tensor], steady: Tensor) -> Tensor:
    total = torch.zeros_like(e)
    for row in rows:
        total += torch.where(steady, row - e, 0.0).square()
    return (total / max(len(rows), 1)).sqrt()


def _unit(e: Tensor, spread: Tensor, steady: Tensor, roundoff: float) -> Tensor:
    size = torch.where(steady, e.abs(), 0.0)
    return with_floors(spread, size, steady & (spread > 0), steady) + LAST_ROUNDING * roundoff * size


def _discrete_difference(actual: Tensor, expected: Tensor, rows: Sequence[Tensor]) -> _Worst | None:
    differs = actual != expected
    for row in rows:
        differs = differs & (row == expected)
    if not bool(differs.any()):
        return None
    return _Worst(float("inf"), int(differs.double().argmax()))
