"""The verdict on one tensor: how far is the compiled value from float64, in units of the program's own noise.

Per element, sigma is the spread of the Monte-Carlo-arithmetic replicas around the exact value, with floors
for what a spread of few samples cannot say.  Eager's own distance calibrates it.  Three statistics decide:
the worst element, the root mean square, and the mean over every slice of every dimension (systematic errors
far below one ulp, a wrong row, a dropped tail).  Nothing here is tuned to a program or an operator.
"""

import math
from dataclasses import dataclass
from enum import Enum

import torch
from torch import Tensor

from .lanes import Lanes
from .noise import WIDE, unit_roundoff
from .shadow_memory import wide_dtype
from .verdict import Kind, Numbers

# One element may be this many units off: rounding errors are bounded combinations of bounded noises; with the
# 8 replicas that estimate a unit, 8 of them is what 1e6 legitimate elements stay below.
ELEMENT = 8.0
# In low precision the last rounding dominates and is bounded, not Gaussian: u|R| each way, and a third one for a
# value that was rounded twice.  Noise from before the last rounding still counts ELEMENT times.
LAST_ROUNDINGS = 3.0
# The compiled rms may be twice eager's (or twice one unit): the precision contract.
PRECISION = 2.0
# The root mean square of one draw is one error, and has the bound of an element: 2 * (1 + 3) = 8; of many, 2.
FEW_DRAWS = 3.0
# A mean over k independent roundings lies below 3.5/sqrt(k); m slices compared raise it by sqrt(2 ln m).
BIAS_NULL = 3.5
# Mean offsets that another order of evaluation may leave: float32 kernels differ in their last bit
# systematically; in low precision the final rounding dominates and is unbiased.
BIAS_FLOOR_FULL, BIAS_FLOOR_LOW = 0.6, 0.05
# Rounding to nearest has standard deviation u/sqrt(3).
ROUNDING = 0.58
# Floors of sigma where eight samples came out small: half the typical relative spread, a third of the neighbours'.
RELATIVE_FLOOR, NEIGHBOUR_FLOOR = 0.5, 0.3
# Where no lane moves and eager is exact, nothing is rounded: one ulp off is then an error.
EXACT_SHARE = 0.1
# Share of positions that may hang on rounding before the tensor is inconclusive.
UNSTABLE_SHARE = 0.05
# A position is undetermined when a unit of noise is a quarter of the value's scale: not one digit stands.
UNDETERMINED = 0.25
# A jump: wide replicas move this much more than their amplification explains.
JUMP = 3.0
# Eager this far off its own float64 meaning: the reference is not trusted alone.
DISTRUST = 32.0
# Compiled rms error below this share of eager's is called better.
BETTER_SHARE = 0.5
# Of the positions that the declared dtypes fix, this share may differ (rounding ties that four lanes missed).
DECLARED_SHARE = 0.01
# Eager this far out in any element may have jumped: wide lanes are asked before it calibrates.
SUSPECT = 4.0
# Rounded lanes and eager agree within this many u: two roundings each way.
FEW_UNITS = 4.0
# Without a reference: differences within so many ulp are what reordering does; beyond the share, they are errors.
BLIND_ULPS, BLIND_SHARE = 16.0, 0.02


LOW_PRECISION = frozenset({torch.float16, torch.bfloat16})


class Need(Enum):
    """What more must be run before a tensor can be decided; the value is the arguments of `ShadowRun`."""

    REPLICAS = "replicas"
    ROUNDED = "rounded"


