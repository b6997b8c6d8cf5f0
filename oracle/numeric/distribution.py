"""Samples against samples: whether the compiler's own random generator draws from eager's distribution.

A correct generator fails with probability ALPHA at most, corrected for the number of tests; structure that eager
shows exactly (constants, the two values of dropout) must be matched exactly.
"""

import math
from collections.abc import Sequence

import numpy as np
import torch
from scipy import stats
from torch import Tensor

from ..noise.monte_carlo import unit_roundoff
from ..verdict import VerdictKind

ALPHA = 1e-6  # one false alarm in a million judgements
FEW_SAMPLES = 8  # fewer runs per side say nothing about spread
FEW_ULPS = 16.0  # a value that eager repeats may be computed in another order
POSITIONS = 64  # single positions compared, spread over the tensor
DISTINCT_SHARE = 0.5  # fewer distinct values than this share of eager's: draws are reused
SAMPLE_VALUES = 200_000  # pooled values compared at most; more power is not needed


def judge_distribution(eager_samples: Sequence[Tensor], compiled_samples: Sequence[Tensor]) -> tuple[VerdictKind, str]:
    """Judge independent runs of a random program: eager's against the compiled ones, equal shapes and dtypes.

    Each sequence holds one output of successive runs (seeds advance between them).
    Returns NOISE when no test tells the two apart, WRONG with the test that does, NO_REFERENCE with fewer than
    8 runs a side.  Checked: seeds advance; positions constant in eager; the two values and the zero rate of
    dropout; distinct values; pooled and per-position distributions (Kolmogorov-Smirnov); statistics of each run.
    """
    if min(len(eager_samples), len(compiled_samples)) < FEW_SAMPLES:
        return VerdictKind.NO_REFERENCE, f"fewer than {FEW_SAMPLES} runs per side cannot tell distributions apart"
    eager, compiled = _matrix(eager_samples), _matrix(compiled_samples)
    if not eager.shape[1]:
        return VerdictKind.EQUAL, "empty"
    u = _roundoff(eager_samples[0].dtype)
    for check in (_finite, _advance, _constants, _dropout):
        fault = check(eager, compiled, u)
        if fault is not None:
            return VerdictKind.WRONG, fault
    return _statistics(eager, compiled)


def _matrix(samples: Sequence[Tensor]) -> Tensor:
    """Return [runs, positions] in float64."""
    rows = [torch.view_as_real(s.detach().resolve_conj()) if s.is_complex() else s.detach() for s in samples]
    return torch.stack([row.reshape(-1).double() for row in rows])


def _roundoff(dtype: torch.dtype) -> float:
    return unit_roundoff(dtype) if dtype.is_floating_point or dtype.is_complex else 0.0


def _finite(eager: Tensor, compiled: Tensor, u: float) -> str | None:
    if bool(torch.isfinite(compiled).all()) or not bool(torch.isfinite(eager).all()):
        return None
    return f"{int((~torch.isfinite(compiled)).sum())} values are not finite, all of eager's are"


def _advance(eager: Tensor, compiled: Tensor, u: float) -> str | None:
    """Seeds advance: when all of eager's runs differ, repeated compiled runs are errors."""
    if len(torch.unique(eager, dim=0)) < len(eager):
        return None
    distinct = len(torch.unique(compiled, dim=0))
    if distinct == len(compiled):
        return None
    results = f"{len(compiled)} compiled runs have {distinct} different results, eager's all differ"
    return f"{results}: the seed does not advance"


def _constants(eager: Tensor, compiled: Tensor, u: float) -> str | None:
    """Positions that no draw reaches hold eager's value.  Needs enough runs for chance to be excluded."""
    constant = (eager == eager[0]).all(0)
    if not bool(constant.any()) or _constant_by_chance(eager, constant):
        return None
    allowed = 2 * FEW_ULPS * u * eager[0].abs()
    off = constant & ((compiled - eager[0]).abs() > allowed).any(0)
    if not bool(off.any()):
        return None
    at = int(off.to(torch.uint8).argmax())
    value = float(compiled[(compiled[:, at] - eager[0, at]).abs().argmax(), at])
    return f"{value:.6g} at flat position {at}, where every eager run has {float(eager[0, at]):.6g}"


def _constant_by_chance(eager: Tensor, constant: Tensor) -> bool:
    """Return whether constant positions may be chance, as in dropout: draws repeat their most common value there."""
    varying = eager[:, ~constant]
    if not varying.shape[1]:
        return False
    common = varying.mode(0).values
    repeats = float((varying == common).double().mean())
    return repeats ** (len(eager) - 1) * eager.shape[1] > ALPHA


