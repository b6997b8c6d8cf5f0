"""State of the whole process compared: random generators modes of torch and other switches."""

from collections.abc import Iterator

from ..state.process_state import ProcessState
from ..state.random_state import RandomState
from .matching import AFTER_ALL, Difference, MatchedOutcomes


def generator_differences(outcomes: MatchedOutcomes) -> Iterator[Difference]:
    """Yield the random generators whose state after the call is not eager's."""
    eager, actual = (outcome.observed["rng"] for outcome in (outcomes.eager, outcomes.actual))
    assert isinstance(eager, RandomState)
    assert isinstance(actual, RandomState)
    for generator in eager.differences(actual):
        yield Difference(AFTER_ALL, generator, "is in another state after the call than after eager's")


def process_differences(outcomes: MatchedOutcomes) -> Iterator[Difference]:
    """Yield the modes of torch and other state of the process that are not as after eager."""
    eager, actual = (outcome.observed["python"] for outcome in (outcomes.eager, outcomes.actual))
    assert isinstance(eager, ProcessState)
    assert isinstance(actual, ProcessState)
    for name, sentence in eager.differences(actual, outcomes.eager.variables):
        yield Difference(AFTER_ALL, name, sentence)