def judge_values(actual: Tensor, eager: Tensor, lanes: Lanes | None) -> tuple[Kind | Need, Numbers | None, str]:
    """Judge a compiled tensor against eager's and its lanes; shapes and dtypes are equal.

    lanes None: EQUAL by bits, else the best answer without a reference (NO_REFERENCE or WRONG).
    Lanes with `exact` only: decided when the compiled value is no worse than correct rounding or eager;
    otherwise `Need.REPLICAS`.  With replicas: the full decision; `Need.ROUNDED` when rounding decides too much
    or a jump must be told from an error; that run holds replicas and rounded lanes.
    Signs of zero and payloads of NaN never decide; `zero_sign_differences` counts the former.
    """
    actual, eager = _plain(actual), _plain(eager)
    signs = zero_sign_differences(actual, eager)
    if _same(actual, eager):
        if signs:
            return Kind.NOISE, None, f"equal but for the sign of zero at {_positions(signs)}"
        return Kind.EQUAL, None, "bitwise equal"
    if lanes is None:
        return _judge_blind(actual, eager)
    lanes = _plain_lanes(lanes)
    if lanes.exact is None:
        return _judge_blind(actual, eager)
    if not actual.is_floating_point():
        return _judge_discrete(actual, eager, lanes)
    if lanes.replicas is None:
        return _judge_cheap(actual, eager, lanes.exact)
    return _judge_floats(actual, eager, lanes)


def zero_sign_differences(actual: Tensor, eager: Tensor) -> int:
    """Return at how many positions both are zero with different signs."""
    if not (actual.is_floating_point() or actual.is_complex()):
        return 0
    actual, eager = _plain(actual), _plain(eager)
    both = (actual == 0) & (eager == 0)
    return int((both & (torch.signbit(actual) != torch.signbit(eager))).sum())


def _plain(value: Tensor) -> Tensor:
    """Return values detached; complex ones as pairs of floats in a last dimension."""
    value = value.detach()
    return torch.view_as_real(value.resolve_conj()) if value.is_complex() else value


def _plain_lanes(lanes: Lanes) -> Lanes:
    def pairs(value: Tensor | None) -> Tensor | None:
        return None if value is None else _plain(value)

    return Lanes(pairs(lanes.exact), pairs(lanes.replicas), pairs(lanes.rounded), pairs(lanes.wide), lanes.known)


def _same(actual: Tensor, eager: Tensor) -> bool:
    if torch.equal(actual, eager):
        return True
    return bool(((actual == eager) | ((actual != actual) & (eager != eager))).all())


def _positions(count: int) -> str:
    return "1 position" if count == 1 else f"{count} positions"


def _index(flat: int, shape: torch.Size) -> tuple[int, ...]:
    index: list[int] = []
    for size in reversed(shape):
        index.append(flat % size)
        flat //= size
    return tuple(reversed(index))


def _first(mask: Tensor) -> tuple[int, ...]:
    return _index(int(mask.reshape(-1).to(torch.uint8).argmax()), mask.shape)


# ---------------------------------------------------------------- without a reference


def _judge_blind(actual: Tensor, eager: Tensor) -> tuple[Kind | Need, Numbers | None, str]:
    """Judge by eager alone: integers exactly, floats by a few ulp of the tensor's scale."""
    if not actual.is_floating_point():
        differs = actual != eager
        at = _first(differs)
        return Kind.WRONG, None, _says_discrete(actual, eager, at, int(differs.sum()))
    found = _nonfinite(actual, eager, None)
    if found is not None:
        return Kind.WRONG, None, found
    a, e = actual.double(), eager.double()
    fine = torch.isfinite(a) & torch.isfinite(e)
    gap = torch.where(fine, (a - e).abs(), torch.zeros_like(a))
    u = unit_roundoff(eager.dtype)
    size = torch.where(fine, e.abs(), torch.zeros_like(e))
    typical = float(size.square().mean().sqrt())
    allowed = 2 * BLIND_ULPS * u * size.clamp(min=typical) + torch.finfo(eager.dtype).tiny
    flat = int((gap / allowed).argmax())
    at = _index(flat, gap.shape)
    ratio = float((gap / allowed).reshape(-1)[flat])
    where = f"{float(gap[at]):.2g} off at {list(at)} (eager {float(e[at]):.6g}, compiled {float(a[at]):.6g})"
    if ratio <= 1:
        return Kind.NO_REFERENCE, None, f"{where}: within {BLIND_ULPS:.0f} ulp of eager, no float64 reference"
    share = float((gap > allowed).double().mean())
    gross = float((gap / size.clamp(min=typical).clamp(min=torch.finfo(eager.dtype).tiny)).max())
    if gross > max(BLIND_SHARE, 64 * BLIND_ULPS * u):
        return Kind.WRONG, None, f"{where}: far beyond rounding, without a float64 reference"
    return (
        Kind.NO_REFERENCE,
        None,
        f"{where}: beyond {BLIND_ULPS:.0f} ulp at {share:.1%}, no float64 reference to decide",
    )


