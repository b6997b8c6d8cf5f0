"""State of the whole process compared: random generators and the switches of torch."""

from collections.abc import Iterator

from ..state.random_state import RandomState
from ..state.torch_switches import TorchSwitches
from .matching import AFTER_ALL, Difference, MatchedOutcomes


def generator_differences(outcomes: MatchedOutcomes) -> Iterator[Difference]:
    """Yield the random generators whose state after the call is not eager's."""
    eager, actual = (outcome.observed["rng"] for outcome in (outcomes.eager, outcomes.actual))
    assert isinstance(eager, RandomState)
    assert isinstance(actual, RandomState)
    for generator in eager.differences(actual):
        yield Difference(AFTER_ALL, generator, "is in another state after the call than after eager's")


def switch_differences(outcomes: MatchedOutcomes) -> Iterator[Difference]:
    """Yield a difference when grad mode, default dtype or determinism are not as after eager."""
    eager, actual = (outcome.observed["python"] for outcome in (outcomes.eager, outcomes.actual))
    assert isinstance(eager, TorchSwitches)
    assert isinstance(actual, TorchSwitches)
    if eager != actual:
        yield Difference(AFTER_ALL, "torch modes", f"after the call: {actual}; after eager's: {eager}")
