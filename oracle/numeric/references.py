"""The float64 references of one call, run when first needed and no deeper than needed.

A tensor that differs in bits is judged at the first of these steps that decides it: by norm (gradients for a later
cotangent of a large call), by one float64 lane and the screen, by wide lanes where it is so far off that nothing else
is needed, by replicas (Monte-Carlo arithmetic) in light lanes, two where these are clear, else eight, and in full: the
same in lanes that miss no write, then every result rounded to its declared dtype.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import torch

from ..equal_memory import TensorDigest, digest_of
from ..judge_options import JudgeOptions
from ..noise.lanes import Lanes
from ..noise.light_lane import WIDE_LANE, LightLane
from ..verdict import ErrorStatistics, VerdictKind
from .bits import as_reals, equal_bits
from .element_places import positions
from .exact_value import ExactValue
from .full_lanes import DEPTHS, FullLanes, ShadowProgram
from .light_replicas import FollowedProgram, LightReplicas
from .screen import GROSS, KnownNoise, Screening, all_rounding, cancelled, screened, screened_by_norm
from .second_opinion import DOUBTFUL, MOST_NUMBERS, at_poles, in_heavy_tails
from .unseen_places import at_unseen_places
from .value_decision import FinalDecision, Need, OpenDecision, ValueDecision
from .value_judgement import judge_values

_ACCEPTED = (VerdictKind.EQUAL, VerdictKind.NOISE, VerdictKind.BETTER)
CLEAR_MARGIN = 0.5
"""A tensor of floats is accepted by few replicas where it passes by this margin.

Legitimate ones pass all replicas by 0.4 and less; that two of them are so much wider than all are that a fault passes,
too, has a chance of 2 % just beyond the margin, and of 1 in 10 000 half as far beyond again.
"""
WIDE_LANES, WIDE_ATTEMPTS = 2, 2
"""Lanes with wide noise that say how far rounding moves a tensor, where one is grossly off; tensors asked about."""
WIDE_MARGIN = 8.0
"""A gross error is this many times beyond what wide noise, itself that of eight roundings each, moves."""
CLEARLY_WRONG = 8.0
"""From this margin on a fault has been found, and the other tensors of a large call are said by eager's own error."""


@dataclass(slots=True)
class CallSources:
    """Where the references of a call come from.

    run: under shadow lanes, outputs (None) and gradients for cotangents in one run.  follow: the same beside a light
    lane; what it is given last takes gradients one by one, as soon as they are made.  restore: rewinds after `run`.
    cotangents: in the order they are judged; empty where there are no gradients.
    together: the kinds of backward that may be run on one graph.
    alike: the cotangents that are as large as the first one, element by element.
    large: the call is large enough for later cotangents to be judged by norm, and for gross errors to be said early.
    """

    run: ShadowProgram
    follow: FollowedProgram
    restore: Callable[[], None]
    cotangents: tuple[str, ...]
    together: tuple[str, ...] = ()
    alike: frozenset[str] = frozenset()
    large: bool = False


@dataclass(slots=True)
class _Known:
    """What the light runs have given so far; lanes of one cotangent are forgotten when the next one is judged.

    passed: the leaves whose gradients for the first cotangent the screen itself has accepted.
    """

    exact: dict[str | None, dict[str, ExactValue]] = field(default_factory=dict)
    eager: dict[str | None, dict[str, TensorDigest]] = field(default_factory=dict)
    noise: dict[str, KnownNoise] = field(default_factory=dict)
    passed: set[str] = field(default_factory=set)


Decided = dict[tuple[str, str | None, TensorDigest, TensorDigest], FinalDecision]
"""Decisions by path, cotangent, eager's numbers and the compiled ones."""


