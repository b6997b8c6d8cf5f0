"""GuardTable: guards as steps over numbered slots, for the evaluator written in C.

A step fetches a value into the next slot or checks the value of one; values that several guards reach are fetched
once.  Steps stand in the order of the guards, so a check may rely on those before it.
"""

import math
import sys
import types
from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum

import torch

from ..base.torch_facts import state_parts
from ..values.guard import ABSENT, PLAIN, Guard, Kind, Member, TensorFacts
from ..values.source import Argument, Attribute, Injected, Item, Source


class Op(IntEnum):
    """What a step does; the numbers reach the C text by name.  Fetches come first."""

    CONSTANT = 0  # the operand itself
    ATTRIBUTE = 1  # value.operand
    NAMESPACE = 2  # value.__dict__, of a plain namespace
    ITEM = 3  # value[operand]
    CELL = 4  # value.cell_contents
    FETCH = 5  # operand(value)
    TYPE = 6  # type(value) is operand
    IDENTITY = 7  # value is operand
    EQUALS = 8  # of operand's type and equal; zeros by sign, NaN to NaN
    LENGTH = 9  # len(value) == result
    KEYS = 10  # the keys, in order, are extra; operand(value) where that is no exact dict
    HAS_KEY = 11  # operand in value
    LACKS_KEY = 12  # operand not in value
    EMPTY_ITEMS = 13  # value[name] is false for every name in operand
    CODE = 14  # value.__code__ is operand or equal to it
    TENSOR = 15  # a tensor of type extra with the metadata; operand(value) where that is not plain to see
    TRUTH = 16  # bool(value) == result
    HAS_ATTRIBUTE = 17  # hasattr(value, operand) == result
    SAME_AS = 18  # value is what slot `result` holds
    DISTINCT = 19  # the slots in operand hold different objects
    STATE = 20  # operand() == extra
    MEMBER = 21  # the MRO of value has extra under operand, a name or (name, after); result 1: nothing, 2: plain data
    PYTHON = 22  # operand(value, *what the slots in extra hold)


LAST_FETCH = Op.FETCH
GUARD_ERRORS = (  # of a check: a miss
    AttributeError,
    KeyError,
    IndexError,
    TypeError,
    ValueError,
    RuntimeError,
    ArithmeticError,
)
Metadata = tuple[int, int, int, int, int, int, tuple[int, ...]]
Describe = Callable[[TensorFacts], Metadata | None]


@dataclass(frozen=True, slots=True, eq=False)
class Step:
    """One row: value is the slot looked at; result a number that the operation needs.

    metadata: of a tensor, in torch's numbers, for the C evaluator.
    """

    op: Op
    value: int
    result: int = 0
    operand: object = None
    extra: object = None
    metadata: Metadata | None = None

    def row(self) -> tuple[object, ...]:
        """Return the plain tuple that the C evaluator reads."""
        return (int(self.op), self.value, self.result, self.operand, self.extra, self.metadata)


@dataclass(frozen=True, slots=True, eq=False)
class GuardTable:
    """The steps; arguments fill the first slots; places: the slot of every source that was fetched."""

    arguments: int
    slots: int
    steps: tuple[Step, ...]
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
            constants = _Constants()
            text = self._guard.check("value", names, constants.inject)
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
            constants = _Constants()
            self._run = constants.function(f"lambda base: {self._source.text('base', constants.inject)}")
        return self._run(base)


class _Constants(dict[str, object]):
    """The globals of a check that is compiled alone; conditions on sizes may take roots."""

    def __init__(self) -> None:
        self["math"] = math

    def inject(self, value: object) -> str:
        name = f"_k{len(self)}"
        self[name] = value
        return name

    def function(self, text: str) -> Callable[..., object]:
        made: Callable[..., object] = eval(compile(text, "<plumbline guard>", "eval"), self)
        return made


def guard_table(guards: tuple[Guard, ...], parameters: list[str], describe: Describe) -> GuardTable:
    """Return the steps that check the guards in order; describe: what a tensor's metadata is in torch's numbers."""
    builder = _Builder(parameters, describe)
    for guard in guards:
        builder.add(guard)
    return GuardTable(len(parameters), builder.slots, tuple(builder.steps), builder.places)


