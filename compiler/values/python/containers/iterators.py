"""Iterators made while capturing: zip, enumerate, map, filter, itertools, and generators of inlined functions.

Each is Python's own iterator of the kind, over values. So it asks what it takes from as the one it stands for does:
as lazily, in the same order, again or not after an end or an error.
"""

import functools
import itertools
from collections.abc import Callable, Iterator

from ...constant import Constant
from ...reasons import BUILTIN_METHOD, CANNOT_REBUILD
from ...type_attributes import type_attribute
from ...value import CaptureContext, Elements, Ended, Raised, Rebuilder, Value, elements_of, unless_refused
from .sequences import ElementIterator
from .tuples import TupleValue


class IteratorValue(Value):
    """An iterator; steps: gives the elements.

    parts: the iterators over which the type, called with them, gives one that goes on like this one.  function: what
    that call takes first.  count: for enumerate, the number of the first element.  options: keywords of that call.
    advanced: the parts are what it began with.
    """

    always_true = True
    equal_by_identity = True

    def __init__(
        self,
        kind: type,
        steps: Iterator[Value],
        ctx: CaptureContext,
        *,
        parts: tuple[Value, ...] | None = None,
        function: Value | None = None,
        count: int | None = None,
        options: str = "",
        advanced: bool = False,
    ) -> None:
        self.kind = kind
        self.steps = steps
        self.ctx = ctx
        self.parts = parts
        self.function = function
        self.count = count
        self.options = options
        self.advanced = advanced
        self.maker: Callable[..., object] = kind  # what is called with the parts
        self.steps_taken = 0
        self.owner: Value | None = None  # whose length is the hint of how many elements are left

    def python_type(self) -> type:
        """Return the iterator's type."""
        return self.kind

    def iterate(self, ctx: CaptureContext) -> Value:
        """Return itself."""
        return self

    def stand_in(self) -> object:
        """Return an empty iterator of the type, or one that refuses the same."""
        makers: dict[type, Callable[[], object]] = {
            zip: zip,
            map: lambda: map(len, ()),
            filter: lambda: filter(None, ()),
            enumerate: lambda: enumerate(()),
        }
        return makers[self.kind]() if self.kind in makers else super().stand_in()

    def next(self, ctx: CaptureContext) -> Value:
        """Give the next element."""
        try:
            element = next(self.steps)
        except Ended as ended:
            raised: Raised | None = ended.raised
        except StopIteration:
            raised = None
        else:
            self.steps_taken += 1
            return ctx.realize(element)
        self.owner = None
        self.steps_taken += self.advanced  # it knows that it has ended
        if raised is None:
            ctx.throw(StopIteration)
        try:
            raise raised
        finally:
            del raised  # its traceback holds this frame

    def gathered(self, ctx: CaptureContext) -> list[Value]:
        """Evaluate `list(iterator)`."""
        self.ask_hint(ctx)
        return self.unpacked(ctx)

    def ask_hint(self, ctx: CaptureContext) -> None:
        """Ask whose elements it gives."""
        if self.owner is not None:
            unless_refused(ctx, self.owner.length)

    def get_attr(self, ctx: CaptureContext, name: str) -> Value:
        """Return a method."""
        return type_attribute(ctx, self, name)

    def call_method(self, ctx: CaptureContext, name: str, args: list[Value], kwargs: dict[str, Value]) -> Value:  # type: ignore[override]  # narrower than Sequence is enough here
        """Evaluate explicit `__next__` and `__iter__`."""
        if name == "__next__":
            return self.next(ctx)
        if name == "__iter__":
            return self
        self.unsupported(f"method {name!r}", BUILTIN_METHOD)

    def rebuild(self, out: Rebuilder) -> str:
        """Make it of its parts, which stand where it has moved them to."""
        if self.parts is None:
            self.unsupported("continuing an iterator across a break", CANNOT_REBUILD)
        arguments = [out.value(self.function)] if self.function is not None else []
        for part in self.parts:
            asked_before = not (self.advanced or isinstance(part, IteratorValue | ElementIterator))
            text = out.value(part)
            arguments.append(f"{out.inject(_Standing)}({text})" if asked_before else text)
        arguments += [str(self.count + self.steps_taken)] if self.count is not None else []
        arguments += [self.options] if self.options else []
        name = out.fresh()
        out.line(f"{name} = {out.inject(self.maker)}({', '.join(arguments)})")
        if self.advanced and self.steps_taken:
            out.line(f"for {out.fresh()} in {out.inject(range)}({self.steps_taken}): {out.inject(next)}({name}, None)")
        return name


class _Standing:
    """Stands for an iterator whose own `__iter__` has been asked before."""

    def __init__(self, iterator: Iterator[object]) -> None:
        self.iterator = iterator

    def __iter__(self) -> Iterator[object]:
        return self.iterator


def matches(ctx: CaptureContext, found: TupleValue) -> IteratorValue:
    """Return the iterator that `finditer` gives, over what it finds."""
    iterator = IteratorValue(type(iter(int, 1)), iter(found.items), ctx, parts=(found,), advanced=True)
    iterator.maker = _calling
    return iterator


