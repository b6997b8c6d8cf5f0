"""Tensors of floats accepted without replicas: eager's own error, pooled over slices, is the unit of noise.

A screen only ever accepts: what it does not accept is judged in full.  `screened` knows the float64 value,
`screened_by_norm` how large eager's relative error was for another cotangent.  Every element is looked at, in blocks
that fit a cache; rows that are bitwise equal are left out.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from ..noise.monte_carlo import DOUBLE, unit_roundoff
from ..verdict import VerdictKind
from .exact_value import ExactValue
from .float_values import BETTER_SHARE
from .noise_units import (
    BIAS_FLOOR_FULL,
    BIAS_FLOOR_LOW,
    BIAS_NULL,
    ELEMENT,
    FEW_DRAWS,
    LAST_ROUNDINGS,
    LOW_PRECISION,
    ROUNDING,
)
from .value_decision import FinalDecision

# Fewer elements that differ say too little about eager's error; so do slices of fewer elements about their own.
FEWEST, SHORTEST = 16, 32
# The compiled rms error of many elements is at most this much larger than eager's; that of few as much more as in the
# full judgement, which allows 2 where this allows 1.5.
RMS = 1.5
# The same for one slice, and how many times eager's own largest mean over a slice another one may be: in full and in
# low precision.  A row of a weight's gradient can be off as a whole, by one error upstream, and the largest of a
# thousand such errors is several times what eager's is there.  In low precision the last rounding, which is
# independent, dominates.
SLICE_RMS, SLICE_RMS_LOW = 6.0, 2.0
SLICE_NULL, SLICE_NULL_LOW = 5.0, 2.0
# How far a single element of low precision may stand out from the compiled errors themselves.
LONE_LOW = 6.0
# As near as eager: no element is further from the float64 value than so many roundings, or times eager's furthest one.
FURTHEST, FURTHER = 4.0, 2.0
# In so many roundings at every element nothing but the order of a sum shows, be eager's own order luckier or not.
ORDER = 6.0
# How much further off the elements and slices of a gradient may be whose like, for the cotangent that reaches all of
# the backward, was within what is allowed there.  For a cotangent that is almost nothing, a whole row or column of a
# weight's gradient is one rounding, carried along, and the ratio of two roundings has no bound: eager's may be small.
WIDER = 2.0
# The share of the bias that the full judgement allows.
BIAS_SHARE = 0.8
# Eager's own error is a unit only where it is small: below this many u of the values, and below this share of them.
EAGER_UNITS, EAGER_SHARE = 64.0, 0.03
# Eager's worst element, in pooled units, beyond which eager may have jumped there.
EAGER_WORST = 16.0
# Where eager is this exact at every element, in u of it, the compiled value has to be so, too.
RELATIVE = 16.0
# Below this share of the elements eager's values are exact by chance; in low precision that is more common.
CHANCE, CHANCE_LOW = 0.01, 0.05
# A distance that no rounding explains: so many times eager's error.
GROSS = 64.0
# By norm: how much wider than eager's relative error the difference of two correct results is, for the whole tensor,
# one slice and one element.
NORM, NORM_SLICE, NORM_ELEMENT = 4.0, 8.0, 16.0
# Values below so many times the noise of a like computation are all rounding.
DROWNED = 4.0
# Where terms cancel to nothing, the float64 value is the rounding of float64, and eager's that of its dtype.  Nothing
# else makes their ratio that of the two roundoffs, give or take this factor.
CANCELLED = 256.0
_BLOCK = 1 << 16


@dataclass(frozen=True, slots=True)
class Screening:
    """What the screen found.

    decision: the acceptance, None where the tensor stays open.  noise: eager's rms error relative to its rms value.
    ratio: how much larger than eager's the compiled error is, the larger of rms and worst element.
    error, eager_error: rms, compiled and eager.
    """

    decision: FinalDecision | None
    noise: float
    ratio: float
    error: float = 0.0
    eager_error: float = 0.0


OPEN = Screening(None, math.inf, 0.0)


@dataclass(frozen=True, slots=True)
class _Rows:
    """The rows of a tensor that differ in bits, as matrices [rows, columns]; leading: the dimensions that rows fold."""

    actual: Tensor
    eager: Tensor
    exact: ExactValue | None
    leading: tuple[int, ...]
    kept: Tensor | None

    def blocks(self) -> Iterator[tuple[slice, Tensor, Tensor, Tensor]]:
        """Yield rows with compiled error, eager's error and the exact values, in float64."""
        assert self.exact is not None
        step = max(1, _BLOCK // max(1, self.eager.shape[1]))
        for start in range(0, self.eager.shape[0], step):
            rows = slice(start, start + step)
            eager = self.eager[rows].double()
            exact = self.exact.rows(rows if self.kept is None else self.kept[rows], eager)
            yield rows, self.actual[rows].double().sub_(exact), eager.sub_(exact), exact


def _rows_of(actual: Tensor, eager: Tensor, exact: ExactValue | None, fewest: int = FEWEST) -> _Rows | None:
    """Return the rows that differ; a vector is one row.  None when they have too few elements."""
    columns = eager.shape[-1] if eager.dim() else 1
    a, e = actual.reshape(-1, columns), eager.reshape(-1, columns)
    r = None if exact is None else exact.matrix(columns)
    kept = None
    if a.shape[0] > 1:
        differs = _differing(a, e)
        if not bool(differs.all()):
            kept = differs.nonzero().flatten()
            a, e = a[kept], e[kept]
    return None if a.numel() < fewest else _Rows(a, e, r, tuple(eager.shape[:-1]), kept)


def _differing(first: Tensor, second: Tensor) -> Tensor:
    """Return which rows of two matrices differ."""
    step = max(1, _BLOCK // max(1, first.shape[1]))
    pairs = zip(torch.split(first, step), torch.split(second, step), strict=True)
    return torch.cat([_any_of_rows(a != b) for a, b in pairs])


def _any_of_rows(found: Tensor) -> Tensor:
    """Return which rows of truth values have one that is true; eight bytes are read at a time."""
    wide = found.shape[1] % 8 == 0 and found.shape[1] > 0
    return (found.contiguous().view(torch.int64) if wide else found).any(1)


def screened(actual: Tensor, eager: Tensor, exact: Tensor | ExactValue, *, later: bool = False) -> Screening:
    """Accept a tensor whose errors are distributed as eager's are; shapes and dtypes of the first two are equal.

    exact: the float64 value.  later: the gradient for another cotangent was accepted here.

    The element, the root mean square and the mean over slices are tested, as in the full judgement, in units of
    eager's error pooled over the slices an element lies in.  In full precision a tensor is accepted as well where it is
    as near to the float64 value as eager is, whatever the slices say, or however few.
    """
    if not eager.is_floating_point() or eager.dtype == torch.float64 or not eager.numel():
        return OPEN
    exact = ExactValue(exact) if isinstance(exact, Tensor) else exact
    rows = _rows_of(actual, eager, exact, FEWEST if eager.dtype in LOW_PRECISION else 1)
    if rows is None:
        return OPEN
    pooled = _pool(rows, eager.dtype)
    if pooled is None:
        return OPEN
    result = _distances(rows, pooled, eager.dtype)
    noise = pooled.eager_rms / pooled.level if pooled.level else math.inf
    ratio = max(
        pooled.rms / pooled.eager_rms if pooled.eager_rms else math.inf, result.worst / max(1.0, result.eager_worst)
    )
    u = unit_roundoff(eager.dtype)
    fair = 0 < noise <= min(EAGER_UNITS * u, EAGER_SHARE) and result.eager_worst <= EAGER_WORST
    few = rows.eager.numel() < FEWEST
    decision = None
    low = eager.dtype in LOW_PRECISION
    wider = WIDER if later and not low else 1.0
    if (fair and pooled.settled and not few and result.accepted(pooled, low=low, wider=wider)) or (
        not low and result.unbiased(pooled) and _is_as_near(rows, pooled, u, usual=result.rms_accepted(pooled))
    ):
        share = pooled.rms / pooled.eager_rms
        words = f"rms error {pooled.rms:.2g} against float64, eager has {pooled.eager_rms:.2g}"
        decision = FinalDecision(VerdictKind.BETTER if share < BETTER_SHARE else VerdictKind.NOISE, None, words)
    if few:  # what few elements are off says nothing about the noise of others
        return Screening(decision, math.inf, 0.0)
    return Screening(decision, noise, ratio if fair else 0.0, pooled.rms, pooled.eager_rms)


def _is_as_near(rows: _Rows, pooled: "_Pooled", u: float, *, usual: bool) -> bool:
    """Return whether no element is much further from the float64 value than eager's furthest one, which is near.

    In roundings of the element or, where that is larger, of what is usual in its row and column.
    usual: the error as a whole is eager's; else only what the order of a sum explains is near.
    """
    furthest = eager_furthest = 0.0
    for where, c, e, r in rows.blocks():
        size = torch.maximum(r.abs(), pooled.row_level[where] * pooled.column_level).mul_(u)
        size.clamp_(min=torch.finfo(torch.float32).tiny * u)
        furthest = max(furthest, float(c.abs_().div_(size).max()))
        eager_furthest = max(eager_furthest, float(e.abs_().div_(size).max()))
    allowed = max(FURTHEST, FURTHER * eager_furthest) if usual else 0.0
    return eager_furthest <= EAGER_UNITS and furthest <= max(ORDER, allowed)


@dataclass(frozen=True, slots=True)
class _Pooled:
    """Eager's error over slices, and what else the first pass finds.

    by_row, by_column: [rows, 1] and [1, columns]; their product is a unit.  row_level, column_level: the same of the
    exact values.  rms, eager_rms, level: of the compiled error, eager's, and the exact values.  settled: nothing that
    eager computes exactly differs, but for chance; moved: something does.
    """

    by_row: Tensor
    by_column: Tensor
    row_level: Tensor
    column_level: Tensor
    rms: float
    eager_rms: float
    level: float
    settled: bool
    moved: bool


def _pool(rows: _Rows, dtype: torch.dtype) -> _Pooled | None:
    """Pool eager's error; None where something is not finite."""
    count, columns = rows.eager.shape
    low = dtype in LOW_PRECISION
    u = unit_roundoff(dtype)
    of_rows, of_columns = torch.zeros(2, count, dtype=torch.float64), torch.zeros(2, columns, dtype=torch.float64)
    square = eager_square = 0.0
    exact_places = moved_places = 0
    for where, c, e, r in rows.blocks():
        square += float(c.square().sum())
        eager_square += float(e.square().sum())
        still = e == 0
        if bool(still.any()):
            moved_places += int((still & (c != 0)).sum())
            exact_places += int(still.sum())
        before = e.abs_().sub_(r.abs() * u).clamp_(min=0) if low else e
        for number, value in enumerate((before.square_(), r.square())):
            of_rows[number, where] = value.sum(1)
            of_columns[number] += value.sum(0)
    level = float(of_columns[1].sum())
    if not math.isfinite(square + eager_square + level):
        return None
    number = count * columns
    settled = not moved_places or exact_places <= (CHANCE_LOW if low else CHANCE) * number
    mean = math.sqrt(float(of_columns[0].sum()) / number)
    # Errors in a slice are seldom independent, so eager's own may be small there by chance, but hardly relative to both
    # its other slices and the values in this one.
    share = float(of_columns[0].sum()) / level if level else 0.0
    row_units = (torch.maximum(of_rows[0], share * of_rows[1]) / columns).sqrt_()[:, None]
    column_units = (torch.maximum(of_columns[0], share * of_columns[1]) / count).sqrt_()[None, :]
    roots = (math.sqrt(square / number), math.sqrt(eager_square / number), math.sqrt(level / number))
    row_levels, column_levels = (of_rows[1] / columns).sqrt_()[:, None], (of_columns[1] / count).sqrt_()[None, :]
    if columns < SHORTEST:
        row_units, row_levels = torch.full_like(row_units, mean), torch.full_like(row_levels, roots[2])
    if count < SHORTEST:
        column_units, column_levels = torch.full_like(column_units, mean), torch.full_like(column_levels, roots[2])
    column_units = column_units / mean if mean else column_units
    column_levels = column_levels / roots[2] if roots[2] else column_levels
    return _Pooled(row_units, column_units, row_levels, column_levels, *roots, settled, bool(moved_places))


@dataclass(slots=True)
class _Distances:
    """The compiled errors and eager's in units: worst elements, sums over slices, plain and signed, and of squares."""

    count: int
    columns: int
    leading: tuple[int, ...]
    kept: Tensor | None
    row_sums: Tensor
    column_sums: Tensor
    worst: float = 0.0
    eager_worst: float = 0.0
    over: float = 0.0
    relative: float = 0.0
    eager_relative: float = 0.0

    def unbiased(self, pooled: _Pooled) -> bool:
        """Return whether nothing that eager computes exactly differs, and the mean error of many is eager's."""
        number = self.count * self.columns
        whole = (self.column_sums.sum(1, keepdim=True), float(number), 0.0)
        return not pooled.moved and (number < FEWEST or self._slices_accepted(*whole, low=False))

    def rms_accepted(self, pooled: _Pooled) -> bool:
        """Return whether the error as a whole is eager's: its root mean square."""
        return pooled.rms <= RMS * (1 + FEW_DRAWS / math.sqrt(self.count * self.columns)) * pooled.eager_rms

    def accepted(self, pooled: _Pooled, *, low: bool, wider: float) -> bool:
        """Return whether all statistics are within what the screen allows; low: the precision is."""
        if not self.rms_accepted(pooled):
            return False
        element = wider * ELEMENT
        if low:
            if self.over > 1:
                return False
        elif self.worst > max(element, 2 * self.eager_worst) or (
            self.eager_relative <= RELATIVE and self.relative > max(element, 2 * self.eager_relative)
        ):
            return False
        alone = low or pooled.rms < BETTER_SHARE * pooled.eager_rms
        if alone and self.worst > max(LONE_LOW if low else element, 1.5 * self.eager_worst) * self._rms():
            return False  # more exact than eager everywhere but here
        whole, *others = self._slices()
        return self._slices_accepted(*whole, low=low) and all(
            self._slices_accepted(*slices, low=low, wider=wider) for slices in others
        )

    def _rms(self) -> float:
        """Return the root mean square of the compiled distances, 1 at most."""
        return min(1.0, math.sqrt(float(self.column_sums[2].sum()) / (self.count * self.columns)))

    def _slices(self) -> Iterator[tuple[Tensor, Tensor | float, float]]:
        """Yield for every dimension the sums [6, slices], the number of elements and how many slices there are."""
        yield self.column_sums.sum(1, keepdim=True), float(self.count * self.columns), 0.0
        if self.count > 1:
            yield self.column_sums, float(self.count), self.columns
        sums, counts = self.row_sums, torch.full((self.count,), float(self.columns), dtype=torch.float64)
        if self.count > 1 and len(self.leading) == 1:
            yield sums, counts, self.count
        elif self.count > 1:
            places = torch.arange(self.count) if self.kept is None else self.kept
            for dim, index in enumerate(torch.unravel_index(places, self.leading)):
                size = self.leading[dim]
                if size > 1:
                    folded = torch.zeros(6, size, dtype=torch.float64).index_add_(1, index, sums)
                    number = torch.zeros(size, dtype=torch.float64).index_add_(0, index, counts)
                    yield folded[:, number > 0], number[number > 0], size

    def _slices_accepted(
        self, sums: Tensor, number: "Tensor | float", slices: float, *, low: bool, wider: float = 1.0
    ) -> bool:
        plain, signed, square, eager_plain, eager_signed, eager_square = sums / number
        size = torch.as_tensor(number, dtype=torch.float64)
        many = math.sqrt(2 * math.log(slices + 1)) if slices else 0.0
        floor = BIAS_FLOOR_LOW if low else BIAS_FLOOR_FULL
        times = SLICE_NULL if slices and not low else SLICE_NULL_LOW
        for mean, null in ((plain, eager_plain), (signed, eager_signed)):
            allowed = floor + times * float(null.abs().max()) + (BIAS_NULL + many) / size.sqrt()
            if bool((mean.abs() > wider * BIAS_SHARE * allowed).any()):
                return False
        within = (SLICE_RMS_LOW if low else SLICE_RMS) * eager_square.sqrt().clamp(min=1.0) * (1 + 3 / size.sqrt())
        return not bool((square.sqrt() > wider * within).any())


def _distances(rows: _Rows, pooled: _Pooled, dtype: torch.dtype) -> _Distances:
    """Measure both errors in units, block by block."""
    count, columns = rows.eager.shape
    low, u, tiny = dtype in LOW_PRECISION, unit_roundoff(dtype), torch.finfo(dtype).tiny
    result = _Distances(
        count,
        columns,
        rows.leading,
        rows.kept,
        torch.zeros(6, count, dtype=torch.float64),
        torch.zeros(6, columns, dtype=torch.float64),
    )
    floor = u * tiny
    for where, c, e, r in rows.blocks():
        size = r.abs()
        unit = pooled.by_row[where] * pooled.by_column
        if low:
            over = c.abs() / (LAST_ROUNDINGS * u * size + ELEMENT * unit + floor)
            result.over = max(result.over, float(over.max()))
            unit = unit + ROUNDING * u * size
        else:
            relative = size.mul(u).add_(floor)
            result.relative = max(result.relative, float((c / relative).abs_().max()))
            result.eager_relative = max(result.eager_relative, float((e / relative).abs_().max()))
        unit = unit.add_(floor).reciprocal_()
        sign = torch.sign(r)
        for number, error in enumerate((c, e)):
            z = error.mul_(unit)
            low_end, high_end = torch.aminmax(z)
            worst = max(-float(low_end), float(high_end))
            if number:
                result.eager_worst = max(result.eager_worst, worst)
            else:
                result.worst = max(result.worst, worst)
            for place, value in enumerate((z, z * sign, z * z)):
                result.row_sums[3 * number + place, where] = value.sum(1)
                result.column_sums[3 * number + place] += value.sum(0)
    return result


@dataclass(frozen=True, slots=True)
class KnownNoise:
    """Eager's rms error in one gradient for the cotangent that was held to float64: relative, and in itself."""

    relative: float
    absolute: float


def screened_by_norm(actual: Tensor, eager: Tensor, noise: KnownNoise, *, alike: bool) -> Screening:
    """Accept gradients for another cotangent whose difference from eager is that of two correct results, by norm.

    alike: this cotangent is as large as that one, element by element, and so is the noise in itself, even where terms
    cancel and leave nothing else.
    """
    if not eager.is_floating_point() or not eager.numel() or not 0 < noise.relative < EAGER_SHARE:
        return OPEN
    rows = _rows_of(actual, eager, None)
    if rows is None:
        return OPEN
    count, columns = rows.eager.shape
    by_row, by_column = torch.zeros(2, count, dtype=torch.float64), torch.zeros(2, columns, dtype=torch.float64)
    worst = largest = 0.0
    step = max(1, _BLOCK // max(1, columns))
    for start in range(0, count, step):
        where = slice(start, start + step)
        e = rows.eager[where].double()
        d = rows.actual[where].double().sub_(e)
        worst, largest = max(worst, float(d.abs().max())), max(largest, float(e.abs().max()))
        for number, value in enumerate((d.square_(), e.square_())):
            by_row[number, where] = value.sum(1)
            by_column[number] += value.sum(0)
    gap, level = math.sqrt(float(by_row[0].sum())), math.sqrt(float(by_row[1].sum()))
    floor = noise.absolute if alike else 0.0
    whole = noise.relative * level + floor * math.sqrt(count * columns)
    if not math.isfinite(gap + level) or not whole:
        return OPEN
    element = noise.relative * largest + floor
    accepted = gap <= NORM * whole and worst <= NORM_ELEMENT * element
    for squares, length in ((by_row, columns), (by_column, count)):
        shares = squares.sqrt()
        own = noise.relative * (shares[1] + level / math.sqrt(squares.shape[1])) + floor * math.sqrt(length)
        accepted &= bool((shares[0] <= NORM_SLICE * own).all())
    words = f"rms difference {gap / math.sqrt(count * columns):.2g} where eager's values are "
    words += f"{level / math.sqrt(count * columns):.2g} and its relative error is {noise.relative:.2g}"
    decision = FinalDecision(VerdictKind.NOISE, None, words) if accepted else None
    return Screening(decision, noise.relative, max(gap / whole, worst / element), gap, element)


def cancelled(noise: float, dtype: torch.dtype) -> bool:
    """Return whether eager's error, relative to the float64 value, shows that this is the rounding of nothing at all.

    Such are the gradients of a bias in front of a softmax or a norm, which has none.
    """
    if dtype == torch.float64 or not (dtype.is_floating_point or dtype.is_complex):
        return False
    expected = unit_roundoff(dtype) / DOUBLE
    return expected / CANCELLED < noise < expected * CANCELLED


def all_rounding(actual: Tensor, eager: Tensor, noise: KnownNoise) -> FinalDecision | None:
    """Accept a tensor of which nothing but rounding is left, as eager's noise shows: its own, or a like one's.

    None where either is larger than that noise, or the noise may be something else than rounding.
    """
    if not eager.is_floating_point() or not eager.numel():
        return None
    if not (0 < noise.relative < EAGER_SHARE or cancelled(noise.relative, eager.dtype)):
        return None
    sizes = []
    for value in (actual, eager):
        low, high = torch.aminmax(value.detach())
        if not max(-float(low), float(high)) <= NORM_ELEMENT * noise.absolute:
            return None
        rms = float(torch.linalg.vector_norm(value, dtype=torch.float64)) / math.sqrt(value.numel())
        if not rms <= DROWNED * noise.absolute:
            return None
        sizes.append(rms)
    words = f"values of {sizes[0]:.2g}, eager's are {sizes[1]:.2g}: nothing but rounding, which is {noise.absolute:.2g}"
    return FinalDecision(VerdictKind.NOISE, None, words)
