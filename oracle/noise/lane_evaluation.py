"""One operator in every lane: exact, noisy, wide and rounded rows of the same call."""

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor

from plumbline.compiler.base.fake_mode_start import let_references_run
from plumbline.compiler.base.torch_facts import running_backward

from .monte_carlo import (
    DOUBLE,
    WIDE,
    NoiseSource,
    NoisyArithmetic,
    Scale,
    SumErrors,
    grid_everywhere,
    internal_roundoff,
    map_tensors,
    noisy_call,
    on_grid,
    tensors_in,
    times,
    unit_roundoff,
)
from .operator_facts import STORED_BETWEEN, OperatorFacts
from .shadow_memory import wide_dtype
from .stored_values import storing

# Before they round, rounded lanes are perturbed by 16 roundings of float32: sums and libm of legitimate kernels may
# differ by that much.  Where all lanes still agree with eager, the declared dtype fixes the value.
_INNER_ROUNDINGS = 16.0
_SALTS, _MIXER = float(1 << 62), -7046029254386353131
"""How many ways there are to mix the bits of a number; an odd factor whose bits look drawn (Knuth's, of 64 bits)."""
_EXTREMES = frozenset("max min amax amin aminmax maximum minimum fmax fmin".split())


@dataclass(frozen=True, slots=True)
class LanePlan:
    """Which rows of a shadow hold which lane: exact first, then replicas, wide, rounded.

    steps: rounded rows move to a neighbour, or stay, in place of the noise of float32 internals.
    """

    exact: int
    replicas: int
    wide: int
    rounded: int
    steps: bool = False

    @property
    def count(self) -> int:
        """Return the number of lanes."""
        return self.exact + self.replicas + self.wide + self.rounded

    @property
    def noisy(self) -> slice:
        """Return the rows that take Monte-Carlo noise: replicas and wide."""
        return slice(self.exact, self.exact + self.replicas + self.wide)

    @property
    def rounding(self) -> slice:
        """Return the rows that round every result to its declared dtype."""
        return slice(self.count - self.rounded, self.count)

    def amplification(self) -> tuple[float, ...]:
        """Return how much of the noise each row takes."""
        return _amplification(self.exact, self.replicas, self.wide, self.rounded)

    def noisy_rows(self, call: "LaneCall") -> slice:
        """Return the rows that take noise in one call: `noisy`, and the rounded ones where its inside is noisy."""
        return slice(self.exact, self.count) if call.has_inner_noise else self.noisy

    def amplification_of(self, call: "LaneCall") -> tuple[float, ...]:
        """Return how much of the noise of storing a result each row takes in one call.

        A rounded lane repeats a float64 kernel to the bit: a sum that cancels to nothing there would be held for fixed,
        unless it takes the noise of its terms as a replica does.
        """
        return self._with_noise_where_rounded(self.amplification(), noisy=call.is_double)

    def inner_amplification_of(self, call: "LaneCall") -> tuple[float, ...]:
        """Return how much of the noise inside of an operator each row takes in one call.

        A rounded lane would repeat a composition to the bit as well, where terms of it may cancel in float32.
        """
        return self._with_noise_where_rounded(self.amplification(), noisy=call.has_inner_noise)

    def _with_noise_where_rounded(self, amplification: tuple[float, ...], *, noisy: bool) -> tuple[float, ...]:
        if not (noisy and self.rounded):
            return amplification
        return (*amplification[: self.rounding.start], *[1.0] * self.rounded)


@lru_cache(maxsize=64)
def _amplification(exact: int, replicas: int, wide: int, rounded: int) -> tuple[float, ...]:
    return (*[0.0] * exact, *[1.0] * replicas, *[WIDE] * wide, *[0.0] * rounded)


