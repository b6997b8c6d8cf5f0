"""GuardTable: guards as steps over numbered slots, for the evaluator written in C.

A step fetches a value into the next slot or checks the value of one; values that several guards reach are fetched
once.  Steps stand in the order of the guards, so a check may rely on those before it.
"""

import dataclasses
import functools
import sys
import types
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from ...base.bisecting.applications import Gate, place_of_code
from ...values.guard import Guard, GuardKind
from ...values.source import Argument, Attribute, Injected, Item, Source
from .guard_rules import RULE_OF_KIND, check_text, guard_words
from .rule import CHECK_NAMES, CheckSlots
from .steps import GuardStep, StepOp


@dataclass(frozen=True, slots=True, eq=False)
class GuardTable:
    """The steps; arguments fill the first slots; places: the slot of every source that was fetched."""

    arguments: int
    slots: int
    steps: tuple[GuardStep, ...]
    places: dict[Source, int]


class PythonCheck:
    """A guard's own Python check as a function (value, *others) -> bool, made when it is first asked."""

    __slots__ = ("_guard", "_run")

    def __init__(self, guard: Guard) -> None:
        self._guard = guard
        self._run: Callable[..., object] | None = None

    def __call__(self, value: object, *others: object) -> bool:
        """Return whether the guard holds."""
        if self._run is None:
            names = tuple(f"other{position}" for position in range(len(others)))
            constants = _CheckConstants()
            text = check_text(self._guard, "value", names, constants.inject)
            self._run = constants.function(f"lambda {', '.join(('value', *names))}: {text}")
        return bool(self._run(value, *others))


class PythonFetch:
    """What a source does to its base as a function base -> value, made when it is first asked."""

    __slots__ = ("_run", "_source")

    def __init__(self, source: Source) -> None:
        self._source = source
        self._run: Callable[..., object] | None = None

    def __call__(self, base: object) -> object:
        """Return the value."""
        if self._run is None:
            constants = _CheckConstants()
            self._run = constants.function(f"lambda base: {self._source.text('base', constants.inject)}")
        return self._run(base)


class _CheckConstants(dict[str, object]):
    """The globals of a check that is compiled alone."""

    def __init__(self) -> None:
        super().__init__(CHECK_NAMES)

    def inject(self, value: object) -> str:
        name = f"_k{len(self)}"
        self[name] = value
        return name

    def function(self, text: str) -> Callable[..., object]:
        check: Callable[..., object] = eval(compile(text, "<plumbline guard>", "eval"), self)
        return check


def guard_table(guards: tuple[Guard, ...], parameters: list[str], gate: Gate | None = None) -> GuardTable:
    """Return the steps that check the guards in order; gate: asked for each guard that has steps of its own."""
    builder = _GuardTableBuilder(parameters, gate)
    for guard in guards:
        builder.add(guard)
    return GuardTable(len(parameters), builder.slots, tuple(builder.steps), builder.places)


class _GuardTableBuilder:
    def __init__(self, parameters: list[str], gate: Gate | None) -> None:
        self.gate = gate
        self.arguments = {name: slot for slot, name in enumerate(parameters)}
        self.slots = len(parameters)
        self.steps: list[GuardStep] = []
        self.places: dict[Source, int] = {}
        self.kinds: dict[int, type] = {}  # the exact type that a slot is known to hold here
        self.of_classes: dict[Source, int] = {}  # a known class -> its step, which has all that is asked of its names

    def place(self, source: Source) -> int:
        if isinstance(source, Argument):
            return self.arguments[source.name]
        slot = self.places.get(source)
        if slot is None:
            base = source.base()
            self.steps.append(_fetch(source, -1 if base is None else self.place(base), self.kinds))
            slot = self.places[source] = self.slots
            self.slots += 1
        return slot

    def add(self, guard: Guard) -> None:
        if (
            guard.kind is GuardKind.MEMBER
            and isinstance(guard.source, Injected)
            and isinstance(guard.source.value, type)
        ):
            self.add_member(guard, guard.source)
            return
        value = -1 if guard.source is None else self.place(guard.source)
        others = tuple(self.place(other) for other in guard.others)
        if guard.kind is GuardKind.TYPE:
            self.kinds[value] = guard.expected
        slots = CheckSlots(value, others, PythonCheck(guard))
        rule = RULE_OF_KIND[guard.kind]
        steps = rule.steps(guard, slots) if rule.steps is not None else None
        if steps and self.gate is not None and not _may_be_steps(guard, self.gate):
            steps = None
        self.steps += steps or [GuardStep(StepOp.PYTHON, value, operand=slots.python_check, extra=others)]

    def add_member(self, guard: Guard, source: Injected) -> None:
        """Add to the step of a class: as long as the class is as it was, one look is enough for all its names."""
        rule = RULE_OF_KIND[guard.kind]
        assert rule.steps is not None
        asked = rule.steps(guard, CheckSlots(-1, (), PythonCheck(guard)))
        rows = tuple((step.operand, step.result, step.extra) for step in asked or ())
        position = self.of_classes.setdefault(source, len(self.steps))
        if position == len(self.steps):
            self.steps.append(GuardStep(StepOp.MEMBERS, -1, operand=source.value, extra=()))
        known = self.steps[position].extra
        assert isinstance(known, tuple)
        self.steps[position] = dataclasses.replace(self.steps[position], extra=(*known, *rows))


def _may_be_steps(guard: Guard, gate: Gate) -> bool:
    place, where = (
        guard.origin.place() if guard.origin is not None else "",
        place_of_code(RULE_OF_KIND[guard.kind].steps),
    )
    what = f"checked in C that {guard_words(guard)}"
    return gate.allows("guard", what, rule=guard.kind.name, where=where, place=place)


@functools.singledispatch
def _fetch(source: Source, base: int, kinds: Mapping[int, type]) -> GuardStep:
    """Return the step that fetches a source from the slot of its base; kinds: the exact types of slots, where known."""
    del kinds
    return GuardStep(StepOp.FETCH, base, operand=PythonFetch(source))


@_fetch.register
def _(source: Injected, base: int, kinds: Mapping[int, type]) -> GuardStep:
    del kinds
    return GuardStep(StepOp.CONSTANT, base, operand=source.value)


@_fetch.register
def _(source: Attribute, base: int, kinds: Mapping[int, type]) -> GuardStep:
    name = sys.intern(source.name)
    if name == "__dict__" and base in kinds and has_plain_namespace(kinds[base]):
        return GuardStep(StepOp.NAMESPACE, base)
    return GuardStep(StepOp.CELL if name == "cell_contents" else StepOp.ATTRIBUTE, base, operand=name)


@_fetch.register
def _(source: Item, base: int, kinds: Mapping[int, type]) -> GuardStep:
    del kinds
    key = sys.intern(source.key) if type(source.key) is str else source.key
    return GuardStep(StepOp.ITEM, base, operand=key)


def has_plain_namespace(kind: type) -> bool:
    """Return whether `__dict__` of instances is the dictionary in the object: no class says otherwise."""
    return (
        isinstance(_found(kind, "__dict__"), types.GetSetDescriptorType)
        and _found(kind, "__getattribute__") is object.__dict__["__getattribute__"]
        and all(base.__flags__ & _HEAP_TYPE or base.__dictoffset__ == 0 for base in kind.__mro__)
        and not issubclass(kind, type)
    )


def _found(kind: type, name: str) -> object:
    return next((vars(base)[name] for base in kind.__mro__ if name in vars(base)), None)


_HEAP_TYPE = 1 << 9