def _calling(elements: tuple[object, ...]) -> Iterator[object]:
    steps, end = iter(elements), object()
    return iter(lambda: next(steps, end), end)


def is_stop(raised: Raised) -> bool:
    """Return whether the evaluated program raised StopIteration."""
    return issubclass(raised.value.python_type(), StopIteration)


def zipped(ctx: CaptureContext, iterators: list[Value], strict: bool) -> Iterator[Value]:
    """Give the steps of zip()."""
    steps = map(_row, zip(*(elements_of(ctx, iterator) for iterator in iterators), strict=strict))
    return _Refusing(ctx, steps) if strict else steps


def _row(row: tuple[Value, ...]) -> Value:
    return TupleValue(list(row))


class _Refusing(Iterator[Value]):
    """The steps of an iterator that raises ValueError itself, which the program sees."""

    def __init__(self, ctx: CaptureContext, steps: Iterator[Value]) -> None:
        self.ctx = ctx
        self.steps = steps

    def __next__(self) -> Value:
        try:
            return next(self.steps)
        except ValueError as error:
            words = error.args
        self.ctx.throw(ValueError, *words)


def enumerated(ctx: CaptureContext, iterator: Value, start: int) -> Iterator[Value]:
    """Give the steps of enumerate()."""

    def numbered(pair: tuple[int, Value]) -> Value:
        return TupleValue([Constant(pair[0]), pair[1]])

    return map(numbered, enumerate(elements_of(ctx, iterator), start))


def mapped(ctx: CaptureContext, function: Value, iterators: list[Value]) -> Iterator[Value]:
    """Give the steps of map()."""
    return map(lambda *row: ctx.call(function, row, {}), *(elements_of(ctx, iterator) for iterator in iterators))


def filtered(ctx: CaptureContext, function: Value, iterator: Value, keep: bool = True) -> Iterator[Value]:
    """Give the steps of filter(), or of filterfalse()."""
    is_none = isinstance(function, Constant) and function.value is None

    def holds(element: Value) -> bool:
        return (element if is_none else ctx.realize(ctx.call(function, [element], {}))).truth(ctx)

    choose: Callable[..., Iterator[Value]] = filter if keep else itertools.filterfalse
    return choose(holds, elements_of(ctx, iterator))


class Iterable:
    """An iterable value: Python asks it for an iterator where it would ask the object."""

    def __init__(self, ctx: CaptureContext, value: Value) -> None:
        self.ctx = ctx
        self.value = value

    def __iter__(self) -> Iterator[Value]:
        return _AskedAgain(self.ctx, self.ctx.realize(self.ctx.realize(self.value).iterate(self.ctx)))


class _AskedAgain(Elements):
    """Elements of an iterator whose own `__iter__` is asked, too."""

    def __iter__(self) -> Iterator[Value]:
        return _AskedAgain(self.ctx, self.ctx.realize(self.iterator.iterate(self.ctx)))


def chained(ctx: CaptureContext, iterables: Iterator[Value]) -> Iterator[Value]:
    """Give the steps of itertools.chain()."""
    return itertools.chain.from_iterable(map(functools.partial(Iterable, ctx), iterables))


class CalledUntil(Iterator[Value]):
    """The steps of `iter(function, sentinel)`: it has ended where the function says so, not where it fails."""

    def __init__(self, ctx: CaptureContext, function: Value, sentinel: Value) -> None:
        self.ctx = ctx
        self.parts: tuple[Value, Value] | None = (function, sentinel)

    def __next__(self) -> Value:
        if self.parts is None:
            raise StopIteration
        function, sentinel = self.parts
        try:
            element = self.ctx.realize(self.ctx.call(function, [], {}))
        except Raised as raised:
            if is_stop(raised):
                self.parts = None
            raise
        if self.ctx.same_or_equal(sentinel, element):
            self.parts = None
            raise StopIteration
        return element


def accumulated(
    ctx: CaptureContext, iterator: Value, add: Callable[[Value, Value], Value], initial: Value | None = None
) -> Iterator[Value]:
    """Give the steps of itertools.accumulate()."""
    return itertools.accumulate(elements_of(ctx, iterator), lambda *both: ctx.realize(add(*both)), initial=initial)


class _GroupKey:
    """The key of a group, which is compared by the program's `==`."""

    def __init__(self, ctx: CaptureContext, value: Value) -> None:
        self.ctx = ctx
        self.value = value

    __hash__ = None  # type: ignore[assignment]  # it is never in a dictionary

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _GroupKey) and self.ctx.same_or_equal(self.value, other.value)


def grouped(ctx: CaptureContext, iterator: Value, key: Value | None) -> Iterator[Value]:
    """Give the steps of itertools.groupby()."""

    def key_of(element: Value) -> _GroupKey:
        return _GroupKey(ctx, element if key is None else ctx.realize(ctx.call(key, [element], {})))

    def row_of(found: tuple[_GroupKey, Iterator[Value]]) -> Value:
        return TupleValue([found[0].value, IteratorValue(_GROUP, found[1], ctx)])

    return map(row_of, itertools.groupby(elements_of(ctx, iterator), key_of))


_GROUP = type(next(itertools.groupby([0]))[1])
