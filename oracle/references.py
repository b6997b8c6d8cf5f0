"""The float64 references of one call, made when first asked for and no deeper than needed.

Depths: `exact` (one float64 lane), `replicas` (Monte-Carlo arithmetic), `rounded` (every result rounded to its
declared dtype).  Most calls never leave bitwise equality, most others stop at `exact`.
"""

from collections.abc import Callable

import torch

from .lanes import Lanes
from .options import JudgeOptions
from .scale import Need, judge_values
from .shadow import ShadowRun
from .verdict import Kind, Numbers

Decision = tuple[Kind, Numbers | None, str]
ShadowProgram = Callable[[ShadowRun, str | None], dict[str, torch.Tensor]]

ROUNDED_LANES = 4
DEPTHS = ("exact", "replicas", "rounded")


class References:
    """Decides values of one call; keeps each shadow run for the pairs that come after."""

    def __init__(self, run: ShadowProgram, restore: Callable[[], None], options: JudgeOptions) -> None:
        self._run = run
        self._restore = restore
        self._options = options
        self._lanes: dict[tuple[str, str | None], dict[str, Lanes]] = {}
        self._eager: dict[str | None, dict[str, torch.Tensor]] = {}
        self.open = True  # False once the live run has happened: no reference can be made any more
        self.reasons: list[str] = []

    def decide(self, path: str, eager: torch.Tensor, actual: torch.Tensor, cotangent: str | None) -> Decision:
        """Judge one tensor of the compiled run; `path` and `cotangent` say which tensor of the reference it is."""
        if equal_bits(eager, actual):
            return Kind.EQUAL, None, "bitwise equal"
        for depth in DEPTHS:
            lanes = self._at(depth, cotangent).get(path)
            if lanes is None:
                break
            repeated = self._eager[cotangent].get(path)
            if repeated is not None and not equal_bits(repeated, eager):
                return _eager_differs(judge_values(actual, eager, lanes))
            kind, numbers, sentence = judge_values(actual, eager, lanes)
            if not isinstance(kind, Need):
                return self._trusted((kind, numbers, sentence), eager, actual)
        kind, numbers, sentence = judge_values(actual, eager, None)
        return (Kind.NO_REFERENCE if isinstance(kind, Need) else kind), numbers, sentence

    def _trusted(self, decision: Decision, eager: torch.Tensor, actual: torch.Tensor) -> Decision:
        """Say when a decision leans on an operator without a float64 meaning: then only gross errors count."""
        kind, numbers, sentence = decision
        if not self.reasons:
            return decision
        if not kind.fails:
            return Kind.NO_REFERENCE, numbers, f"{sentence} ({self.reasons[0]})"
        blind, _, words = judge_values(actual, eager, None)
        if isinstance(blind, Kind) and blind.fails:
            return decision
        return Kind.NO_REFERENCE, numbers, f"{words} ({self.reasons[0]})"

    def _at(self, depth: str, cotangent: str | None) -> dict[str, Lanes]:
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


def _eager_differs(decision: tuple[Kind | Need, Numbers | None, str]) -> Decision:
    """Eager itself gave two answers: the compiled one may be a third; only what fits the noise can be said."""
    kind, numbers, sentence = decision
    if isinstance(kind, Kind) and not kind.fails:
        return kind, numbers, sentence
    return Kind.NO_REFERENCE, numbers, f"eager differs from itself in two runs from one state; {sentence}"


def equal_bits(first: torch.Tensor, second: torch.Tensor) -> bool:
    """Return whether two tensors of equal shape and dtype hold the same bits (any NaN equals any NaN)."""
    with torch.no_grad():
        mine, theirs = first.detach().cpu().resolve_conj(), second.detach().cpu().resolve_conj()
        if mine.is_complex():
            mine, theirs = torch.view_as_real(mine), torch.view_as_real(theirs)
        if not mine.is_floating_point():
            return torch.equal(mine, theirs)
        both_nan = mine.isnan() & theirs.isnan()
        same = (mine == theirs) & (mine.signbit() == theirs.signbit())
        return bool((same | both_nan).all())