@dataclass(frozen=True, slots=True)
class LaneCall:
    """One operator call as the lanes see it.

    args, kwargs: tensors are [L, *shape]; dtypes and scalars are already those of the lanes.
    dtypes: real floating dtypes among arguments and results.  real: eager's results, written arguments last.
    """

    operator: Any
    facts: OperatorFacts
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    dtypes: list[torch.dtype]
    real: list[Tensor]

    @property
    def inner_roundoff(self) -> float:
        """Return the roundoff inside eager's kernel, which converts first where the result is to be less precise."""
        if self.facts.name in STORED_BETWEEN and self.dtypes:
            return max(map(unit_roundoff, self.dtypes))
        kept = [real.dtype for real in self.real if real.dtype.is_floating_point or real.dtype.is_complex]
        return internal_roundoff(kept or self.dtypes)

    @property
    def is_double(self) -> bool:
        """Return whether eager's kernel is as precise as the lanes are."""
        return self.inner_roundoff == DOUBLE

    @property
    def has_inner_noise(self) -> bool:
        """Return whether lanes that round what is stored, and nothing else, would repeat eager's inside to the bit."""
        return self.is_double or self.facts.decomposition is not None


def evaluate(call: LaneCall, plan: LanePlan, source: NoiseSource) -> list[Tensor]:
    """Return for every result (fresh outputs, then written arguments) its lanes, [L, *shape] each.

    A replacement may omit results at the end.
    Raises what the operator raises in a lane, and ValueError when a lane's shape is not eager's.
    """
    if call.facts.pointwise and not any(isinstance(a, (list, tuple)) and tensors_in(a) for a in call.args):
        rows = _evaluate_together(call, plan, source)
    else:
        rows = _evaluate_apart(call, plan, source)
    for value, real in zip(rows, call.real, strict=False):
        if value.shape[1:] != real.shape:
            raise ValueError(f"a lane has shape {tuple(value.shape[1:])}")
    if plan.rounded:
        for value, real in zip(rows, call.real, strict=False):
            _round_rows(value[plan.rounding], real.dtype, call.facts, source, steps=plan.steps)
    rows = [_with_many_nans(value, real, call.facts, plan) for value, real in zip(rows, call.real, strict=False)]
    return [_with_both_zeros(value) for value in rows] if _chooses_a_zero(call) else rows


def _with_many_nans(rows: Tensor, real: Tensor, facts: OperatorFacts, plan: LanePlan) -> Tensor:
    """Let NaN that arithmetic made be positive in one lane and negative in the next: its sign is nobody's promise.

    What reads it (`signbit`, `copysign`) is then seen to depend on it. Where the exact value is a number, NaN comes of
    steps that overflow, and other steps may not (a norm's squares, added in another order): every other lane is exact
    there, so that what compares or counts is seen to depend on it, too.
    """
    quiet = facts.moving or facts.jumping or facts.fixed or facts.converting
    if quiet or not real.is_floating_point() or not bool(torch.isnan(real).any()):
        return rows
    others, half = rows.clone(), rows[1::2]
    otherwise = torch.where(torch.isnan(rows[:1]), -half, rows[:1]) if plan.exact else -half
    others[1::2] = torch.where(torch.isnan(half), otherwise, half)
    return others


def _chooses_a_zero(call: LaneCall) -> bool:
    """Return whether an extreme may be either zero: which one ATen takes depends on the operator and on its vectors."""
    if call.facts.name not in _EXTREMES:
        return False
    zeros = [t[t == 0] for t in tensors_in(call.args) if t.is_floating_point()]
    signs = [torch.signbit(each) for each in zeros if each.numel()]
    return any(bool(each.any()) for each in signs) and any(not bool(each.all()) for each in signs)


def _with_both_zeros(rows: Tensor) -> Tensor:
    """Let zeros have one sign in one lane and the other in the next, so that what reads it is seen to depend on it."""
    if not rows.is_floating_point():
        return rows
    others = rows.clone()
    others[1::2] = torch.where(rows[1::2] == 0, -rows[1::2], rows[1::2])
    return others


def _round_rows(rows: Tensor, dtype: torch.dtype, facts: OperatorFacts, source: NoiseSource, *, steps: bool) -> None:
    """Round the rounded lanes to the declared dtype, after the noise of float32 internals or before a step of one ulp.

    Noise of many roundings seldom meets the one number where a function has a pole; steps do.
    """
    if not (dtype.is_floating_point or dtype.is_complex):
        return
    if facts.moving or facts.jumping or facts.fixed or facts.converting:
        rows.copy_(rows.to(dtype))
        return
    if steps:
        moved = _one_ulp_aside(rows, dtype, source)
    else:
        moved = source.perturb(rows, _INNER_ROUNDINGS * internal_roundoff([dtype]))
    rows.copy_(torch.where(on_grid(rows), rows, moved) if facts.grid_exact and not rows.is_complex() else moved)
    rows.copy_(rows.to(dtype))


