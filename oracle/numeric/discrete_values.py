"""The decision on integers and booleans, and on any tensor whose values rounding alone decides."""

import torch
from torch import Tensor

from ..noise.lanes import Lanes
from ..noise.monte_carlo import unit_roundoff
from ..verdict import ErrorStatistics, VerdictKind
from .element_places import discrete_difference, first_place, positions, shown
from .unseen_places import at_unseen_places
from .value_decision import Need, OpenDecision, ValueDecision

# When rounding decides a larger share of positions than this, the tensor is inconclusive.
UNSTABLE_SHARE = 0.05
# Share of the positions fixed by the declared dtypes that may differ: rounding ties that four lanes missed.
DECLARED_SHARE = 0.01
# Where lanes agree at no more than this share of the positions, they may do so by chance: each of four with 0.7.
CHANCE_SHARE = 0.25
# Quantiles of the errors that are compared where eager errs as well; by what share one side's may be larger by chance,
# for any number of positions and times the root of it more.
_QUANTILES = (0.5, 0.9, 0.99)
_ALIKE, _ALIKE_BY_CHANCE, _WORST_ALIKE = 1.1, 4.0, 2.0
# Rounded lanes and eager agree when they are within this many u: two roundings each way.
FEW_UNITS = 4.0


def judge_discrete(actual: Tensor, eager: Tensor, lanes: Lanes | None) -> OpenDecision:
    """Judge integers and booleans: exact, except at positions where rounding alone decides; lanes tell which."""
    if lanes is None or lanes.exact is None:
        differs = actual != eager
        sentence = discrete_difference(actual, eager, first_place(differs), int(differs.sum()))
        return ValueDecision(VerdictKind.WRONG, None, sentence)
    if lanes.replicas is None:
        return ValueDecision(Need.REPLICAS, None, "an integer differs: replicas tell whether rounding decides it")
    differs = actual != eager
    unstable = (lanes.replicas != lanes.exact).any(0) | (eager != lanes.exact)
    share = float(unstable.double().mean())
    if lanes.rounded is None or lanes.wide is None:
        return ValueDecision(Need.ROUNDED, None, "an integer differs: wide lanes tell whether rounding decides it")
    flippable = unstable | (lanes.wide != lanes.exact).any(0)
    wrong = differs & ~flippable
    if not bool(wrong.any()):
        wrong = differs & ~_within_lanes(actual, eager, lanes)
    if bool(wrong.any()):
        at = first_place(wrong)
        sentence = discrete_difference(actual, eager, at, int(wrong.sum()))
        return ValueDecision(VerdictKind.WRONG, _unstable_share(share, at), f"{sentence}; rounding cannot explain it")
    if share > UNSTABLE_SHARE:
        return judge_declared(actual, eager, lanes.rounded, share, None)
    return ValueDecision(
        VerdictKind.NOISE,
        _unstable_share(share, first_place(differs)),
        f"differs from eager at {positions(int(differs.sum()))}, all of which rounding alone decides",
    )


def _unstable_share(share: float, at: tuple[int, ...]) -> ErrorStatistics:
    return ErrorStatistics(0.0, 0.0, 0.0, 0.0, unstable=share, worst_index=at)


def _within_lanes(actual: Tensor, eager: Tensor, lanes: Lanes) -> Tensor:
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


def _share_of_lanes(agrees: Tensor, strays: Tensor) -> float:
    """Return in which share of the positions that the other lanes call fixed a lane strays itself, of all the most.

    Where rounding leaves zeros by chance, lanes agree at some positions by chance.
    """
    shares = []
    for lane in range(len(agrees)):
        fixed = torch.cat([agrees[:lane], agrees[lane + 1 :]]).all(0)
        shares.append(float((fixed & strays[lane]).sum()) / max(1, int(fixed.sum())))
    return max(shares, default=0.0)


def _a_missed_tie(actual: Tensor, eager: Tensor, rounded: Tensor, wrong: Tensor, total: int) -> bool:
    """Return whether one position of few has moved no further than rounding moves another position of this tensor.

    Of a hundred positions one may be a tie that four lanes missed; fewer have no share that could be counted.
    """
    if not eager.is_floating_point() or int(wrong.sum()) != 1 or total * DECLARED_SHARE >= 1:
        return False
    moved = (actual.double() - eager.double()).abs()[wrong]
    return bool(moved.max() <= (rounded - eager.double()).abs().max())


def _errs_as_eager_does(actual: Tensor, eager: Tensor, exact: Tensor) -> bool:
    """Return whether errors against the exact values are as large and as frequent as eager's, at these positions.

    Roundings that lanes repeat may be large for all that: another form of the program makes others of that size.
    """
    errors = (actual - exact).abs(), (eager - exact).abs()
    fine = torch.isfinite(errors[0]) & torch.isfinite(errors[1])
    count = int(fine.sum())
    if count < fine.numel() or not count:
        return False
    more = _ALIKE + _ALIKE_BY_CHANCE / count**0.5
    ours, eagers = (error.sort().values for error in errors)
    places = [min(count - 1, int(share * count)) for share in _QUANTILES]
    rms = [float(error.square().mean().sqrt()) for error in errors]
    alike = rms[0] <= more * rms[1] and float(ours[-1]) <= _WORST_ALIKE * float(eagers[-1])
    return alike and bool((ours[places] <= more * eagers[places]).all())


def judge_declared(
    actual: Tensor,
    eager: Tensor,
    rounded: Tensor,
    share: float,
    statistics: ErrorStatistics | None,
    exact: Tensor | None = None,
) -> OpenDecision:
    """Judge by the declared dtypes: where rounded lanes agree with eager, the compiled value must too.

    It may stray as often as one of the lanes does where the others agree, and be nearer to the exact value than eager,
    or in all as near: lanes that repeat eager's roundings repeat its error, as in the gradient of a norm's sum, which
    is zero.
    """
    if eager.is_floating_point():
        e, a = eager.double(), actual.double()
        size = torch.maximum(e.abs(), rounded.abs().amax(0)).clamp(min=torch.finfo(eager.dtype).tiny)  # subnormals
        near = FEW_UNITS * unit_roundoff(eager.dtype) * size
        agrees = (rounded - e).abs() <= near
        strays = (rounded - e).abs() > 2 * near
        differs = (a - e).abs() > 2 * near
        if exact is not None:
            differs &= ~((a - exact).abs() < (e - exact).abs())
            differs &= ~at_unseen_places(a, exact, torch.cat([rounded, e.unsqueeze(0)]))
    else:
        agrees = rounded == eager
        strays = ~agrees
        differs = actual != eager
    settled = agrees.all(0)
    statistics = statistics or ErrorStatistics(0.0, 0.0, 0.0, 0.0, unstable=share)
    wrong = settled & differs
    count, total = int(wrong.sum()), int(settled.sum())
    excused = total <= CHANCE_SHARE * settled.numel() or _a_missed_tie(actual, eager, rounded, wrong, total)
    if count and not excused and exact is not None and eager.is_floating_point():
        excused = _errs_as_eager_does(actual[settled].double(), eager[settled].double(), exact[settled])
    if count and not excused and count > max(DECLARED_SHARE, _share_of_lanes(agrees, strays)) * total:
        at = first_place(wrong)
        return ValueDecision(
            VerdictKind.WRONG,
            statistics,
            f"{shown(actual[at])} at {list(at)}, eager has {shown(eager[at])}: "
            f"{count} of {total} positions fixed by the declared dtypes differ",
        )
    return ValueDecision(
        VerdictKind.UNSTABLE,
        statistics,
        f"rounding alone decides {share:.0%} of positions, so they cannot be judged",
    )
