"""A failing example made smaller: greedy, by the variants that its fuzzer offers, as long as it fails alike."""

import itertools
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from .findings import TrialResult

TryAll = Callable[[Sequence[Any]], Sequence[TrialResult]]
Simpler = Callable[[Any], Iterable[Any]]


@dataclass(slots=True)
class ShrinkBudget:
    """How much one failure may cost. tries: used up so far are in `used`.  seconds: of wall time from now on."""

    tries: int
    seconds: float
    used: int = 0
    started: float = field(default_factory=time.monotonic)

    @property
    def left(self) -> int:
        """Return how many tries are left."""
        return max(0, self.tries - self.used)

    def spent(self) -> bool:
        """Return whether nothing more may be tried."""
        return self.used >= self.tries or time.monotonic() - self.started > self.seconds


def shrink(
    trial: TrialResult,
    attempt: TryAll,
    simpler: Simpler,
    budget: ShrinkBudget,
    keep: Callable[[TrialResult], None],
    *,
    at_once: int = 1,
) -> TrialResult:
    """Return the smallest failing trial found; keep: called with each improvement, so that an interrupt loses nothing.

    Variants that were tried are not tried again. After an improvement the search goes on at the same place among the
    variants of the smaller example; it ends with a pass through all of them that finds nothing.
    at_once: variants that are tried side by side; what is found, and the tries that count, do not depend on it: trials
    behind the first that fails alike are forgotten.
    """
    seen = {trial.example}
    start = 0
    while not budget.spent():
        untried = _untried(trial.example, simpler, start, seen)
        while not budget.spent() and (some := list(itertools.islice(untried, min(at_once, budget.left)))):
            found = _first_alike(trial, some, attempt, seen, budget)
            if found is not None:
                trial, start = found
                keep(trial)
                break
        else:
            if not start:
                break
            start = 0
    return trial


def _untried(example: Any, simpler: Simpler, start: int, seen: set[Any]) -> Iterator[tuple[int, Any]]:
    """Yield the variants of an example from a place on, each with its place; none that was seen, and none twice."""
    taken = set()
    for position, smaller in enumerate(simpler(example)):
        if position >= start and smaller not in seen and smaller not in taken:
            taken.add(smaller)
            yield position, smaller


def _first_alike(
    trial: TrialResult, some: list[tuple[int, Any]], attempt: TryAll, seen: set[Any], budget: ShrinkBudget
) -> tuple[TrialResult, int] | None:
    """Try some variants; return the result of the first that fails alike, and its place."""
    for (position, smaller), again in zip(some, attempt([smaller for _, smaller in some]), strict=True):
        seen.add(smaller)
        budget.used += 1
        if same_failure(again, trial):
            return again, position
    return None


def same_failure(one: TrialResult, other: TrialResult) -> bool:
    """Return whether two trials fail in the same way, whatever their examples are made of."""
    return one.signature is not None and other.signature is not None and one.signature.same_failure(other.signature)