# ---------------------------------------------------------------- positions that are not finite


def _nonfinite(actual: Tensor, eager: Tensor, exact: Tensor | None) -> str | None:
    """Return what is wrong with NaN and Inf positions, None when they are right.

    Not finite is right only where eager is, or where the exact value rounds to the same Inf.
    A finite value where eager is not finite is right only when the exact value is finite (then the element
    statistic judges it).
    """
    if exact is None:
        exact = eager.double()
    rounded = exact.to(eager.dtype)
    bad = ~torch.isfinite(actual)
    same = (actual == eager) | ((actual != actual) & (eager != eager))
    justified = (actual == rounded) | ((actual != actual) & (exact != exact))
    wrong = bad & ~same & ~justified
    if bool(wrong.any()):
        at = _first(wrong)
        return f"{_show(actual[at])} at {list(at)}, eager has {_show(eager[at])} (at {_positions(int(wrong.sum()))})"
    missing = ~bad & ~torch.isfinite(eager) & ~torch.isfinite(exact)
    if bool(missing.any()):
        at = _first(missing)
        return f"{_show(actual[at])} at {list(at)}, eager has {_show(eager[at])} (at {_positions(int(missing.sum()))})"
    return None


def _show(value: Tensor) -> str:
    number = value.item()
    return f"{number:.6g}" if isinstance(number, float) else str(number)


# ---------------------------------------------------------------- integers and booleans


def _says_discrete(actual: Tensor, eager: Tensor, at: tuple[int, ...], count: int) -> str:
    more = f" (and at {_positions(count - 1)} more)" if count > 1 else ""
    return f"{_show(actual[at])} at {list(at)}, eager has {_show(eager[at])}{more}"


def _judge_discrete(actual: Tensor, eager: Tensor, lanes: Lanes) -> tuple[Kind | Need, Numbers | None, str]:
    """Integers and booleans are exact, except at positions where rounding alone decides."""
    if lanes.replicas is None:
        return Need.REPLICAS, None, "an integer differs: does rounding decide it?"
    assert lanes.exact is not None
    differs = actual != eager
    unstable = (lanes.replicas != lanes.exact).any(0) | (eager != lanes.exact)
    share = float(unstable.double().mean())
    if lanes.rounded is None or lanes.wide is None:
        return Need.ROUNDED, None, "an integer differs: rounded and wide lanes decide"
    flippable = unstable | (lanes.wide != lanes.exact).any(0)
    wrong = differs & ~flippable
    if not bool(wrong.any()):
        wrong = differs & ~_within_seen(actual, eager, lanes)
    if bool(wrong.any()):
        at = _first(wrong)
        says = _says_discrete(actual, eager, at, int(wrong.sum()))
        return Kind.WRONG, _discrete_numbers(share, at), f"{says}; rounding cannot decide it"
    if share > UNSTABLE_SHARE:
        return _judge_declared(actual, eager, lanes.rounded, share, None)
    return (
        Kind.NOISE,
        _discrete_numbers(share, _first(differs)),
        f"differs from eager at {_positions(int(differs.sum()))}, all of which rounding alone decides",
    )


def _discrete_numbers(share: float, at: tuple[int, ...]) -> Numbers:
    return Numbers(0.0, 0.0, 0.0, 0.0, unstable=share, worst_index=at)


def _within_seen(actual: Tensor, eager: Tensor, lanes: Lanes) -> Tensor:
    """Return where a value lies among those the lanes produced, their range widened once on either side."""
    if actual.dtype == torch.bool:
        return torch.ones_like(actual)
    low = high = eager.double()
    for rows in (lanes.exact, lanes.replicas, lanes.wide, lanes.rounded):
        if rows is not None:
            rows = rows.double() if rows.dim() > eager.dim() else rows.double().unsqueeze(0)
            low, high = torch.minimum(low, rows.amin(0)), torch.maximum(high, rows.amax(0))
    reach = high - low
    value = actual.double()
    return (value >= low - reach) & (value <= high + reach)