class References:
    """Judges the tensors of one call; keeps each shadow run for the tensors that follow.

    accepted: pairs of numbers that were accepted already, for the same program or for one with the same inputs.
    """

    def __init__(self, sources: CallSources, options: JudgeOptions, accepted: Decided | None = None) -> None:
        self.accepted: Decided = {} if accepted is None else accepted
        self._sources = sources
        self._options = options
        together = () if sources.large else sources.together
        self._replicas = LightReplicas(
            sources.follow, together, large=sources.large, number=options.replicas, seed=options.seed
        )
        self._full = FullLanes(sources.run, sources.restore, sources.together, options, large=sources.large)
        self._known = _Known()
        self._trusts_light = True
        self._found_gross = False
        self._found_wrong = False
        self._is_confirmed = False
        self._may_jump = False
        self._attempts = 0
        self.open = True  # False after the live run: its state cannot be rewound, so no reference can be run

    def decide(self, path: str, eager: torch.Tensor, actual: torch.Tensor, cotangent: str | None) -> FinalDecision:
        """Judge one tensor of the compiled run that differs in bits from eager's.

        path, cotangent: which tensor of the reference it is.
        """
        if self._sources.large:
            return self._decide(path, eager, actual, cotangent)
        key = (path, cotangent, digest_of(eager), digest_of(actual))
        known = self.accepted.get(key)
        if known is not None:
            return known
        decision = self._decide(path, eager, actual, cotangent)
        if not decision.kind.fails and self.open:
            self.accepted[key] = decision
        return decision

    def _decide(self, path: str, eager: torch.Tensor, actual: torch.Tensor, cotangent: str | None) -> FinalDecision:
        light = self._light(path, eager, actual, cotangent)
        if isinstance(light, torch.Tensor):
            light = self._by_light_replicas(path, eager, actual, light, cotangent) or light
        if isinstance(light, ValueDecision):
            return light
        floats = eager.is_floating_point() or eager.is_complex()
        for depth in DEPTHS:
            if depth == "few" and (not floats or light is not None):
                continue
            if depth == "exact" and light is not None:
                continue
            found = self._full.at(depth, path, cotangent, may_run=self.open, for_all=self._found_wrong)
            if found is None:
                break
            lanes, repeated = found
            decision = judge_values(actual, eager, lanes)
            if not equal_bits(repeated, eager):
                return _eager_differs(decision)
            kind, statistics, sentence = decision
            clear = kind in _ACCEPTED and statistics is not None and statistics.margin <= CLEAR_MARGIN
            unclear = depth == "few" and not clear
            if kind is VerdictKind.WRONG and not unclear and floats and self._is_doubtful(statistics, eager):
                again = self._asked_again(path, eager, actual, cotangent, lanes)
                self._is_confirmed = again is None
                kind, statistics, sentence = again or decision
            if not isinstance(kind, Need) and not unclear:
                far = statistics is not None and statistics.margin > CLEARLY_WRONG
                self._found_wrong |= kind is VerdictKind.WRONG
                self._found_gross |= kind is VerdictKind.WRONG and far
                return self._trusted(FinalDecision(kind, statistics, sentence), eager, actual)
        kind, statistics, sentence = judge_values(actual, eager, None)
        return FinalDecision(VerdictKind.NO_REFERENCE if isinstance(kind, Need) else kind, statistics, sentence)

    def _is_doubtful(self, statistics: ErrorStatistics | None, eager: torch.Tensor) -> bool:
        """Return whether more lanes may speak for a tensor that is wrong by those of before; in vain once a call."""
        if self._is_confirmed or self._sources.large or not self.open or eager.numel() > MOST_NUMBERS:
            return False
        return statistics is None or statistics.margin <= DOUBTFUL

    def _asked_again(
        self, path: str, eager: torch.Tensor, actual: torch.Tensor, cotangent: str | None, lanes: Lanes
    ) -> FinalDecision | None:
        """Judge a tensor by more lanes than those that call it wrong; None where it is wrong by these, too.

        Elements at poles or in heavy tails are judged no further; the noise of the others is measured anew.
        """
        if lanes.exact is None or lanes.replicas is None:
            return None
        further, eager, actual, open_ = self._full.further, as_reals(eager), as_reals(actual), 0
        decision = judge_values(actual, eager, lanes)
        if decision.statistics is None:
            poles = at_poles(lanes.exact, [lanes.replicas, *further(path, cotangent, stepped=True)])
            actual, open_ = torch.where(poles, eager, actual), int(poles.sum())
            decision = judge_values(actual, eager, lanes)
        if decision.kind is VerdictKind.WRONG and decision.statistics is not None:
            more = torch.cat([lanes.replicas, *further(path, cotangent, stepped=False)])
            tails = in_heavy_tails(actual, lanes.exact, more) | at_unseen_places(actual, lanes.exact, more)
            actual, open_ = torch.where(tails, eager, actual), open_ + int(tails.sum())
            decision = judge_values(actual, eager, replace(lanes, replicas=more))
        kind, statistics, sentence = decision
        if isinstance(kind, Need) or kind.fails:
            return None
        if not open_:
            return FinalDecision(kind, statistics, sentence)
        words = f"rounding decides {positions(open_)}, as more lanes show; elsewhere {sentence}"
        return FinalDecision(VerdictKind.NOISE, statistics, words)

    def prepare(self, cotangent: str) -> None:
        """Follow the first cotangent now, if it is to be followed: before the gradients to be judged are held."""
        first = cotangent == next(iter(self._sources.cotangents), None)
        if first and self._trusts_light and self.open and cotangent not in self._known.exact:
            self._follow(cotangent)

    def _light(
        self, path: str, eager: torch.Tensor, actual: torch.Tensor, cotangent: str | None
    ) -> FinalDecision | torch.Tensor | None:
        """Judge without replicas; the float64 value where these are needed, None where there is none."""
        large = self._sources.large
        left, right = as_reals(actual), as_reals(eager)
        noise = self._known.noise.get(path) if cotangent in self._sources.cotangents[1:] else None
        if noise is not None:
            alike = cotangent in self._sources.alike
            drowned = all_rounding(left, right, noise) if alike else None
            if drowned is not None:
                return drowned
            by_norm = screened_by_norm(left, right, noise, alike=alike) if large else None
            if by_norm is not None and by_norm.decision is not None:
                return by_norm.decision
            if by_norm is not None and self._found_gross and by_norm.ratio > GROSS:
                return _gross(by_norm, left, right, right, "eager's error for the first cotangent")
        kept = self._exact(path, cotangent)
        repeated = self._known.eager.get(cotangent, {}).pop(path, None)
        if kept is None or repeated is None or not repeated.has_numbers_of(eager):
            return None
        later = cotangent in self._sources.cotangents[1:] and path in self._known.passed
        found = screened(left, right, kept, later=later)
        own = KnownNoise(found.noise, found.eager_error)
        if cotangent is not None and noise is None:
            self._known.noise[path] = own
        decision = found.decision
        if decision is not None and cotangent == next(iter(self._sources.cotangents), None):
            self._known.passed.add(path)
        if decision is None and cancelled(own.relative, right.dtype):
            decision = all_rounding(left, right, own)
        if decision is not None:
            return decision
        exact = kept.value(eager)
        kind, statistics, sentence = judge_values(actual, eager, Lanes(exact=exact))
        if not isinstance(kind, Need):
            return FinalDecision(kind, statistics, sentence)
        gross = self._grossly_wrong(found, left, right, as_reals(exact), (path, cotangent)) if large else None
        return gross or exact

    def _by_light_replicas(
        self, path: str, eager: torch.Tensor, actual: torch.Tensor, exact: torch.Tensor, cotangent: str | None
    ) -> FinalDecision | None:
        """Accept a tensor by replicas in light lanes, two and then all; None where these do not accept it.

        Where a write has bypassed a lane, eager is far from it, which is never accepted here.
        """
        if not self.open or not (eager.is_floating_point() or eager.is_complex()):
            return None
        for replicas_of, largest in ((self._replicas.few, CLEAR_MARGIN), (self._replicas.all, 1.0)):
            replicas = replicas_of(path, cotangent)
            if replicas is None:
                return None
            kind, statistics, sentence = judge_values(actual, eager, Lanes(exact=exact, replicas=replicas))
            if statistics is None or statistics.margin > CLEARLY_WRONG:
                return None
            if not isinstance(kind, Need) and kind in _ACCEPTED and statistics.margin <= largest:
                return self._trusted(FinalDecision(kind, statistics, sentence), eager, actual)
        return None

    def _exact(self, path: str, cotangent: str | None) -> ExactValue | None:
        """Return the float64 value from the light lane, for once: it is forgotten here."""
        if not self._trusts_light:
            return None
        if cotangent not in self._known.exact:
            if not self.open:
                return None
            self._follow(cotangent)
        return self._known.exact.get(cotangent, {}).pop(path, None)

    def _follow(self, cotangent: str | None) -> None:
        """Run beside the exact light lane; the first cotangent's run gives outputs as well.

        In a small call one run gives the gradients for all later cotangents that may share a graph.
        """
        known, together = self._known, () if self._sources.large else self._sources.together
        lane = LightLane(seed=self._options.seed)
        first = cotangent if cotangent is not None else next(iter(self._sources.cotangents), None)
        wanted: tuple[str, ...] = () if first is None else (first,)
        if first in together:
            wanted = together[together.index(first) :]
        for gone in [key for key in known.exact if key is not None]:
            known.exact[gone].clear()
            known.eager[gone].clear()

        def keep(key: str | None, tensors: dict[str, torch.Tensor]) -> None:
            if key in known.exact and (key is None or len(wanted) > 1):
                return
            exact, eager = known.exact.setdefault(key, {}), known.eager.setdefault(key, {})
            if key is None:  # the program may still write to what it has returned, and its backward follows
                for path, tensor in tensors.items():
                    value = lane.lane_of(tensor)
                    if value is not None:
                        eager[path], exact[path] = digest_of(tensor), ExactValue(value.clone())
                return
            if len(wanted) > 1:  # a later backward may need the lanes of what this one has returned
                for path, tensor in tensors.items():
                    value = lane.lane_of(tensor)
                    if value is not None:
                        eager[path], exact[path] = digest_of(tensor), ExactValue.beside(tensor, value.clone())
                return
            for path, tensor, value in lane.drain(tensors):
                eager[path], exact[path] = digest_of(tensor), ExactValue.beside(tensor, value)

        def take(path: str, gradient: torch.Tensor) -> None:
            value = lane.lane_of(gradient)
            if value is not None and first is not None:
                known.eager.setdefault(first, {})[path] = digest_of(gradient)
                known.exact.setdefault(first, {})[path] = ExactValue.beside(gradient, value)

        self._sources.follow(lane, wanted, keep, take if self._sources.large else None)
        known.exact.setdefault(cotangent, {})
        known.eager.setdefault(cotangent, {})
        self._may_jump |= lane.may_jump
        if lane.untrusted or lane.unstable_control_flow:
            self._trusts_light = False

    def _grossly_wrong(
        self,
        found: Screening,
        actual: torch.Tensor,
        eager: torch.Tensor,
        exact: torch.Tensor,
        which: tuple[str, str | None],
    ) -> FinalDecision | None:
        """Return WRONG where a tensor is so far off that even wide noise never moves it there; None elsewhere.

        When one tensor was, the others are said by eager's own error: a fault upstream reaches all that follows.
        Where rounding may decide a branch, two lanes prove nothing.
        """
        if found.ratio <= GROSS or not self.open:
            return None
        if self._found_gross:
            return _gross(found, actual, eager, exact, "eager's own error")
        if self._may_jump or self._attempts >= WIDE_ATTEMPTS:
            return None
        self._attempts += 1
        error = (actual.double() - exact).abs()
        rms, largest = float(error.square().mean().sqrt()), float(error.max())
        reaches = [self._reach(*which, exact, number) for number in range(WIDE_LANES)]
        if any(
            reach is None or (rms <= WIDE_MARGIN * reach[0] and largest <= WIDE_MARGIN * reach[1]) for reach in reaches
        ):
            return None
        self._found_gross = True
        return _gross(found, actual, eager, exact, "eager's own error, and wide noise moves nothing there")

    def _reach(self, path: str, cotangent: str | None, exact: torch.Tensor, number: int) -> tuple[float, float] | None:
        """Return how far one wide lane is from the float64 value of a tensor: rms and the largest element."""
        lane = LightLane(WIDE_LANE, self._options.seed + number)
        found: list[tuple[float, float]] = []

        def take(which: str, tensor: torch.Tensor) -> None:
            value = lane.lane_of(tensor) if which == path and cotangent is not None else None
            if value is not None:
                apart = (as_reals(value) - exact).abs()
                found.append((float(apart.square().mean().sqrt()), float(apart.max())))

        def keep(key: str | None, tensors: dict[str, torch.Tensor]) -> None:
            value = lane.lane_of(tensors[path]) if key == cotangent and path in tensors else None
            if value is not None:
                apart = (as_reals(value) - exact).abs()
                found.append((float(apart.square().mean().sqrt()), float(apart.max())))

        self._sources.follow(lane, () if cotangent is None else (cotangent,), keep, take)
        return found[0] if found and not lane.untrusted else None

    def _trusted(self, decision: FinalDecision, eager: torch.Tensor, actual: torch.Tensor) -> FinalDecision:
        """Let only gross errors count when an operator had no float64 evaluation, and say so."""
        kind, statistics, sentence = decision
        if not self._full.reasons:
            return decision
        if not kind.fails:
            return FinalDecision(VerdictKind.NO_REFERENCE, statistics, f"{sentence} ({self._full.reasons[0]})")
        blind, _, words = judge_values(actual, eager, None)
        if isinstance(blind, VerdictKind) and blind.fails:
            return decision
        return FinalDecision(VerdictKind.NO_REFERENCE, statistics, f"{words} ({self._full.reasons[0]})")


