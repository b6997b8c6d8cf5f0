"""A guard scenario as plain data: a function that reads some state, and a sequence of changes and calls."""

import random
from dataclasses import dataclass, replace
from typing import Any

from plumbline.compiler.base.errors import UserError

from ..generated_source import functions_of
from . import class_slots, torch_slots  # noqa: F401 - fill SLOTS
from .guard_slots import BASES, PARAMETERS, SLOTS

MOST_SLOTS = 4
MOST_EVENTS = 10


@dataclass(frozen=True, slots=True)
class UsedSlot:
    """A slot of the scenario. way: the number of the way in which the function reads it, -1 if it does not."""

    name: str
    way: int = 0


@dataclass(frozen=True, slots=True)
class ScenarioEvent:
    """A change of one slot to one of its values, or a call (no slot)."""

    slot: str = ""
    value: int = 0

    @property
    def text(self) -> str:
        """Return the statement of a change, empty for a call."""
        return SLOTS[self.slot].values[self.value] if self.slot else ""


@dataclass(frozen=True, slots=True)
class Scenario:
    """Slots, and the calls and changes in order."""

    slots: tuple[UsedSlot, ...]
    events: tuple[ScenarioEvent, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """Return what a signature mentions: the slots that are read and those that change."""
        changed = {event.slot for event in self.events if event.slot}
        return tuple(sorted({slot.name for slot in self.slots if slot.way >= 0} | changed))

    @property
    def read(self) -> tuple[str, ...]:
        """Return the slots on which the result depends; the argument and torch's modes always count."""
        always = {name for name, slot in SLOTS.items() if slot.always} | {"argument_tensor"}
        return tuple(slot.name for slot in self.slots if slot.way >= 0 or slot.name in always)

    @property
    def settled(self) -> bool:
        """Return whether calls leave the state as it is, so that a state can occur again."""
        return not any(SLOTS[slot.name].moving and slot.way >= 0 for slot in self.slots)

    def source(self) -> str:
        """Return the setup and the function as Python text that needs `torch`."""
        names = [slot.name for slot in self.slots]
        needed = dict.fromkeys(SLOTS[name].needs for name in names if SLOTS[name].needs)
        pieces = ["x = torch.arange(3.0)\n" + "\n".join(_plain_argument(name) for name in PARAMETERS[2:])]
        pieces += ["same = True", *(BASES[base] for base in needed)]
        pieces += [_setup(name) for name in names if name not in ("argument_tensor",)]
        lines = [f"def step({', '.join(PARAMETERS)}):", "total = x * 1"]
        for slot in self.slots:
            if slot.way >= 0:
                lines += SLOTS[slot.name].reads[slot.way].splitlines()
        return "\n\n".join([*pieces, "\n    ".join([*lines, "return total"])]) + "\n"

    def short_source(self) -> str:
        """Return the text for a script: without blank lines, and without definitions that the scenario does not use."""
        return "\n".join(line for line in self.source().splitlines() if line.strip()) + "\n"

    def namespace(self) -> dict[str, Any]:
        """Return new globals with every slot at its first value."""
        return functions_of(self.source())


def _plain_argument(name: str) -> str:
    return "number = 1" if name == "number" else f"{name} = None"


def _setup(name: str) -> str:
    slot = SLOTS[name]
    first = slot.values[0]
    return slot.setup if slot.setup == first else f"{slot.setup}\n{first}"


def scenarios(draw: random.Random, judged: bool = True, among: tuple[str, ...] = ()) -> Scenario:
    """Draw a scenario: one to four slots, some of them unread, and a history that begins and ends with a call.

    judged: only slots that the judge can rewind.  among: only these slots, if any are named.
    """
    drawn_from = sorted(name for name, slot in SLOTS.items() if slot.rewound or not judged)
    drawn_from = [name for name in drawn_from if not among or name in among]
    names = draw.sample(drawn_from, min(draw.randint(1, MOST_SLOTS), len(drawn_from)))
    slots = []
    for name in names:
        unread = draw.randint(0, 3) == 3
        slots.append(UsedSlot(name, -1 if unread else draw.randint(0, len(SLOTS[name].reads) - 1)))
    middle = [_drawn_event(draw, names) for _ in range(draw.randint(1, MOST_EVENTS))]
    return Scenario(tuple(slots), _tidied((ScenarioEvent(), *middle, ScenarioEvent())))


def _drawn_event(draw: random.Random, names: list[str]) -> ScenarioEvent:
    """Draw a call, or twice as often a change of one slot."""
    if draw.random() < 1 / 3:
        return ScenarioEvent()
    name = draw.choice(names)
    return ScenarioEvent(name, draw.randrange(len(SLOTS[name].values)))


def _tidied(events: tuple[ScenarioEvent, ...]) -> tuple[ScenarioEvent, ...]:
    """Drop every third call in a row: the second sees what the first left behind, a third sees no more."""
    tidied: list[ScenarioEvent] = []
    for event in events:
        if not event.slot and len(tidied) >= 2 and not tidied[-1].slot and not tidied[-2].slot:
            continue
        tidied.append(event)
    return tuple(tidied)


def simpler_scenarios(scenario: Scenario) -> list[Scenario]:
    """Return scenarios with one event or one slot less."""
    simpler = []
    for number in range(len(scenario.events)):
        events = scenario.events[:number] + scenario.events[number + 1 :]
        if events:
            simpler.append(replace(scenario, events=events))
    for slot in scenario.slots:
        rest = tuple(other for other in scenario.slots if other != slot)
        events = tuple(event for event in scenario.events if event.slot != slot.name)
        if rest and events:
            simpler.append(Scenario(rest, events))
    return simpler


def check_scenario(scenario: Scenario) -> None:
    """Raise UserError for data that names slots, ways or values which this version does not have."""
    fits = all(slot.name in SLOTS and -1 <= slot.way < len(SLOTS[slot.name].reads) for slot in scenario.slots)
    names = {slot.name for slot in scenario.slots}
    fits = fits and all(
        not event.slot or (event.slot in names and 0 <= event.value < len(SLOTS[event.slot].values))
        for event in scenario.events
    )
    if not fits or not scenario.slots:
        hint = "run the fuzzer again"
        raise UserError("the saved scenario does not fit this version", why="unknown slot or value", hint=hint)