def _one_ulp_aside(rows: Tensor, dtype: torch.dtype, source: NoiseSource) -> Tensor:
    """Return the rounded rows, a third of their numbers one ulp larger and a third one ulp smaller in size.

    Equal numbers of a row go the same way, as equal arguments of a kernel give equal results.  Three quarters of eps
    are at most one and a half units in the last place, before the row is rounded again.
    """
    if rows.is_complex():
        return torch.view_as_complex(_one_ulp_aside(torch.view_as_real(rows).contiguous(), dtype.to_real(), source))
    rounded = rows.to(dtype).double()
    salt = (source.uniform([rows.shape[0], *[1] * (rows.dim() - 1)], rows.device) * _SALTS).long()
    mixed = (rounded.view(torch.int64) ^ salt) * _MIXER
    step = (mixed ^ (mixed >> 32)) * _MIXER >> 40
    return rounded * (1 + (step.remainder(3) - 1) * (0.75 * torch.finfo(dtype).eps))


def plain(call: LaneCall, args: Any, kwargs: Any) -> list[Tensor]:
    """Return the results of the operator on lane arguments: fresh outputs, then copies of written arguments."""
    args, kwargs, written = _with_copies(call.facts, args, kwargs)
    run = call.facts.replacement or call.operator
    result = run(*args, **kwargs)
    if call.facts.replacement is not None and len(written) == 1 and isinstance(result, Tensor):
        written[0].copy_(result)  # a replacement returns what an operator in place writes
        return written
    return fresh_results(result, written)


def fresh_results(result: Any, written: list[Tensor]) -> list[Tensor]:
    """Return the outputs that are not written arguments, then the written arguments."""
    known = {id(t) for t in written}
    return [t for t in tensors_in(result) if id(t) not in known] + written


def _with_copies(facts: OperatorFacts, args: Any, kwargs: Any) -> tuple[list[Any], dict[str, Any], list[Tensor]]:
    args, kwargs = list(args), dict(kwargs)
    written: list[Tensor] = []
    for place in facts.written:
        if isinstance(place, int):
            if place < len(args):
                args[place] = map_tensors(args[place], torch.clone)
                written += tensors_in(args[place])
        elif place in kwargs:
            kwargs[place] = map_tensors(kwargs[place], torch.clone)
            written += tensors_in(kwargs[place])
    return args, kwargs, written


def _scales(call: LaneCall, plan: LanePlan, rows: slice) -> tuple[tuple[float, ...], tuple[float, ...], list[float]]:
    """Return inner noise a row, the amplification a row, and output roundoff a result."""
    amplification = plan.amplification_of(call)[rows]
    quiet = call.facts.moving or call.facts.jumping or call.facts.fixed or call.facts.converting
    inner = 0.0 if quiet else call.inner_roundoff
    outer = [_output_roundoff(call, real.dtype) for real in call.real]
    return tuple([each * inner for each in plan.inner_amplification_of(call)[rows]]), amplification, outer


def _output_roundoff(call: LaneCall, dtype: torch.dtype) -> float:
    facts = call.facts
    if facts.moving or facts.fixed or not (dtype.is_floating_point or dtype.is_complex):
        return 0.0
    if facts.jumping and facts.name != "remainder":
        return 0.0
    return unit_roundoff(dtype)


def _evaluate_together(call: LaneCall, plan: LanePlan, source: NoiseSource) -> list[Tensor]:
    """Run a pointwise operator once on all rows: arguments are aligned on the right, lanes come first."""
    rank = max((t.dim() for t in [*tensors_in(call.args), *tensors_in(call.kwargs)]), default=1)

    def aligned(value: Tensor) -> Tensor:
        return (
            value.view(value.shape[0], *[1] * (rank - value.dim()), *value.shape[1:]) if value.dim() < rank else value
        )

    args, kwargs = map_tensors(call.args, aligned), map_tensors(call.kwargs, aligned)
    results = [
        r if r.dim() and r.shape[0] == plan.count else r.expand(plan.count, *r.shape) for r in plain(call, args, kwargs)
    ]
    if not (plan.replicas or plan.wide):
        return results
    noisy = _noisy_rows(call, args, kwargs, results, plan, source)
    for value, rows in zip(results, noisy, strict=True):
        value[plan.noisy_rows(call)] = rows.to(value.dtype)
    return results