def _judge_declared(
    actual: Tensor, eager: Tensor, rounded: Tensor, share: float, numbers: Numbers | None
) -> tuple[Kind | Need, Numbers | None, str]:
    """Decide by the declared-dtype meaning: where rounded lanes agree with eager, so must the compiled."""
    if eager.is_floating_point():
        e, a = eager.double(), actual.double()
        near = FEW_UNITS * unit_roundoff(eager.dtype) * torch.maximum(e.abs(), rounded.abs().amax(0))
        settled = ((rounded - e).abs() <= near).all(0)
        differs = (a - e).abs() > 2 * near
    else:
        settled = (rounded == eager).all(0)
        differs = actual != eager
    numbers = numbers or Numbers(0.0, 0.0, 0.0, 0.0, unstable=share)
    wrong = settled & differs
    count, total = int(wrong.sum()), int(settled.sum())
    if count and count > DECLARED_SHARE * total:
        at = _first(wrong)
        return (
            Kind.WRONG,
            numbers,
            f"{_show(actual[at])} at {list(at)}, eager has {_show(eager[at])}: "
            f"{count} of {total} positions that the declared dtypes fix are different",
        )
    return Kind.UNSTABLE, numbers, f"rounding alone decides {share:.0%} of positions; nothing can be said of them"


# ---------------------------------------------------------------- floats, cheap


def _judge_cheap(actual: Tensor, eager: Tensor, exact: Tensor) -> tuple[Kind | Need, Numbers | None, str]:
    """Pass when nowhere worse than both correct rounding and eager; everything else needs replicas."""
    if _nonfinite(actual, eager, exact) is not None:
        return Need.REPLICAS, None, "not finite in other places than eager"
    a, e = actual.double(), eager.double()
    same = (a == e) | ((a != a) & (e != e))
    fine = torch.isfinite(a) & torch.isfinite(e) & torch.isfinite(exact)
    if not bool((fine | (same & ~torch.isfinite(a))).all()):
        return Need.REPLICAS, None, "finite in other places than eager or float64"
    a, e, r = a[fine], e[fine], exact[fine]
    best = r.to(eager.dtype).double()
    ours, theirs = (a - r).abs(), (e - r).abs()
    u = unit_roundoff(eager.dtype)
    size = r.abs().clamp(min=float(r.square().mean().sqrt()) if r.numel() else 0.0)
    settled = bool((theirs <= 8 * u * size).all())
    if settled and bool((ours <= torch.maximum((best - r).abs(), theirs)).all()):
        mine, yours = float(ours.square().mean().sqrt()), float(theirs.square().mean().sqrt())
        if mine < BETTER_SHARE * yours:
            return Kind.BETTER, None, f"rms error {mine:.2g} against float64, eager has {yours:.2g}"
        return Kind.NOISE, None, "nowhere further from float64 than eager or one rounding"
    return Need.REPLICAS, None, "beyond one rounding of float64"


# ---------------------------------------------------------------- floats, full


@dataclass(frozen=True, slots=True)
class _Measure:
    """Everything in units of noise: z of the compiled, z of eager, the unit, which positions count.

    allowed: the largest error a single element may have.
    """

    z: Tensor
    z_eager: Tensor
    sigma: Tensor
    allowed: Tensor
    calibration: float
    counted: Tensor
    unstable: Tensor


