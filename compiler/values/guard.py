"""Guard: a frozen condition on a Source, its check as Python text and its plain-words explanation."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

import torch

from ..base.origin import Origin
from .source import Inject, Source, shortened


class Kind(Enum):
    """What a guard demands of the value at its source; the value is the phrase used in explanations."""

    TYPE = "has type"
    IDENTITY = "is"
    EQUALS = "equals"
    LENGTH = "has length"
    KEYS = "has keys, in order"
    HAS_KEY = "has key"
    LACKS_KEY = "lacks key"
    EMPTY_ITEMS = "has nothing under"
    MEMBERS = "has members"
    MEMBER = "finds"
    ANSWER = "answers"
    CODE = "has code"
    TENSOR = "is a tensor like"
    TRUTH = "has truth value"
    HAS_ATTRIBUTE = "has attribute"
    LACKS_ATTRIBUTE = "lacks attribute"
    SAME_AS = "is the same object as"
    DISTINCT = "are distinct objects"
    STORAGES = "share storage as"
    STATE = "global state"
    EXPRESSION = "satisfies"


@dataclass(frozen=True, slots=True)
class TensorFacts:
    """The metadata of a tensor that a capture relied on; a size of None may vary.

    stride: in elements; None for layouts without strides.
    """

    kind: type
    dtype: torch.dtype
    device: torch.device
    shape: tuple[int | None, ...]
    stride: tuple[int | None, ...] | None
    requires_grad: bool
    bits: tuple[bool, bool, bool]  # conjugate, negative, inference
    leaf: bool = True

    def __str__(self) -> str:
        dtype = str(self.dtype).removeprefix("torch.")
        sizes = ", ".join("?" if size is None else str(size) for size in self.shape)
        gradient = ", requires_grad" if self.requires_grad else ""
        return f"{self.kind.__name__} {dtype}[{sizes}] on {self.device}{gradient}"


ABSENT = type("Absent", (), {"__repr__": lambda self: "nothing"})()
PLAIN = type("Plain", (), {"__repr__": lambda self: "a plain value"})()


@dataclass(frozen=True, slots=True, eq=False)
class Member:
    """What looking a name up in the classes of an MRO gave: ABSENT, PLAIN (no descriptor), or this very object.

    after: look only behind this class, as `super()` does; None for all of them.
    """

    name: str
    after: type | None
    found: object

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Member) and self._identities() == other._identities()

    def __hash__(self) -> int:
        return hash(self._identities())

    def _identities(self) -> tuple[str, int, int]:
        return (self.name, id(self.after), id(self.found))


def look_up(kind: type, name: str, after: type | None = None) -> tuple[type | None, object]:
    """Return (owner, raw attribute) of the first class in the MRO that has the name; (None, ABSENT) if none.

    Raises ValueError if `after` is not in the MRO.
    """
    mro = kind.__mro__
    start = mro.index(after) + 1 if after is not None else 0
    for owner in mro[start:]:
        if name in owner.__dict__:
            return owner, owner.__dict__[name]
    return None, ABSENT


def member_found(raw: object) -> object:
    """Return what a guard expects of a raw attribute: plain data is guarded where it is read, by its value."""
    by_identity = raw is ABSENT or raw is None or isinstance(raw, bool) or hasattr(type(raw), "__get__")
    return raw if by_identity else PLAIN


@dataclass(frozen=True, slots=True, eq=False)
class Answer:
    """What calling a function with known arguments gave."""

    args: tuple[object, ...]
    kwargs: dict[str, object]
    given: object

    def still_given(self, function: Callable[..., object]) -> bool:
        """Return whether it gives the same now: this object, or an equal number or text of the same type."""
        found, given = function(*self.args, **self.kwargs), self.given
        return found is given or (type(found) is type(given) and type(found) in _SCALARS and repr(found) == repr(given))


_SCALARS = (int, float, complex, str, bytes)


@dataclass(frozen=True, slots=True, eq=False)
class Guard:
    """A condition that must hold at entry for the compiled code to be used.

    source: None for global state.  expected: what the kind needs.  others: for relations between sources.
    """

    source: Source | None
    kind: Kind
    expected: object
    origin: Origin | None = None
    others: tuple[Source, ...] = ()

    def key(self) -> tuple[object, ...]:
        """Return what makes two guards the same check."""
        expected = self.expected
        try:
            hash(expected)
        except TypeError:
            expected = id(expected)
        return (self.source, self.kind, type(expected), repr(expected) if type(expected) is float else expected)

    def words(self) -> str:
        """Return the condition for people."""
        place = self.source.words() if self.source is not None else ""
        others = [other.words() for other in self.others]
        made = _WORDS.get(self.kind)
        if made is not None:
            return made(self.expected, place, others)
        return f"{place} {self.kind.value} {shortened(self.expected)}"

    def check(self, value: str, others: tuple[str, ...], inject: Inject) -> str:
        """Return a Python expression that is true if the guard holds; value: text of the source."""
        return _CHECKS[self.kind](self, value, others, inject)


def _member(guard: Guard, value: str, _: tuple[str, ...], inject: Inject) -> str:
    member = guard.expected
    assert isinstance(member, Member)
    after = f", {inject(member.after)}" if member.after is not None else ""
    found = f"{inject(look_up)}({value}, {member.name!r}{after})[1]"
    if member.found is PLAIN:
        return f"{inject(member_found)}({found}) is {inject(PLAIN)}"
    return f"{found} is {inject(member.found)}"


def _equals(guard: Guard, value: str, _: tuple[str, ...], inject: Inject) -> str:
    expected = guard.expected
    kind = f"type({value}) is {inject(type(expected))}"
    if type(expected) is float:
        if math.isnan(expected):
            return f"{kind} and {value} != {value}"
        if expected == 0:
            sign = f"{inject(math.copysign)}(1.0, {value}) == {math.copysign(1.0, expected)}"
            return f"{kind} and {value} == 0.0 and {sign}"
        return f"{kind} and {value} == {inject(expected)}"
    if type(expected) in (int, str) and len(repr(expected)) < 200:
        return f"{kind} and {value} == {expected!r}"
    if type(expected) is complex:
        return f"{kind} and {inject(repr)}({value}) == {repr(expected)!r}"
    return f"{kind} and {value} == {inject(expected)}"


def _tensor(guard: Guard, value: str, _: tuple[str, ...], inject: Inject) -> str:
    facts = guard.expected
    assert isinstance(facts, TensorFacts)
    parts = [
        f"type({value}) is {inject(facts.kind)}",
        f"{value}.dtype is {inject(facts.dtype)}",
        f"{value}.device == {inject(facts.device)}",
        f"{value}.requires_grad is {facts.requires_grad}",
    ]
    parts.append(_sizes(f"{value}.shape", facts.shape, inject))
    if facts.stride is not None:
        parts.append(_sizes(f"{value}.stride()", facts.stride, inject))
    else:
        parts.append(f"{value}.layout is not {inject(torch.strided)}")
    conjugate, negative, inference = facts.bits
    if facts.dtype.is_complex:
        parts.append(f"{value}.is_conj() is {conjugate}")
    if negative or facts.dtype.is_floating_point or facts.dtype.is_complex:
        parts.append(f"{value}.is_neg() is {negative}")
    parts.append(f"{value}.is_inference() is {inference}")
    if facts.requires_grad:
        parts.append(f"{value}.is_leaf is {facts.leaf}")
    return " and ".join(parts)


def _sizes(value: str, sizes: tuple[int | None, ...], inject: Inject) -> str:
    known: list[int] = [size for size in sizes if size is not None]
    if len(known) == len(sizes):
        return f"{value} == {inject(tuple(known))}"
    checks = [f"len({value}) == {len(sizes)}"]
    checks += [f"{value}[{position}] == {size}" for position, size in enumerate(sizes) if size is not None]
    return " and ".join(checks)


def _keys(guard: Guard, value: str, _: tuple[str, ...], inject: Inject) -> str:
    keys = guard.expected
    assert isinstance(keys, tuple)
    if all(type(key) is str for key in keys):
        return f"{inject(tuple)}({value}) == {inject(keys)}"
    kinds = tuple(type(key) for key in keys)
    return (
        f"{inject(tuple)}({inject(map)}({inject(type)}, {value})) == {inject(kinds)}"
        f" and {inject(tuple)}({value}) == {inject(keys)}"
    )


def _empty_items(guard: Guard, value: str, _: tuple[str, ...], inject: Inject) -> str:
    keys = guard.expected
    assert isinstance(keys, tuple)
    return f"not ({' or '.join(f'{value}[{key!r}]' for key in keys)})"


def _members(guard: Guard, value: str, _: tuple[str, ...], inject: Inject) -> str:
    return (
        f"{value} == {inject(guard.expected)} and {inject(sorted)}({inject(map)}({inject(repr)}, {value}))"
        f" == {inject(sorted(map(repr, guard.expected)))}"  # type: ignore[call-overload]  # a set by construction
    )


def _distinct(guard: Guard, _: str, others: tuple[str, ...], inject: Inject) -> str:
    if len(others) == 2:
        return f"{others[0]} is not {others[1]}"
    identities = ", ".join(f"{inject(id)}({other})" for other in others)
    return f"{inject(len)}({{{identities}}}) == {len(others)}"


def storage_pattern(*tensors: torch.Tensor) -> tuple[int, ...]:
    """Return for each tensor the position of the first tensor that uses the same storage."""
    first: dict[int, int] = {}
    return tuple(
        first.setdefault(tensor.untyped_storage().data_ptr() or id(tensor), position)
        for position, tensor in enumerate(tensors)
    )


def _storages(guard: Guard, _: str, others: tuple[str, ...], inject: Inject) -> str:
    return f"{inject(storage_pattern)}({', '.join(others)}) == {inject(guard.expected)}"


def _member_words(member: object, place: str, _: list[str]) -> str:
    assert isinstance(member, Member)
    behind = f" behind {member.after.__qualname__}" if member.after is not None else ""
    return f"{place} has {shortened(member.found)} for {member.name!r} in its classes{behind}"


def _answer_words(answer: object, place: str, _: list[str]) -> str:
    assert isinstance(answer, Answer)
    named = [f"{name}={shortened(value)}" for name, value in answer.kwargs.items()]
    return f"{place}({', '.join([*map(shortened, answer.args), *named])}) gives {shortened(answer.given)}"


def code_words(code: object) -> str:
    """Return where the code of a function stands."""
    name, file, line = (getattr(code, f"co_{part}", "") for part in ("qualname", "filename", "firstlineno"))
    return f"{name} ({file}:{line})"


def sharing_words(pattern: object, names: Sequence[str]) -> str:
    """Return which tensors use the same memory."""
    assert isinstance(pattern, tuple)
    numbered = list(zip(names, pattern, strict=True))
    groups = [[name for name, first in numbered if first == number] for number in range(len(names))]
    shared = [" and ".join(group) for group in groups if len(group) > 1]
    return f"{', '.join(shared)} share memory" if shared else f"{', '.join(names)} share no memory"


_Words = Callable[[Any, str, list[str]], str]  # of what the guard expects, the place, the other places
_WORDS: dict[Kind, _Words] = {
    Kind.TYPE: lambda kind, place, others: f"{place} has type {kind.__qualname__}",
    Kind.TENSOR: lambda facts, place, others: f"{place} is a tensor like {facts}",
    Kind.CODE: lambda code, place, others: f"{place} has the code of {code_words(code)}",
    Kind.KEYS: lambda keys, place, others: f"{place} has keys, in order {shortened(list(keys))}",
    Kind.EMPTY_ITEMS: lambda names, place, others: f"{place} has nothing under {', '.join(names)}",
    Kind.MEMBERS: lambda members, place, others: f"{place} has members {shortened(set(members) or '(none)')}",
    Kind.HAS_KEY: lambda key, place, others: f"{place} has key {key!r}",
    Kind.LACKS_KEY: lambda key, place, others: f"{place} lacks key {key!r}",
    Kind.MEMBER: _member_words,
    Kind.ANSWER: _answer_words,
    Kind.SAME_AS: lambda _, place, others: f"{place} is the same object as {others[0]}",
    Kind.DISTINCT: lambda _, place, others: f"{', '.join(others)} are distinct objects",
    Kind.STORAGES: lambda pattern, place, others: sharing_words(pattern, others),
    Kind.STATE: lambda state, place, others: f"{getattr(state[0], '__name__', state[0])}() is {state[1]}",
    Kind.EXPRESSION: lambda text, place, others: str(text).format(place, *others),
}
_Check = Callable[[Guard, str, tuple[str, ...], Inject], str]
_CHECKS: dict[Kind, _Check] = {
    Kind.TYPE: lambda g, v, o, inject: f"type({v}) is {inject(g.expected)}",
    Kind.IDENTITY: lambda g, v, o, inject: f"{v} is {inject(g.expected)}",
    Kind.EQUALS: _equals,
    Kind.LENGTH: lambda g, v, o, inject: f"len({v}) == {g.expected}",
    Kind.KEYS: _keys,
    Kind.HAS_KEY: lambda g, v, o, inject: f"{inject(g.expected)} in {v}",
    Kind.LACKS_KEY: lambda g, v, o, inject: f"{inject(g.expected)} not in {v}",
    Kind.EMPTY_ITEMS: _empty_items,
    Kind.MEMBERS: _members,
    Kind.MEMBER: _member,
    Kind.ANSWER: lambda g, v, o, inject: f"{inject(g.expected)}.still_given({v})",
    Kind.CODE: lambda g, v, o, inject: f"{v}.__code__ == {inject(g.expected)}",
    Kind.TENSOR: _tensor,
    Kind.TRUTH: lambda g, v, o, inject: f"bool({v}) is {g.expected}",
    Kind.HAS_ATTRIBUTE: lambda g, v, o, inject: f"{inject(hasattr)}({v}, {g.expected!r})",
    Kind.LACKS_ATTRIBUTE: lambda g, v, o, inject: f"not {inject(hasattr)}({v}, {g.expected!r})",
    Kind.SAME_AS: lambda g, v, o, inject: f"{v} is {o[0]}",
    Kind.DISTINCT: _distinct,
    Kind.STORAGES: _storages,
    Kind.STATE: lambda g, v, o, inject: f"{inject(g.expected[0])}() == {inject(g.expected[1])}",  # type: ignore[index]  # (function, value)
    Kind.EXPRESSION: lambda g, v, o, inject: str(g.expected).format(v, *o),
}
