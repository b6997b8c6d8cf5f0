"""Change anything reachable from a frame between calls: compiled is eager, and compiles no more than it must."""

import random

import pytest

from plumbline.compiler.frontend.context.guard_list import GuardList
from plumbline.fuzz.guard_scenarios.guard_slots import SLOTS
from plumbline.fuzz.guard_scenarios.scenarios import Scenario, ScenarioEvent, UsedSlot, scenarios
from support.guard_play import Played, play

CALL = ScenarioEvent()


def unwanted_compilations(scenario: Scenario, played: Played) -> list[str]:
    """Return the calls that compiled in a state met before, or after a change of what nothing reads."""
    if not scenario.settled:
        return []
    found = []
    for number, compilations in enumerate(played.compilations):
        before = [read for read in played.read[:number] if read == played.read[number]]
        if compilations and before:
            found.append(f"call {number} in state {played.states[number]} compiled again: {played.reasons}")
    return found


def history(name: str, way: int) -> Scenario:
    """Return a scenario that visits every value of a slot, comes back each time, and visits all of them again."""
    events = [CALL, CALL]
    for value in range(1, len(SLOTS[name].values)):
        events += [ScenarioEvent(name, value), CALL, ScenarioEvent(name, 0), CALL]
    for value in range(len(SLOTS[name].values)):
        events += [ScenarioEvent(name, value), CALL]
    return Scenario((UsedSlot(name, way),), tuple(events))


WAYS = [(name, way) for name, slot in SLOTS.items() for way in range(-1, len(slot.reads))]


@pytest.mark.parametrize(("name", "way"), WAYS, ids=[f"{name}-{'unread' if way < 0 else way}" for name, way in WAYS])
def test_every_value_of_every_place(name: str, way: int) -> None:
    scenario = history(name, way)
    played = play(scenario)
    assert not played.wrong
    assert not unwanted_compilations(scenario, played)


@pytest.mark.parametrize("name", [name for name, slot in SLOTS.items() if not slot.moving and not slot.always])
def test_unread_places_are_not_guarded(name: str) -> None:
    played = play(history(name, -1))
    if name != "argument_tensor":  # its metadata are those of every operation
        assert sum(played.compilations[1:]) == 0, played.reasons


@pytest.mark.parametrize("seed", range(400))
def test_random_histories(seed: int) -> None:
    scenario = scenarios(random.Random(seed), judged=False)
    played = play(scenario, recompile_limit=64)
    assert not played.wrong
    assert not unwanted_compilations(scenario, played)


@pytest.mark.parametrize("name", ["global_number", "method_reached_by_super", "special_method_added_bool"])
def test_a_dropped_guard_is_noticed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """With every condition on what the slot holds left out, the history goes wrong."""
    honest = GuardList.add

    def forgetful(self, source, kind, expected, others=()):  # type: ignore[no-untyped-def]  # as the original
        if kind.name != "MEMBER" and (source is None or "SCALE" not in source.words()):
            honest(self, source, kind, expected, others)

    monkeypatch.setattr(GuardList, "add", forgetful)
    assert play(history(name, 0)).wrong