def _judge_floats(actual: Tensor, eager: Tensor, lanes: Lanes) -> tuple[Kind | Need, Numbers | None, str]:
    exact, replicas = lanes.exact, lanes.replicas
    if exact is None or replicas is None:
        return Need.REPLICAS, None, "no replicas yet"
    found = _nonfinite_unstable(actual, eager, exact, replicas)
    if found is not None:
        return Kind.WRONG, None, found
    measure = _measure(actual, eager, exact, replicas, None)
    numbers = _numbers(actual, eager, exact, replicas, measure)
    if numbers.margin > 1 or measure.calibration > SUSPECT:
        if lanes.wide is None or lanes.rounded is None:
            return Need.ROUNDED, numbers, "beyond the noise: a jump or an error?"
        jumped = _jumped(actual, eager, exact, lanes.wide, measure)
        if bool(jumped.any()):
            measure = _measure(actual, eager, exact, replicas, jumped)
            numbers = _numbers(actual, eager, exact, replicas, measure)
        if numbers.margin > 1:
            return Kind.WRONG, numbers, _says(numbers)
    share = numbers.unstable
    if share > UNSTABLE_SHARE:
        if lanes.rounded is None or lanes.wide is None:
            return Need.ROUNDED, numbers, f"rounding decides {share:.0%} of positions"
        declared = _judge_declared(actual, eager, lanes.rounded, share, numbers)
        jumps = float(_jumped(actual, eager, exact, lanes.wide, measure).double().mean())
        # A value that is all rounding (a gradient that cancels to nothing) is noise; one that may jump is undecided.
        if declared[0] is Kind.WRONG or jumps > UNSTABLE_SHARE:
            return declared
    return _verdict(actual, eager, exact, measure, numbers)


def _nonfinite_unstable(actual: Tensor, eager: Tensor, exact: Tensor, replicas: Tensor) -> str | None:
    """Return what is wrong with NaN and Inf positions, passing over those where lanes themselves disagree."""
    finite = torch.isfinite(replicas).sum(0)
    open_ = (finite != 0) & (finite != replicas.shape[0]) | ((finite == 0) & torch.isfinite(exact))
    if not bool(open_.any()):
        return _nonfinite(actual, eager, exact)
    keep = ~open_
    zero = torch.zeros_like(eager)
    return _nonfinite(
        torch.where(keep, actual, zero), torch.where(keep, eager, zero), torch.where(keep, exact, zero.double())
    )


def _measure(actual: Tensor, eager: Tensor, exact: Tensor, replicas: Tensor, jumped: Tensor | None) -> _Measure:
    a, e = actual.double(), eager.double()
    lanes_finite = torch.isfinite(exact) & torch.isfinite(replicas).all(0)
    counted = torch.isfinite(a) & lanes_finite
    if jumped is not None:
        counted &= ~jumped
    zero = torch.zeros_like(exact)
    r = torch.where(lanes_finite, exact, zero)
    spread = _spread(r, replicas, lanes_finite)
    sigma, allowed = _sigma(spread, r, e, lanes_finite, eager.dtype)
    z_eager = torch.where(counted & torch.isfinite(e), (e - r) / sigma, zero).nan_to_num(nan=0.0)
    calibration = _calibration(z_eager[counted]) if bool(counted.any()) else 1.0
    sigma = sigma * calibration
    z = torch.where(counted, (a - r) / sigma, zero).nan_to_num(nan=0.0)
    level = float(r[lanes_finite].square().mean().sqrt()) if bool(lanes_finite.any()) else 0.0
    unstable = lanes_finite & (spread > UNDETERMINED * r.abs().clamp(min=level)) & (spread > 0)
    unstable |= ~lanes_finite & torch.isfinite(exact)
    if jumped is not None:
        unstable |= jumped
    return _Measure(z, z_eager / calibration, sigma, allowed * calibration, calibration, counted, unstable)


def _spread(r: Tensor, replicas: Tensor, finite: Tensor) -> Tensor:
    """Return the root mean square distance of the replicas from the exact value, one replica at a time."""
    total = torch.zeros_like(r)
    for row in replicas:
        total += torch.where(finite, row - r, torch.zeros_like(r)).square_()
    return total.div_(replicas.shape[0]).sqrt_()


