"""Iterators that come from outside: those of a loop that goes on after a break, mostly.

The elements that are left are reached from where the iterator stands, not from the start of what it runs over. So a
loop that breaks in every turn is compiled once for all turns, and one that breaks in the first turn only is unrolled
from there to its end.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from ..guard import GuardKind
from ..reasons import UNSUPPORTED_OBJECT
from ..rule_tables import wraps_type
from ..source import BaseItem, Inject, Item, Source
from ..value import Arguments, CaptureContext, Keywords, Rebuilder, Value
from .containers.lists import ListValue
from .containers.mappings import DictValue
from .objects.instances import OpaqueValue

TUPLE_ITERATOR: type = type(iter(()))
LIST_ITERATOR: type = type(iter([]))
RANGE_ITERATOR: type = type(iter(range(0)))
DICT_ITERATORS: tuple[type, ...] = (type(iter({})), type(iter({}.values())), type(iter({}.items())))
PLAIN_ITERATORS = (TUPLE_ITERATOR, LIST_ITERATOR, *DICT_ITERATORS)
_UNROLLED = 64  # numbers of a range, at most
_CHANGED = range(1 << 40)  # the elements left of an iterator that will raise: no specialisation fits them


def run_over(iterator: Any) -> tuple[Sequence[object], int]:
    """Return the sequence that an iterator runs over, and its position; an ended one has nothing.

    Of an iterator over a dictionary, which does not say what it runs over, it is a list of the elements that are left.
    """
    reduced: tuple[Any, ...] = iterator.__reduce__()  # iter, (sequence,) and, unless it has ended, the position
    return reduced[1][0], reduced[2] if len(reduced) > 2 else 0


def parts_of(iterator: Any) -> tuple[tuple[object, ...], int]:
    """Return the iterators that an `enumerate` or `zip` takes from, and where the counting stands."""
    arguments: tuple[Any, ...] = iterator.__reduce__()[1]
    return ((arguments[0],), arguments[1]) if isinstance(iterator, enumerate) else (arguments, 0)


def left_of(iterator: object) -> Sequence[object]:
    """Return the elements that the iterator will still give, without moving it."""
    if isinstance(iterator, enumerate | zip):
        inner, start = parts_of(iterator)
        lefts = [left_of(part) for part in inner]
        if _CHANGED in lefts:
            return _CHANGED
        return tuple(zip(*lefts, strict=False) if isinstance(iterator, zip) else enumerate(lefts[0], start))
    try:
        sequence, position = run_over(iterator)
    except RuntimeError:  # its dictionary has another size than when it started
        return _CHANGED
    plain: Any = next((kind for kind in (list, tuple) if isinstance(sequence, kind)), type(sequence))
    return tuple(plain.__getitem__(sequence, slice(position, None)))  # past the methods of a subclass


def move(iterator: Iterator[object], steps: int) -> None:
    """Take that many elements off an iterator."""
    for _ in range(steps):
        next(iterator, None)


@dataclass(frozen=True, slots=True)
class Left(Source):
    """The elements that are left in an iterator, as a tuple."""

    of: Source

    def base(self) -> Source:
        """Return the iterator."""
        return self.of

    def text(self, base: str, inject: Inject) -> str:
        """Return `left_of(base)`."""
        return f"{inject(left_of)}({base})"


@dataclass(frozen=True, slots=True)
class RunOver(Source):
    """The list that an iterator runs over."""

    of: Source

    def base(self) -> Source:
        """Return the iterator."""
        return self.of

    def text(self, base: str, inject: Inject) -> str:
        """Return `run_over(base)[0]`."""
        return f"{inject(run_over)}({base})[0]"


class OuterIterator(OpaqueValue):
    """An iterator over a tuple, a list or a dictionary, from outside; steps: the elements taken while evaluating."""

    always_true = True

    def __init__(self, real: object, source: Source) -> None:
        super().__init__(real, source)
        self.left = left_of(real)
        self.steps = 0
        self.ended = False

    def stand_in(self) -> object:
        """Return an iterator over nothing."""
        nothing: dict[object, object] = {}
        empty: tuple[Any, ...] = ((), [], range(0), nothing, nothing.values(), nothing.items(), zip(), enumerate(()))
        return next(iter(each) for each in empty if type(iter(each)) is type(self.real))

    def iterate(self, ctx: CaptureContext) -> Value:
        """Return itself."""
        return self

    def next(self, ctx: CaptureContext) -> Value:
        """Give the next element."""
        assert self.source is not None
        left = Left(self.source)
        if type(self.real) is LIST_ITERATOR:
            self._require_unchanged(ctx)
        if ctx.effects.has_changed(DictValue) and not isinstance(self.real, (TUPLE_ITERATOR, LIST_ITERATOR)):
            self.unsupported("going on over a dictionary that may have changed", UNSUPPORTED_OBJECT)
        if isinstance(self.real, enumerate | zip) and ctx.effects.has_changed(ListValue):
            self.unsupported("going on over a list that may have changed", UNSUPPORTED_OBJECT)
        if self.steps >= len(self.left):
            ctx.guards.add(left, GuardKind.LENGTH, len(self.left))
            self.ended = True
            ctx.effects.mutated(self)
            ctx.throw(StopIteration)
        element = self.left[self.steps]
        ctx.guards.add(left, GuardKind.EXPRESSION, f"len({{0}}) > {self.steps}")
        ctx.effects.mutated(self)
        self.steps += 1
        return ctx.realize(ctx.lazy(element, Item(left, self.steps - 1)))

    def _require_unchanged(self, ctx: CaptureContext) -> None:
        assert self.source is not None
        sequence: Any = run_over(self.real)[0]
        owner = ctx.wrap(sequence, RunOver(self.source))
        plain = owner.contents is None
        owner = owner if owner.contents is None else owner.contents  # of a subclass of list
        assert isinstance(owner, ListValue)
        assert owner.source is not None
        place: Any = Item if plain else lambda source, index: BaseItem(source, list, index)
        places = [place(owner.source, index) for index in range(list.__len__(sequence))]
        if self.ended or [item.source for item in owner.items] != places:
            self.unsupported("going on over a list that has changed", UNSUPPORTED_OBJECT)

    def call_method(self, ctx: CaptureContext, name: str, args: Arguments, kwargs: Keywords) -> Value:
        """Evaluate explicit `__next__` and `__iter__`."""
        if name == "__next__" and not args and not kwargs:
            return self.next(ctx)
        if name == "__iter__" and not args and not kwargs:
            return self
        return super().call_method(ctx, name, args, kwargs)

    def replay(self, out: Rebuilder) -> list[str]:
        """Move the real iterator to where this one stands."""
        assert self.source is not None
        return [f"{out.inject(move)}({out.fetch(self.source)}, {self.steps + self.ended})"]


@wraps_type(RANGE_ITERATOR)
def _outer_range(ctx: CaptureContext, value: Any, source: Source) -> Value:
    """Go on over a short range in a suspended generator.

    In a loop that breaks in every turn its numbers would make a specialisation for each; there `next` breaks.
    """
    ctx.guards.add(source, GuardKind.TYPE, type(value))
    here: Source | None = source
    while here is not None and not here.in_suspended_frame:
        here = here.base()
    is_short = value.__length_hint__() <= _UNROLLED
    return OpaqueValue(value, source) if here is None or not is_short else OuterIterator(value, source)


@wraps_type(TUPLE_ITERATOR, LIST_ITERATOR, *DICT_ITERATORS)
def _outer_iterator(ctx: CaptureContext, value: object, source: Source) -> Value:
    ctx.guards.add(source, GuardKind.TYPE, type(value))
    return OpaqueValue(value, source) if left_of(value) is _CHANGED else OuterIterator(value, source)


@wraps_type(enumerate, zip)
def _outer_combination(ctx: CaptureContext, value: Any, source: Source) -> Value:
    """Go on over an `enumerate` or `zip` whose parts say what is left of them; one part twice would not."""
    ctx.guards.add(source, GuardKind.TYPE, type(value))
    parts, _ = parts_of(value)
    plain = len(value.__reduce__()) == 2  # a strict zip raises where its parts end apart
    apart = len({id(part) for part in parts}) == len(parts)
    if not parts or not plain or not apart or not all(type(part) in PLAIN_ITERATORS for part in parts):
        return OpaqueValue(value, source)
    return OpaqueValue(value, source) if left_of(value) is _CHANGED else OuterIterator(value, source)
