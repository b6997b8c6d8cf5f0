"""The float64 references of one call, run when first needed and no deeper than needed.

Depths: `exact` (one float64 lane), `replicas` (Monte-Carlo arithmetic), `rounded` (every result rounded to its
declared dtype).  Most calls never leave bitwise equality, most others stop at `exact`.
"""

from collections.abc import Callable

import torch

from ..judge_options import JudgeOptions
from ..noise.lanes import Lanes
from ..noise.shadow import ShadowRun
from ..verdict import VerdictKind
from .bits import equal_bits
from .value_decision import FinalDecision, Need, OpenDecision
from .value_judgement import judge_values

ShadowProgram = Callable[[ShadowRun, str | None], dict[str, torch.Tensor]]

ROUNDED_LANES = 4
DEPTHS = ("exact", "replicas", "rounded")


class References:
    """Judges the tensors of one call; keeps each shadow run for the tensors that follow."""

    def __init__(self, run: ShadowProgram, restore: Callable[[], None], options: JudgeOptions) -> None:
        self._run = run
        self._restore = restore
        self._options = options
        self._lanes: dict[tuple[str, str | None], dict[str, Lanes]] = {}
        self._eager: dict[str | None, dict[str, torch.Tensor]] = {}
        self.open = True  # False after the live run: its state cannot be rewound, so no reference can be run
        self.reasons: list[str] = []

    def decide(self, path: str, eager: torch.Tensor, actual: torch.Tensor, cotangent: str | None) -> FinalDecision:
        """Judge one tensor of the compiled run that differs in bits from eager's.

        path, cotangent: which tensor of the reference it is.
        """
        for depth in DEPTHS:
            lanes = self._lanes_at(depth, cotangent).get(path)
            if lanes is None:
                break
            decision = judge_values(actual, eager, lanes)
            repeated = self._eager[cotangent].get(path)
            if repeated is not None and not equal_bits(repeated, eager):
                return _eager_differs(decision)
            kind, statistics, sentence = decision
            if not isinstance(kind, Need):
                return self._trusted(FinalDecision(kind, statistics, sentence), eager, actual)
        kind, statistics, sentence = judge_values(actual, eager, None)
        return FinalDecision(VerdictKind.NO_REFERENCE if isinstance(kind, Need) else kind, statistics, sentence)

    def _trusted(self, decision: FinalDecision, eager: torch.Tensor, actual: torch.Tensor) -> FinalDecision:
        """Let only gross errors count when an operator had no float64 evaluation, and say so."""
        kind, statistics, sentence = decision
        if not self.reasons:
            return decision
        if not kind.fails:
            return FinalDecision(VerdictKind.NO_REFERENCE, statistics, f"{sentence} ({self.reasons[0]})")
        blind, _, words = judge_values(actual, eager, None)
        if isinstance(blind, VerdictKind) and blind.fails:
            return decision
        return FinalDecision(VerdictKind.NO_REFERENCE, statistics, f"{words} ({self.reasons[0]})")

    def _lanes_at(self, depth: str, cotangent: str | None) -> dict[str, Lanes]:
        key = (depth, cotangent)
        if key not in self._lanes:
            if not self.open:
                return {}
            shadow = self._shadow(depth)
            tensors = self._run(shadow, cotangent)
            self._eager[cotangent] = {path: tensor.detach().clone() for path, tensor in tensors.items()}
            self._lanes[key] = {path: shadow.lanes_of(tensor) for path, tensor in tensors.items()}
            self.reasons.extend(shadow.untrusted[:3])
            self._restore()
        return self._lanes[key]

    def _shadow(self, depth: str) -> ShadowRun:
        replicas = self._options.replicas if depth != "exact" else 0
        rounded = ROUNDED_LANES if depth == "rounded" else 0
        return ShadowRun(exact=True, replicas=replicas, rounded=rounded, seed=self._options.seed)


def _eager_differs(decision: OpenDecision) -> FinalDecision:
    """Eager gave two answers, and the compiled one may be a third: only what fits the noise can be accepted."""
    kind, statistics, sentence = decision
    if isinstance(kind, VerdictKind) and not kind.fails:
        return FinalDecision(kind, statistics, sentence)
    words = f"eager differs from itself in two runs from one state; {sentence}"
    return FinalDecision(VerdictKind.NO_REFERENCE, statistics, words)
