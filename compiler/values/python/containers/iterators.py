"""Iterators made while capturing: zip, enumerate, map, filter, itertools, and generators of inlined functions.

Each is a Python generator over values, so it is as lazy as the one it stands for.
"""

import itertools
from collections.abc import Callable, Iterator

from ...constant import Constant
from ...reasons import BUILTIN_METHOD, CANNOT_REBUILD
from ...type_attributes import type_attribute
from ...value import CaptureContext, Raised, Rebuilder, Value, elements_of, unless_refused
from .tuples import TupleValue


class IteratorValue(Value):
    """An iterator; steps: gives the elements. pure: the remaining elements may be taken early, at a break.

    parts: what the type, called with it, gives an iterator that goes on like this one.  count: for enumerate, the
    number of the first element.  options: keywords of that call.
    """

    always_true = True
    equal_by_identity = True

    def __init__(
        self,
        kind: type,
        steps: Iterator[Value],
        ctx: CaptureContext,
        *,
        pure: bool = False,
        parts: tuple[Value, ...] = (),
        count: int | None = None,
        options: str = "",
    ) -> None:
        self.kind = kind
        self.steps = steps
        self.ctx = ctx
        self.pure = pure
        self.parts = parts
        self.count = count
        self.options = options
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
        for element in self.steps:
            self.steps_taken += 1
            return ctx.realize(element)
        self.owner = None
        ctx.throw(StopIteration)

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
        """Make an iterator over the remaining elements, if taking them early changes nothing."""
        if not self.pure and not self.parts:
            self.unsupported("continuing an iterator across a break", CANNOT_REBUILD)
        if self.parts:
            return self._rest_by_parts(out)
        rest = TupleValue(list(self.steps))
        self.steps = iter(rest.items)
        name = out.fresh()
        out.line(f"{name} = {out.inject(iter)}({out.value(rest)})")
        return name

    def _rest_by_parts(self, out: Rebuilder) -> str:
        """Make it of its parts, which stand where it has moved them to."""
        arguments = [out.value(part) for part in self.parts]
        arguments += [str(self.count + self.steps_taken)] if self.count is not None else []
        arguments += [self.options] if self.options else []
        name = out.fresh()
        out.line(f"{name} = {out.inject(self.kind)}({', '.join(arguments)})")
        return name


def is_stop(raised: Raised) -> bool:
    """Return whether the evaluated program raised StopIteration."""
    return issubclass(raised.value.python_type(), StopIteration)


def zipped(ctx: CaptureContext, iterators: list[Value], strict: bool) -> Iterator[Value]:
    """Give the steps of zip()."""
    while iterators:
        row: list[Value] = []
        for position in range(len(iterators)):  # no name for one of them, which would end last
            try:
                row.append(iterators[position].next(ctx))
            except Raised as raised:
                if not is_stop(raised):
                    raise
                if strict and position:
                    before = "argument 1" if position == 1 else f"arguments 1-{position}"
                    ctx.throw(ValueError, f"zip() argument {position + 1} is shorter than {before}")
                if strict:
                    _check_all_ended(ctx, iterators)
                return
        yield TupleValue(row)


def _check_all_ended(ctx: CaptureContext, iterators: list[Value]) -> None:
    for position, iterator in enumerate(iterators[1:], 2):
        for _ in elements_of(ctx, iterator):
            before = "argument 1" if position == 2 else f"arguments 1-{position - 1}"
            ctx.throw(ValueError, f"zip() argument {position} is longer than {before}")


def enumerated(ctx: CaptureContext, iterator: Value, start: int) -> Iterator[Value]:
    """Give the steps of enumerate()."""
    for position, element in enumerate(elements_of(ctx, iterator), start):
        yield TupleValue([Constant(position), element])


def mapped(ctx: CaptureContext, function: Value, iterators: list[Value]) -> Iterator[Value]:
    """Give the steps of map()."""
    for row in zipped(ctx, iterators, strict=False):
        assert isinstance(row, TupleValue)
        yield ctx.call(function, row.items, {})


def filtered(ctx: CaptureContext, function: Value, iterator: Value, keep: bool = True) -> Iterator[Value]:
    """Give the steps of filter(), or of filterfalse()."""
    for element in elements_of(ctx, iterator):
        is_none = isinstance(function, Constant) and function.value is None
        verdict = element if is_none else ctx.realize(ctx.call(function, [element], {}))
        if verdict.truth(ctx) is keep:
            yield element


def chained(ctx: CaptureContext, iterables: Iterator[Value]) -> Iterator[Value]:
    """Give the steps of itertools.chain()."""
    for iterable in iterables:
        yield from elements_of(ctx, ctx.realize(iterable).iterate(ctx))


def called_until(ctx: CaptureContext, function: Value, sentinel: Value) -> Iterator[Value]:
    """Give the steps of iter(function, sentinel)."""
    while True:
        element = ctx.realize(ctx.call(function, [], {}))
        if ctx.same_or_equal(element, sentinel):
            return
        yield element


def accumulated(
    ctx: CaptureContext, iterator: Value, add: Callable[[Value, Value], Value], initial: Value | None = None
) -> Iterator[Value]:
    """Give the steps of itertools.accumulate()."""
    total = initial
    if total is not None:
        yield total
    for element in elements_of(ctx, iterator):
        total = element if total is None else ctx.realize(add(total, element))
        yield total


class Groups:
    """The state that `itertools.groupby` shares with the groups it gives: they all take from one iterator."""

    def __init__(self, ctx: CaptureContext, iterator: Value, key: Value | None) -> None:
        self.ctx = ctx
        self.steps = elements_of(ctx, iterator)
        self.key = key
        self.waiting: tuple[Value, Value] | None = None  # (key, element) taken and not given yet
        self.current: object = None  # the group that may take

    def _take(self) -> bool:
        for element in self.steps:
            real = self.ctx.realize(element)
            key = real if self.key is None else self.ctx.realize(self.ctx.call(self.key, [real], {}))
            self.waiting = (key, real)
            return True
        self.waiting = None
        return False

    def rows(self) -> Iterator[Value]:
        """Give (key, group) pairs."""
        last: Value | None = None
        while self.waiting is not None or self._take():
            assert self.waiting is not None
            if last is not None and self.ctx.same_or_equal(last, self.waiting[0]):
                self.waiting = None
                continue
            last = self.waiting[0]
            self.current = mark = object()
            yield TupleValue([last, IteratorValue(_GROUP, self._group(last, mark), self.ctx)])

    def _group(self, key: Value, mark: object) -> Iterator[Value]:
        while self.current is mark and (self.waiting is not None or self._take()):
            assert self.waiting is not None
            if not self.ctx.same_or_equal(key, self.waiting[0]):
                return
            element, self.waiting = self.waiting[1], None
            yield element


_GROUP = type(next(itertools.groupby([0]))[1])