def _sigma(spread: Tensor, r: Tensor, e: Tensor, finite: Tensor, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """Return one unit of noise an element (the replicas' spread, its floors, the final rounding), and its bound."""
    u = unit_roundoff(dtype)
    size = r.abs()
    moving = finite & (spread > 0)
    sigma = spread
    relevant = moving & (size > 0)
    if bool(relevant.any()):
        typical = float((spread[relevant] / size[relevant]).median())
        sigma = torch.maximum(sigma, torch.where(moving, RELATIVE_FLOOR * typical * size, 0.0))
        sigma = torch.maximum(sigma, torch.where(moving, NEIGHBOUR_FLOOR * _neighbours(spread, moving), 0.0))
    still = ~moving & (e == r)
    rounding = torch.where(still, EXACT_SHARE, 1.0) * ROUNDING * u * size
    tiny = u * torch.finfo(dtype).tiny
    unit = sigma + rounding + tiny
    if dtype not in LOW_PRECISION:
        return unit, ELEMENT * unit
    before = (sigma.square() - (ROUNDING * u * size).square()).clamp(min=0).sqrt()
    last = torch.where(still, ELEMENT * rounding, LAST_ROUNDINGS * u * size)
    return unit, ELEMENT * (before + tiny) + last


def _neighbours(spread: Tensor, moving: Tensor) -> Tensor:
    """Return the smallest typical (geometric mean) spread among the slices an element lies in, one a dimension."""
    logs = torch.where(moving, spread, 1.0).log_()
    weights = moving.double()
    result: Tensor | None = None
    for dim in range(spread.dim()):
        others = [d for d in range(spread.dim()) if d != dim]
        top = logs.sum(others, keepdim=True) if others else logs
        count = weights.sum(others, keepdim=True) if others else weights
        typical = torch.where(count > 0, (top / count.clamp(min=1)).exp(), 0.0)
        if others:
            result = typical if result is None else torch.minimum(result, typical)
    if result is None:
        return (logs.sum() / weights.sum().clamp(min=1)).exp()
    return result


def _calibration(z: Tensor) -> float:
    """Return how much wider than the replicas eager itself is: libm, order of summation (at least 1)."""
    size = z.abs()
    index = max(0, math.ceil(0.995 * size.numel()) - 1)
    high = float(size.kthvalue(index + 1).values)
    return max(1.0, high / 3, float(size.max()) / 6, float(size.square().mean().sqrt()))


def _numbers(actual: Tensor, eager: Tensor, exact: Tensor, replicas: Tensor, measure: _Measure) -> Numbers:
    z, counted = measure.z, measure.counted
    total = int(counted.sum())
    share = float(measure.unstable.double().mean()) if measure.unstable.numel() else 0.0
    if not total:
        return Numbers(0.0, 0.0, 0.0, 0.0, unstable=share)
    excess = torch.where(counted, (z * measure.sigma).abs() / measure.allowed, 0.0)
    at = _index(int(excess.argmax()), z.shape)
    rms = float((z.square().sum() / total).sqrt())
    rms_eager = float((measure.z_eager[counted].square().mean()).sqrt())
    t_element = float(excess[at])
    copies = _copies(exact[counted])
    few = 1 + FEW_DRAWS / math.sqrt(total / copies)
    t_rms = rms / (PRECISION * max(1.0, rms_eager) * few)
    t_bias = _bias(eager.dtype, exact, replicas, measure, copies)
    return Numbers(
        t_element=t_element,
        t_rms=t_rms,
        t_bias=t_bias,
        margin=max(t_element, t_rms, t_bias),
        unstable=share,
        worst_index=at,
        actual=float(actual[at]),
        eager=float(eager[at]),
        reference=float(exact[at]),
        error=abs(float(actual[at]) - float(exact[at])),
        scale=float(measure.sigma[at]),
    )


def _copies(values: Tensor) -> float:
    """Return how often a value stands in a tensor on average: equal values round alike, and count as one draw."""
    distinct = int(torch.unique(values).numel())
    return values.numel() / max(1, distinct)


def _bias(dtype: torch.dtype, exact: Tensor, replicas: Tensor, measure: _Measure, copies: float) -> float:
    """Return the largest mean of z over the tensor and every slice of every dimension, over what chance allows.

    copies: how often each value stands there; a mean over equal roundings is no more certain than one of them.
    """
    floor = BIAS_FLOOR_LOW if dtype in LOW_PRECISION else BIAS_FLOOR_FULL
    counted = measure.counted
    sign = torch.where(exact < 0, -1.0, 1.0)
    samples = [measure.z_eager]
    for row in replicas:
        samples.append(torch.where(counted, (row - exact) / measure.sigma, 0.0).nan_to_num_(nan=0.0))
    worst = 0.0
    dims: list[int | None] = [None, *[d for d in range(exact.dim()) if exact.shape[d] > 1 and exact.dim() > 1]]
    weights = counted.double()
    for dim in dims:
        count = _fold(weights, dim)
        slices = int((count > 0).sum())
        many = math.sqrt(2 * math.log(slices + 1)) if dim is not None else 0.0
        for direction in (None, sign):
            means = _means(measure.z, direction, dim, count)
            null = max(float(_means(s, direction, dim, count).max()) for s in samples)
            allowed = floor + 2 * null + (BIAS_NULL + many) / (count / copies).clamp(min=1).sqrt()
            worst = max(worst, float((means / allowed).max()))
    return worst


def _fold(value: Tensor, dim: int | None) -> Tensor:
    """Return sums over the whole tensor, or over every slice of one dimension."""
    if dim is None:
        return value.sum().reshape(1)
    others = [d for d in range(value.dim()) if d != dim]
    return value.sum(others) if others else value


def _means(z: Tensor, direction: Tensor | None, dim: int | None, count: Tensor) -> Tensor:
    return _fold(z if direction is None else z * direction, dim).abs_() / count.clamp(min=1)


def _jumped(actual: Tensor, eager: Tensor, exact: Tensor, wide: Tensor, measure: _Measure) -> Tensor:
    """Return where the compiled value or eager took a branch that rounding can take.

    There wide replicas jump (move more than their amplification explains), and at least as far.
    """
    sigma = measure.sigma / measure.calibration
    reach = torch.where(torch.isfinite(wide), (wide - exact).abs(), 0.0).amax(0)
    jumps = measure.counted & (reach > JUMP * WIDE * sigma)
    result = torch.zeros_like(jumps)
    for value in (actual.double(), eager.double()):
        distance = (value - exact).abs()
        result |= jumps & (distance <= 1.5 * reach) & (distance > ELEMENT / 2 * sigma)
    return result


def _verdict(
    actual: Tensor, eager: Tensor, exact: Tensor, measure: _Measure, numbers: Numbers
) -> tuple[Kind | Need, Numbers | None, str]:
    a, e = actual.double(), eager.double()
    fine = measure.counted & torch.isfinite(e)
    ours = float((a - exact)[fine].square().mean().sqrt()) if bool(fine.any()) else 0.0
    theirs = float((e - exact)[fine].square().mean().sqrt()) if bool(fine.any()) else 0.0
    if measure.calibration > DISTRUST and ours >= BETTER_SHARE * theirs:
        return (
            Kind.NO_REFERENCE,
            numbers,
            f"eager itself is {measure.calibration:.0f} units from its float64 meaning; compiled is no further",
        )
    if ours < BETTER_SHARE * theirs:
        return Kind.BETTER, numbers, f"rms error {ours:.2g} against float64, eager has {theirs:.2g}"
    return Kind.NOISE, numbers, _says(numbers)


def _says(numbers: Numbers) -> str:
    """Return the numbers as one sentence: how far, where, in whose units, and which statistic decides."""
    if numbers.worst_index is None or not numbers.scale or numbers.error is None:
        return "no finite position to compare"
    eager_units = abs((numbers.eager or 0.0) - (numbers.reference or 0.0)) / numbers.scale
    units = numbers.units
    text = f"{numbers.error:.2g} off at {list(numbers.worst_index)}"
    if units is None:
        return f"{text} (eager {numbers.eager:.6g}, compiled {numbers.actual:.6g}): nothing rounds there"
    text += f": {units:.2g}x the program's own rounding noise ({numbers.scale:.2g}); eager is {eager_units:.2g}x"
    if numbers.margin > 1 and numbers.t_element <= 1:
        cause = "mean over a slice" if numbers.t_bias >= numbers.t_rms else "root mean square"
        text += f"; the {cause} is {numbers.margin:.2g}x what rounding allows"
    return text


__all__ = ["Need", "judge_values", "wide_dtype", "zero_sign_differences"]