def _spread_positions(values: Tensor) -> list[int]:
    count = values.shape[1]
    step = max(1, count // POSITIONS)
    return list(range(0, count, step))[:POSITIONS]


def _dropout(eager: Tensor, compiled: Tensor, u: float) -> str | None:
    """Where eager holds zero or one fixed value, so must the compiled run, and as often.

    The relation {0, x/(1-p)} is learned from eager: every position's non-zero values agree among its runs.
    """
    zeros = eager == 0
    rate = float(zeros.double().mean())
    high = torch.where(zeros, -math.inf, eager).amax(0)
    low = torch.where(zeros, math.inf, eager).amin(0)
    seen = ~zeros.all(0)
    allowed = 2 * FEW_ULPS * u * torch.where(seen, high, 0.0).abs()
    if not 0 < rate < 1 or not bool(((high - low)[seen] <= allowed[seen]).all()):
        return None
    nonzero = compiled != 0
    off = nonzero & seen & ((compiled - torch.where(seen, high, 0.0)).abs() > allowed)
    if bool(off.any()):
        run, at = divmod(int(off.reshape(-1).to(torch.uint8).argmax()), off.shape[1])
        return f"{float(compiled[run, at]):.6g} at flat position {at}: eager has 0 or {float(high[at]):.6g} there"
    live = seen & ~(eager != 0).all(0)
    count, eager_count = int((~nonzero[:, live]).sum()), int(zeros[:, live].sum())
    total, eager_total = nonzero[:, live].numel(), zeros[:, live].numel()
    p = _proportions(count, total, eager_count, eager_total)
    if p < ALPHA:
        return f"zero at {count / total:.2%} of positions, eager at {eager_count / eager_total:.2%} (p = {p:.1g})"
    return None


def _proportions(a: int, n: int, b: int, m: int) -> float:
    """Return the p-value of a/n and b/m being one proportion (Fisher's exact test)."""
    return float(stats.fisher_exact(np.array([[a, n - a], [b, m - b]]))[1]) if n and m else 1.0


def _statistics(eager: Tensor, compiled: Tensor) -> tuple[VerdictKind, str]:
    finite = torch.isfinite(eager).all(0) & torch.isfinite(compiled).all(0)
    varying = finite & ~((eager == eager[0]).all(0) & (compiled == eager[0]).all(0))
    if not bool(varying.any()):
        return VerdictKind.NOISE, "no position varies in either"
    eager, compiled = eager[:, varying], compiled[:, varying]
    distinct = _distinct(eager, compiled)
    if distinct is not None:
        return VerdictKind.WRONG, distinct
    whole = {"pooled values": _pooled(eager, compiled)}
    for name, eager_runs, compiled_runs in _per_run(eager, compiled):
        whole[name] = min(
            2 * float(stats.ks_2samp(eager_runs.numpy(), compiled_runs.numpy()).pvalue),  # another shape
            2 * float(stats.mannwhitneyu(eager_runs.numpy(), compiled_runs.numpy()).pvalue),  # another place
        )
    single = {
        f"flat position {at}": float(stats.ks_2samp(eager[:, at].numpy(), compiled[:, at].numpy()).pvalue)
        for at in _spread_positions(eager)
    }
    # Half of ALPHA goes to the tensor as a whole, half to single positions, each shared evenly (Bonferroni).
    tests = {n: p * 2 * len(group) for group in (whole, single) for n, p in group.items()}
    name, p = min(tests.items(), key=lambda item: item[1])
    if p < ALPHA:
        moments = (
            f"mean {float(compiled.mean()):.4g} against {float(eager.mean()):.4g}, "
            f"deviation {float(compiled.std()):.4g} against {float(eager.std()):.4g}"
        )
        return VerdictKind.WRONG, f"another distribution than eager's: {name} (p = {p:.1g} corrected; {moments})"
    return (
        VerdictKind.NOISE,
        f"same distribution as eager by {len(tests)} tests (smallest p = {min(1.0, p):.2g}, {name})",
    )


def _distinct(eager: Tensor, compiled: Tensor) -> str | None:
    if eager.shape[1] < POSITIONS:
        return None
    distinct, eager_distinct = (
        sum(len(torch.unique(row)) for row in values) / len(values) for values in (compiled, eager)
    )
    if distinct >= DISTINCT_SHARE * eager_distinct:
        return None
    return f"{distinct:.0f} distinct values a run, eager has {eager_distinct:.0f}: draws are reused"


def _pooled(eager: Tensor, compiled: Tensor) -> float:
    """Return the p-value of the pooled values; dependence among positions shrinks the effective sample.

    The design effect is the variance of run means over what independent positions would give.
    """
    effect = max(1.0, _design_effect(eager), _design_effect(compiled))
    step = max(1, eager.numel() // SAMPLE_VALUES)
    a, b = eager.reshape(-1)[::step], compiled.reshape(-1)[::step]
    distance = float(stats.ks_2samp(a.numpy(), b.numpy(), method="asymp").statistic)
    size = a.numel() * b.numel() / (a.numel() + b.numel()) / effect
    return float(stats.kstwobign.sf(distance * math.sqrt(size)))


def _design_effect(values: Tensor) -> float:
    within = float(values.var(0).mean())
    return float(values.mean(1).var()) * values.shape[1] / within if within else 1.0


def _per_run(eager: Tensor, compiled: Tensor) -> list[tuple[str, Tensor, Tensor]]:
    """Return statistics of each run; runs are independent even where positions are not."""

    def lagged(values: Tensor) -> Tensor:
        centred = values - values.mean(0)
        return (centred[:, 1:] * centred[:, :-1]).mean(1) if values.shape[1] > 1 else values[:, 0]

    return [
        ("mean of a run", eager.mean(1), compiled.mean(1)),
        ("deviation of a run", eager.std(1, correction=0), compiled.std(1, correction=0)),
        ("largest value of a run", eager.amax(1), compiled.amax(1)),
        ("smallest value of a run", eager.amin(1), compiled.amin(1)),
        ("neighbours in a run", lagged(eager), lagged(compiled)),
    ]