def _noisy_rows(
    call: LaneCall, args: Any, kwargs: Any, results: list[Tensor], plan: LanePlan, source: NoiseSource
) -> list[Tensor]:
    rows, facts = plan.noisy_rows(call), call.facts
    inner, amplification, outer = _scales(call, plan, rows)
    args, kwargs = map_tensors(args, lambda t: t[rows]), map_tensors(kwargs, lambda t: t[rows])
    if facts.decomposition is not None:
        noisy = _decomposed(call, args, kwargs, source, inner)
    elif any(inner):
        perturbed = map_tensors(args, lambda t: source.perturb(t, inner))
        noisy = plain(call, perturbed, map_tensors(kwargs, lambda t: source.perturb(t, inner)))
        # acos(1), atanh(1): noise must not push an exact argument out of the domain
        noisy = [
            torch.where(torch.isfinite(value) == torch.isfinite(clean[rows]), value, clean[rows])
            for value, clean in zip(noisy, results, strict=True)
        ]
    else:
        noisy = [value[rows] for value in results]
    noisy = _round_noisily(call, noisy, source, amplification, outer)
    if facts.grid_exact:
        mask = _grid_mask(call, args, kwargs, [value[rows] for value in results])
        if mask is not None:
            noisy = [torch.where(mask, value[rows], n) for value, n in zip(results, noisy, strict=True)]
    return noisy


def _grid_mask(call: LaneCall, args: Any, kwargs: Any, clean: list[Tensor]) -> Tensor | None:
    """Return [1, *shape], where operands and result of one noisy row lie on the grid; None when nowhere.

    Not where parts of a gradient cancel: they may be added in another order, one that is not on the grid between them.
    """
    values = [t[:1] for t in [*clean, *tensors_in(args), *tensors_in(kwargs)]]
    if any(t.is_complex() for t in values):
        return None
    mask: Tensor | None = None
    for value in values:
        here = on_grid(value)
        mask = here if mask is None else mask & here
        if not bool(mask.any()):
            return None
    if mask is not None and call.facts.name == "add" and running_backward() >= 0:
        for part in tensors_in(args):
            mask = mask & (clean[0][:1].abs() >= part[:1].abs())
    return mask


def _decomposed(
    call: LaneCall, args: Any, kwargs: Any, source: NoiseSource, scale: Scale, sums: SumErrors | None = None
) -> list[Tensor]:
    assert call.facts.decomposition is not None
    args, kwargs, written = _with_copies(call.facts, args, kwargs)
    in_place = call.operator.name().partition(".")[0].endswith("_") and bool(written)
    let_references_run()  # most decompositions are references of torch's
    storage = times(scale, max(map(unit_roundoff, call.dtypes), default=0.0) / call.inner_roundoff)
    with storing(lambda value: source.perturb(value, storage)), NoisyArithmetic(source, scale, sums):
        result = call.facts.decomposition(*args, **kwargs)
    if in_place:  # the functional form was run: its result is the new value of the argument
        return [tensors_in(result)[0]]
    return fresh_results(result, written)


def _row(lanes: Tensor, row: int) -> Tensor:
    return lanes[row]


def _row_alone(lanes: Tensor, row: int) -> Tensor:
    """Return one lane on its own storage, with the real strides and offset, which as_strided refers to."""
    length = lanes.stride(0)
    if length == 0:
        return lanes[row].clone()
    storage = lanes.as_strided((length,), (1,), row * length).clone()
    return storage.as_strided(lanes.shape[1:], lanes.stride()[1:], lanes.storage_offset())


