"""The decision on floating-point tensors: by the float64 value alone where that is enough, else by replicas."""

import math

import torch
from torch import Tensor

from ..noise.lanes import Lanes
from ..noise.monte_carlo import unit_roundoff
from ..verdict import ErrorStatistics, VerdictKind
from .discrete_values import UNSTABLE_SHARE, judge_declared
from .least_noise import margin_bound
from .noise_units import NoiseUnits, jumped_places, measured
from .value_decision import Need, OpenDecision, ValueDecision

# When eager is this many units from its own float64 evaluation, the reference alone is not trusted.
DISTRUST = 32.0
# Compiled rms error below this share of eager's is called better.
BETTER_SHARE = 0.5
# When eager is this many units out in any element it may have jumped: wide lanes are run before it calibrates.
SUSPECT = 4.0


def judge_by_exact(actual: Tensor, eager: Tensor, exact: Tensor) -> OpenDecision:
    """Accept a tensor that is nowhere worse than both correct rounding and eager, or that any replicas would accept."""
    a, e = actual.double(), eager.double()
    same = (a == e) | ((a != a) & (e != e))
    fine = torch.isfinite(a) & torch.isfinite(e) & torch.isfinite(exact)
    if not bool((fine | (same & ~torch.isfinite(a))).all()):
        return ValueDecision(Need.REPLICAS, None, "finite in other positions than eager or float64")
    bound = margin_bound(actual, eager, exact) if eager.dtype != torch.float64 else math.inf
    a, e, r = a[fine], e[fine], exact[fine]
    best = r.to(eager.dtype).double()
    error, eager_error = (a - r).abs(), (e - r).abs()
    u = unit_roundoff(eager.dtype)
    size = r.abs().clamp(min=float(r.square().mean().sqrt()) if r.numel() else 0.0)
    settled = bool((eager_error <= 8 * u * size).all())
    nowhere = settled and bool((error <= torch.maximum((best - r).abs(), eager_error)).all())
    if nowhere or bound <= 1:
        rms, eager_rms = float(error.square().mean().sqrt()), float(eager_error.square().mean().sqrt())
        if rms < BETTER_SHARE * eager_rms:
            return ValueDecision(VerdictKind.BETTER, None, _better(rms, eager_rms))
        words = f"{bound:.2g}x what a last rounding alone explains"
        if nowhere:
            words = "nowhere further from float64 than eager or one rounding"
        return ValueDecision(VerdictKind.NOISE, None, words)
    return ValueDecision(Need.REPLICAS, None, "beyond one rounding of float64")


def judge_by_replicas(actual: Tensor, eager: Tensor, lanes: Lanes) -> OpenDecision:
    """Judge a tensor by the spread of its replicas; asks for rounded and wide lanes where values may jump."""
    exact, replicas = lanes.exact, lanes.replicas
    if exact is None or replicas is None:
        return ValueDecision(Need.REPLICAS, None, "no replicas yet")
    units, statistics = measured(actual, eager, exact, replicas)
    if statistics.margin > 1 or units.calibration > SUSPECT:
        if lanes.wide is None or lanes.rounded is None:
            return ValueDecision(Need.ROUNDED, statistics, "beyond the noise: wide lanes tell a jump from an error")
        jumped = jumped_places(actual, eager, exact, lanes.wide, units)
        if bool(jumped.any()):
            units, statistics = measured(actual, eager, exact, replicas, jumped)
        if statistics.margin > 1:
            return ValueDecision(VerdictKind.WRONG, statistics, _sentence(statistics))
    share = statistics.unstable
    if share > UNSTABLE_SHARE:
        if lanes.rounded is None or lanes.wide is None:
            return ValueDecision(Need.ROUNDED, statistics, f"rounding decides {share:.0%} of positions")
        declared = judge_declared(actual, eager, lanes.rounded, share, statistics, exact)
        jumps = float(jumped_places(actual, eager, exact, lanes.wide, units).double().mean())
        # A value that is all rounding (a gradient that cancels to nothing) is noise; one that may jump is undecided.
        if declared.kind is VerdictKind.WRONG or jumps > UNSTABLE_SHARE:
            return declared
    return _accepted(actual, eager, exact, units, statistics)


def _accepted(
    actual: Tensor, eager: Tensor, exact: Tensor, units: NoiseUnits, statistics: ErrorStatistics
) -> OpenDecision:
    a, e = actual.double(), eager.double()
    fine = units.counted & torch.isfinite(e)
    rms = float((a - exact)[fine].square().mean().sqrt()) if bool(fine.any()) else 0.0
    eager_rms = float((e - exact)[fine].square().mean().sqrt()) if bool(fine.any()) else 0.0
    if units.calibration > DISTRUST and rms >= BETTER_SHARE * eager_rms:
        sentence = f"eager itself is {units.calibration:.0f} units from its own float64 evaluation"
        return ValueDecision(VerdictKind.NO_REFERENCE, statistics, f"{sentence}; the compiled value is no further")
    if rms < BETTER_SHARE * eager_rms:
        return ValueDecision(VerdictKind.BETTER, statistics, _better(rms, eager_rms))
    return ValueDecision(VerdictKind.NOISE, statistics, _sentence(statistics))


def _better(rms: float, eager_rms: float) -> str:
    return f"rms error {rms:.2g} against float64, eager has {eager_rms:.2g}"


def _sentence(statistics: ErrorStatistics) -> str:
    """Return the statistics as one sentence: how far, where, in whose units, and which statistic decides."""
    if statistics.worst_index is None or not statistics.scale or statistics.error is None:
        return "no finite position to compare"
    eager_units = abs((statistics.eager or 0.0) - (statistics.reference or 0.0)) / statistics.scale
    distance = statistics.units
    text = f"{statistics.error:.2g} off at {list(statistics.worst_index)}"
    if distance is None:
        return f"{text} (eager {statistics.eager:.6g}, compiled {statistics.actual:.6g}): nothing rounds there"
    text += f": {distance:.2g}x the program's own rounding noise ({statistics.scale:.2g}); eager is {eager_units:.2g}x"
    if statistics.margin > 1 and statistics.t_element <= 1:
        cause = "mean over a slice" if statistics.t_bias >= statistics.t_rms else "root mean square"
        text += f"; the {cause} is {statistics.margin:.2g}x what rounding allows"
    return text
