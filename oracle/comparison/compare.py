"""Two outcomes of one call compared in every aspect.

Values are not judged here: every pair of tensors of equal form is handed on, with the aspect it belongs to.
"""

from collections.abc import Collection
from dataclasses import dataclass

from ..state.run_outcome import RunOutcome
from ..verdict import Finding
from .aspects import ASPECTS
from .compare_tensors import Pair, value_pairs
from .matching import match_outcomes


@dataclass(frozen=True, slots=True)
class OutcomeComparison:
    """Findings about everything but values, and the pairs whose values are still to be judged."""

    findings: tuple[Finding, ...]
    pairs: tuple[Pair, ...]


def compare(eager: RunOutcome, actual: RunOutcome, *, without: Collection[str] = ()) -> OutcomeComparison:
    """Compare two outcomes of the same call from the same state; without: aspects that are left out."""
    outcomes = match_outcomes(eager, actual)
    ranked = [
        (one.position, Finding(one.kind, aspect.name, one.where, one.sentence, may_round=one.may_round))
        for aspect in ASPECTS
        if aspect.outcomes is not None and aspect.name not in without
        for one in aspect.outcomes(outcomes)
    ]
    ranked.sort(key=lambda entry: entry[0])  # stable: at one place, in the order of the table
    return OutcomeComparison(tuple(finding for _, finding in ranked), tuple(value_pairs(outcomes)))