def _evaluate_apart(call: LaneCall, plan: LanePlan, source: NoiseSource) -> list[Tensor]:
    """Run any other operator lane by lane."""
    columns: list[list[Tensor]] = []
    inner, amplification, outer = _scales(call, plan, slice(0, plan.count))
    exact_sum = False
    sums = SumErrors()
    for row in range(plan.count):
        take = _row_alone if "as_strided" in call.facts.name else _row
        args = map_tensors(call.args, lambda t, row=row, take=take: take(t, row))
        kwargs = map_tensors(call.kwargs, lambda t, row=row: t[row])
        noiseless = not (amplification[row] or inner[row]) or exact_sum
        if noiseless:
            values = plain(call, args, kwargs)
        else:
            sums.next_lane()
            values = _noisy_lane(call, args, kwargs, source, (inner[row], amplification[row], outer), sums)
        if row == plan.exact and call.facts.summing and plan.noisy.start < plan.noisy.stop:
            clean = values if noiseless else plain(call, args, kwargs)
            exact_sum = grid_everywhere(call.facts, args, clean)
            values = clean if exact_sum else values
        columns.append(values)
    complete = call.facts.replacement is None
    return [
        _repeated_rows(real, plan.count) if _bookkeeping(call.facts, real) else _stacked(values, real)
        for values, real in zip(zip(*columns, strict=True), call.real, strict=complete)
    ]


def _bookkeeping(facts: OperatorFacts, real: Tensor) -> bool:
    """Return whether a result is a kernel's internal index table, whose form may depend on the dtype."""
    return "embedding_bag" in facts.name and not real.is_floating_point()


def _repeated_rows(real: Tensor, count: int) -> Tensor:
    return real.detach().unsqueeze(0).repeat(count, *[1] * real.dim())


def _stacked(values: tuple[Tensor, ...], real: Tensor) -> Tensor:
    if any(v.shape != real.shape for v in values):
        raise ValueError(f"a lane has shape {[tuple(v.shape) for v in values]}, eager {tuple(real.shape)}")
    return torch.stack([v.to(wide_dtype(real.dtype)).resolve_conj() for v in values])


def _noisy_lane(
    call: LaneCall,
    args: Any,
    kwargs: Any,
    source: NoiseSource,
    scales: tuple[float, float, list[float]],
    sums: SumErrors,
) -> list[Tensor]:
    facts, (inner, amplification, outer) = call.facts, scales
    if facts.decomposition is not None:
        values = _decomposed(call, args, kwargs, source, inner, sums)
    elif not inner:
        values = plain(call, args, kwargs)
    else:
        copied, copied_kwargs, written = _with_copies(facts, args, kwargs)
        noisy = (call.operator, facts, copied, copied_kwargs, source, inner, 0.0, sums)
        result = noisy_call(*noisy) if not written else None
        if result is None:
            perturbed = map_tensors(args, lambda t: source.perturb(t, inner))
            values = plain(call, perturbed, kwargs)
        else:
            values = tensors_in(result)
    return _round_noisily(call, values, source, amplification, outer)


def _round_noisily(
    call: LaneCall, values: list[Tensor], source: NoiseSource, amplification: Scale, outer: list[float]
) -> list[Tensor]:
    """Return results with the noise of rounding to their storage dtype; a conversion leaves alone what already fits."""
    perturbed = [
        _stored(value, real, source, times(amplification, roundoff)) if roundoff else value
        for value, roundoff, real in zip(values, outer, call.real, strict=False)
    ]
    if not call.facts.converting:
        return perturbed
    return [
        torch.where(value.to(real.dtype) == value, value, other)
        for value, other, real in zip(values, perturbed, call.real, strict=False)
    ]


def _stored(value: Tensor, real: Tensor, source: NoiseSource, scale: Scale) -> Tensor:
    """Return results with the noise of storing them; half-precision ones too small for all digits have one of theirs.

    That one is the same for each size.
    """
    value = source.perturb(value, scale)
    if real.dtype is not torch.float16 or not value.is_floating_point():
        return value
    tiny = torch.finfo(torch.float16).tiny
    rounded = (value.abs() < tiny) & (value.to(torch.float16) != value)
    if not bool(rounded.any()):
        return value
    return source.add(value, rounded.to(value.dtype) * tiny, scale)


__all__ = ["LaneCall", "LanePlan", "evaluate", "fresh_results", "plain"]