class _Builder:
    def __init__(self, parameters: list[str], describe: Describe) -> None:
        self.arguments = {name: slot for slot, name in enumerate(parameters)}
        self.describe = describe
        self.slots = len(parameters)
        self.steps: list[Step] = []
        self.places: dict[Source, int] = {}
        self.kinds: dict[int, type] = {}  # the exact type that a slot is known to hold here

    def place(self, source: Source) -> int:
        if isinstance(source, Argument):
            return self.arguments[source.name]
        slot = self.places.get(source)
        if slot is None:
            base = source.base()
            self.steps.append(self._fetch(source, -1 if base is None else self.place(base)))
            slot = self.places[source] = self.slots
            self.slots += 1
        return slot

    def _fetch(self, source: Source, base: int) -> Step:
        if isinstance(source, Injected):
            return Step(Op.CONSTANT, base, operand=source.value)
        if isinstance(source, Attribute):
            name = sys.intern(source.name)
            if name == "__dict__" and base in self.kinds and has_plain_namespace(self.kinds[base]):
                return Step(Op.NAMESPACE, base)
            return Step(Op.CELL if name == "cell_contents" else Op.ATTRIBUTE, base, operand=name)
        if isinstance(source, Item):
            key = sys.intern(source.key) if type(source.key) is str else source.key
            return Step(Op.ITEM, base, operand=key)
        return Step(Op.FETCH, base, operand=PythonFetch(source))

    def add(self, guard: Guard) -> None:
        value = -1 if guard.source is None else self.place(guard.source)
        others = tuple(self.place(other) for other in guard.others)
        if guard.kind is Kind.TYPE:
            assert isinstance(guard.expected, type)
            self.kinds[value] = guard.expected
        rule = _RULES.get(guard.kind)
        steps = rule(self, guard, value, others) if rule is not None else None
        self.steps += steps or [Step(Op.PYTHON, value, operand=PythonCheck(guard), extra=others)]


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
_Rule = Callable[[_Builder, Guard, int, tuple[int, ...]], list[Step] | None]  # None: ask Python


def _keys(_: _Builder, guard: Guard, value: int, __: tuple[int, ...]) -> list[Step] | None:
    keys = guard.expected
    assert isinstance(keys, tuple)
    if any(type(key) is not str for key in keys):
        return None
    return [Step(Op.KEYS, value, operand=PythonCheck(guard), extra=tuple(map(sys.intern, keys)))]


def _equals(_: _Builder, guard: Guard, value: int, __: tuple[int, ...]) -> list[Step] | None:
    return None if type(guard.expected) is complex else [Step(Op.EQUALS, value, operand=guard.expected)]


def _tensor(builder: _Builder, guard: Guard, value: int, _: tuple[int, ...]) -> list[Step] | None:
    facts = guard.expected
    assert isinstance(facts, TensorFacts)
    metadata = builder.describe(facts)
    return metadata and [Step(Op.TENSOR, value, 0, PythonCheck(guard), facts.kind, metadata)]


def _state(_: _Builder, guard: Guard, __: int, ___: tuple[int, ...]) -> list[Step]:
    assert isinstance(guard.expected, tuple)
    function, expected = guard.expected
    parts = state_parts(function, expected)
    return [Step(Op.STATE, -1, type(value) in _IDENTITY_IS_EQUALITY, part, value) for part, value in parts]


_IDENTITY_IS_EQUALITY = (bool, int, str, type(None), torch.dtype, torch.device)


def _length(_: _Builder, guard: Guard, value: int, __: tuple[int, ...]) -> list[Step]:
    assert isinstance(guard.expected, int)
    return [Step(Op.LENGTH, value, guard.expected)]


def _attribute(_: _Builder, guard: Guard, value: int, __: tuple[int, ...]) -> list[Step]:
    return [Step(Op.HAS_ATTRIBUTE, value, guard.kind is Kind.HAS_ATTRIBUTE, guard.expected)]


def _member(_: _Builder, guard: Guard, value: int, __: tuple[int, ...]) -> list[Step]:
    member = guard.expected
    assert isinstance(member, Member)
    name = sys.intern(member.name)
    how = 1 if member.found is ABSENT else 2 if member.found is PLAIN else 0
    return [Step(Op.MEMBER, value, how, (name, member.after) if member.after else name, member.found)]


def _operand(op: Op) -> _Rule:
    return lambda _, guard, value, __: [Step(op, value, operand=guard.expected)]


_RULES: dict[Kind, _Rule] = {
    Kind.TYPE: _operand(Op.TYPE),
    Kind.IDENTITY: _operand(Op.IDENTITY),
    Kind.EQUALS: _equals,
    Kind.LENGTH: _length,
    Kind.KEYS: _keys,
    Kind.HAS_KEY: _operand(Op.HAS_KEY),
    Kind.LACKS_KEY: _operand(Op.LACKS_KEY),
    Kind.EMPTY_ITEMS: _operand(Op.EMPTY_ITEMS),
    Kind.MEMBER: _member,
    Kind.CODE: _operand(Op.CODE),
    Kind.TENSOR: _tensor,
    Kind.TRUTH: lambda _, guard, value, __: [Step(Op.TRUTH, value, bool(guard.expected))],
    Kind.HAS_ATTRIBUTE: _attribute,
    Kind.LACKS_ATTRIBUTE: _attribute,
    Kind.SAME_AS: lambda _, guard, value, others: [Step(Op.SAME_AS, value, others[0])],
    Kind.DISTINCT: lambda _, guard, value, others: [Step(Op.DISTINCT, -1, operand=others)],
    Kind.STATE: _state,
}