def _gross(
    found: Screening, actual: torch.Tensor, eager: torch.Tensor, reference: torch.Tensor, whose: str
) -> FinalDecision:
    """Return WRONG for a tensor that is so many times eager's own error off, with its worst element.

    reference: the float64 values, eager's where these are not known.
    """
    error = (actual.double() - reference).abs()
    at = tuple(map(int, torch.unravel_index(error.argmax(), error.shape)))
    margin = found.ratio / GROSS
    statistics = ErrorStatistics(
        t_element=0.0,
        t_rms=margin,
        t_bias=0.0,
        margin=margin,
        worst_index=at,
        actual=float(actual[at]),
        eager=float(eager[at]),
        reference=float(reference[at]),
        error=float(error[at]),
        scale=found.eager_error,
    )
    words = f"{statistics.error:.2g} off at {list(at)} (eager {statistics.eager:.6g}, compiled {statistics.actual:.6g})"
    return FinalDecision(VerdictKind.WRONG, statistics, f"{words}: {found.ratio:.2g}x {whose}")


def _eager_differs(decision: OpenDecision) -> FinalDecision:
    """Eager gave two answers, and the compiled one may be a third: only what fits the noise can be accepted."""
    kind, statistics, sentence = decision
    if isinstance(kind, VerdictKind) and not kind.fails:
        return FinalDecision(kind, statistics, sentence)
    words = f"eager differs from itself in two runs from one state; {sentence}"
    return FinalDecision(VerdictKind.NO_REFERENCE, statistics, words)
