"""A failing example made smaller: greedy, by the variants that its fuzzer offers, as long as it fails alike."""

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from .findings import TrialResult

Try = Callable[[Any], TrialResult]
Simpler = Callable[[Any], Iterable[Any]]


@dataclass(slots=True)
class ShrinkBudget:
    """How much one failure may cost. tries: used up so far are in `used`.  seconds: of wall time from now on."""

    tries: int
    seconds: float
    used: int = 0
    started: float = field(default_factory=time.monotonic)

    def spent(self) -> bool:
        """Return whether nothing more may be tried."""
        return self.used >= self.tries or time.monotonic() - self.started > self.seconds


def shrink(
    trial: TrialResult, attempt: Try, simpler: Simpler, budget: ShrinkBudget, keep: Callable[[TrialResult], None]
) -> TrialResult:
    """Return the smallest failing trial found; keep: called with each improvement, so that an interrupt loses nothing.

    Variants that were tried are not tried again. After an improvement the search goes on at the same place among the
    variants of the smaller example; it ends with a pass through all of them that finds nothing.
    """
    seen = {trial.example}
    start = 0
    while not budget.spent():
        for position, smaller in enumerate(simpler(trial.example)):
            if position < start or smaller in seen:
                continue
            if budget.spent():
                break
            seen.add(smaller)
            budget.used += 1
            again = attempt(smaller)
            if same_failure(again, trial):
                trial, start = again, position
                keep(trial)
                break
        else:
            if not start:
                break
            start = 0
    return trial


def same_failure(one: TrialResult, other: TrialResult) -> bool:
    """Return whether two trials fail in the same way, whatever their examples are made of."""
    return one.signature is not None and other.signature is not None and one.signature.same_failure(other.signature)
