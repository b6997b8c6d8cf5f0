"""Lists and deques: their methods and changes, sorting."""

import collections
import sys
from collections.abc import Callable
from typing import Any

from ...constant import Constant, fold
from ...reasons import BUILTIN_METHOD, CANNOT_REBUILD, TEXT, Break
from ...source import Source
from ...type_attributes import type_attribute
from ...value import Arguments, CaptureContext, Keywords, Rebuilder, Value, unless_refused
from ..deep_copies import deep_copied
from .sequences import MUTATED_DEQUE, ElementIterator, ReversedIterator, SequenceValue, iterating


class DequeIterator(ElementIterator):
    """An iterator over a deque, from either end; it refuses to go on where elements were moved, not replaced."""

    def __init__(self, owner: "ListValue", function: Callable[[Any], Any]) -> None:
        self.owner = owner
        self.function = function
        self.moves = owner.moves
        self.size = self.left = len(owner.items)

    def python_type(self) -> type:
        """Return the type for the direction."""
        return type(self.stand_in())

    def stand_in(self) -> object:
        """Return an iterator over nothing."""
        return self.function(collections.deque())

    def next(self, ctx: CaptureContext) -> Value:
        """Give the next element; one from the end asks first whether it has ended."""
        backwards = self.function is reversed
        if backwards and not self.left:
            ctx.throw(StopIteration)
        if self.moves != self.owner.moves:
            self.left = 0
            ctx.throw(RuntimeError, MUTATED_DEQUE)
        if not self.left:
            ctx.throw(StopIteration)
        self.left -= 1
        return self.owner.element(ctx, self.left if backwards else self.size - 1 - self.left)

    def length_hint(self) -> int:
        """Return what is left to count."""
        return self.left

    def rebuild(self, out: Rebuilder) -> str:
        """Make an iterator at the same position."""
        if self.owner.moves:  # the changes are made after this
            self.unsupported("handing over an iterator over a deque that has changed", CANNOT_REBUILD)
        name, step = out.fresh(), out.fresh()
        out.line(f"{name} = {iterating(self.function, self.owner, out)}")
        if self.left < self.size:
            steps = self.size - self.left
            out.line(f"for {step} in {out.inject(range)}({steps}): {out.inject(next)}({name}, None)")
        return name


class ListValue(SequenceValue):
    """A list, or a deque."""

    def __init__(
        self, items: list[Value], source: Source | None = None, kind: type = list, maximum: int | None = None
    ) -> None:
        super().__init__(items, kind, source)
        self.maximum = maximum
        self.native = False  # the contents of a subclass instance: replay keeps clear of its methods

    def constant(self) -> object:
        """Return a fresh list."""
        values = [item.constant() for item in self.items]
        return values if self.kind is list else collections.deque(values, self.maximum)

    def concatenate(self, ctx: CaptureContext, other: Value, inplace: bool) -> Value | None:
        """Return a new list; `+=` extends this one by any iterable."""
        if not inplace:
            return super().concatenate(ctx, other, inplace)
        self.call_method(ctx, "extend", [other], {})
        return self

    def repeat(self, ctx: CaptureContext, count: Value, reflected: bool, inplace: bool) -> Value | None:
        """Return a new list; `*=` repeats the elements of this one."""
        if reflected or not inplace:
            return super().repeat(ctx, count, reflected, inplace)
        before = self.before()
        self.items[:] = self.items * self._repetitions(ctx, count, reflected, inplace)
        self.trim(left=False)
        self.changed(ctx, before)
        return self

    def initialise_instance(self, ctx: CaptureContext, args: Arguments, kwargs: Keywords) -> None:
        """Evaluate `__init__`; a deque's second argument is its bound."""
        if self.kind is collections.deque:
            bound = ctx.realize(args[1] if len(args) > 1 else kwargs.get("maxlen", Constant(None))).constant()
            self.maximum = bound if isinstance(bound, int) else None
            args, kwargs = args[:1] or [kwargs[name] for name in ("iterable",) if name in kwargs], {}
        self.call_method(ctx, "__init__", args, kwargs)

    def fill_instance(self, name: str, base: type, out: Rebuilder) -> list[str]:
        """Return the statement that adds the elements."""
        items = "".join(f"{out.value(item)}, " for item in self.items)
        if self.kind is collections.deque:
            initialise: Any = collections.deque.__init__
            return [f"{out.inject(initialise)}({name}, ({items}), {self.maximum})"]
        return [f"{out.inject(list.extend)}({name}, ({items}))"]

    def shallow_copy(self, ctx: CaptureContext) -> Value:
        """Return a new list of the same elements."""
        return self.call_method(ctx, "copy", [], {})

    def deep_copy(self, ctx: CaptureContext, memo: dict[int, Value]) -> Value:
        """Return a new list of copies."""
        copy = ListValue([], kind=self.kind, maximum=self.maximum)
        memo[id(self)] = copy
        copy.items += [deep_copied(ctx, item, memo) for item in self.elements(ctx)]
        return copy

    def mirrored(self, part: Callable[[Value], object], seen: dict[int, object], ctx: CaptureContext) -> object:
        """Return a list or deque."""
        container: Any = [] if self.kind is list else collections.deque(maxlen=self.maximum)
        seen[id(self)] = container
        container.extend([part(item) for item in self.elements(ctx)])
        return container

    def stand_in(self) -> object:
        """Return an empty list or deque."""
        return self.kind()

    def reversed(self, ctx: CaptureContext) -> Value:
        """Return an iterator from the last element."""
        if self.kind is not collections.deque:
            return ReversedIterator(self)
        return DequeIterator(self, reversed)

    def iterate(self, ctx: CaptureContext) -> Value:
        """Return an iterator from the start."""
        return DequeIterator(self, iter) if self.kind is collections.deque else super().iterate(ctx)

    def sliced(self, items: list[Value]) -> Value:
        """Return a new list, or a deque."""
        sequence = ListValue(list(items), kind=self.kind, maximum=self.maximum)
        sequence.trim(left=False)
        return sequence

    def get_item(self, ctx: CaptureContext, key: Value) -> Value:
        """Return an element or a slice; deques have no slices."""
        return super().get_item(ctx, Constant(self.index_of(ctx, key)))

    def index_of(self, ctx: CaptureContext, key: Value) -> int | slice:
        """Return the known index; a deque refuses slices before it looks at their bounds."""
        if self.kind is collections.deque and issubclass(ctx.realize(key).python_type(), slice):
            self.refuse(ctx, "subscript", lambda deque: deque[:])
        return super().index_of(ctx, key)

    def get_attr(self, ctx: CaptureContext, name: str) -> Value:
        """Return a method."""
        if name == "maxlen" and self.kind is collections.deque:
            return Constant(self.maximum)
        return type_attribute(ctx, self, name)

    def set_item(self, ctx: CaptureContext, key: Value, value: Value) -> None:
        """Replace an element or a slice."""
        index, before = self.index_of(ctx, key), self.before()
        if isinstance(index, slice):
            given = ctx.realize(value)
            refused = type(given).iterate is Value.iterate
            iterator = None if refused else unless_refused(ctx, given.iterate)
            if iterator is None:
                ctx.throw(TypeError, _NO_ITERABLE if index.step in (None, 1) else _NO_ITERABLE_STEP)
            try:
                self.items[index] = ctx.realize(iterator).gathered(ctx)
            except ValueError as error:
                ctx.throw(ValueError, *error.args)
        else:
            if not -len(self.items) <= index < len(self.items):
                words = "deque index out of range" if self.kind is collections.deque else _ASSIGNED_OUTSIDE
                ctx.throw(IndexError, words)
            self.items[index] = value
        self.changed(ctx, before, moved=isinstance(index, slice))

    def del_item(self, ctx: CaptureContext, key: Value) -> None:
        """Remove an element or a slice."""
        index = self.index_of(ctx, key)
        if isinstance(index, int) and not -len(self.items) <= index < len(self.items):
            ctx.throw(IndexError, "deque index out of range" if self.kind is collections.deque else _ASSIGNED_OUTSIDE)
        before = self.before()
        del self.items[index]
        self.changed(ctx, before)

    def call_method(self, ctx: CaptureContext, name: str, args: Arguments, kwargs: Keywords) -> Value:
        """Evaluate a list or deque method."""
        rule = _LIST_METHODS.get(name)
        if rule is None or (self.kind is list and name in _DEQUE_ONLY):
            return super().call_method(ctx, name, args, kwargs)
        return rule(self, ctx, args, kwargs)

    def before(self) -> list[Value]:
        """Return the elements before a change."""
        return list(self.items)

    def changed(self, ctx: CaptureContext, before: list[Value], *, moved: bool = True) -> None:
        """Note a change that may have removed elements; moved: more than one element that was replaced."""
        self.moves += moved and self.kind is collections.deque and self.items != before
        if before:
            remaining = set(map(id, self.items))
            gone = [item for item in before if id(item) not in remaining]
            try:
                ctx.effects.let_go(self, gone)
            except Break:  # plain Python does it, to the list as it was; a new one is made of these elements
                self.items[:] = before
                raise
        ctx.effects.mutated(self)

    def trim(self, left: bool) -> None:
        """Drop what a bounded deque cannot hold."""
        if self.maximum is not None and len(self.items) > self.maximum:
            excess = len(self.items) - self.maximum
            self.items[:] = self.items[: self.maximum] if left else self.items[excess:]

    def rebuild(self, out: Rebuilder) -> str:
        """Make a new list; created empty first, so that it may contain itself."""
        name = out.fresh()
        bound = f", {self.maximum}" if self.kind is collections.deque else ""
        out.line(f"{name} = []" if self.kind is list else f"{name} = {out.inject(self.kind)}((){bound})")
        out.bind(self, name)
        if self.items:
            out.line(f"{name}.extend(({', '.join(out.value(item) for item in self.items)},))")
        return name

    def replay(self, out: Rebuilder) -> list[str]:
        """Put the elements into the original."""
        name = out.value(self)
        if self.kind is collections.deque and not self.moves:  # iterators over it may go on
            setter = out.inject(collections.deque.__setitem__)
            return [f"{setter}({name}, {place}, {out.value(item)})" for place, item in enumerate(self.items)]
        elements = "".join(f"{out.value(item)}, " for item in self.items)
        if self.native:
            clear, extend = (out.inject(self.kind.__dict__[word]) for word in ("clear", "extend"))
            return [f"{clear}({name})", f"{extend}({name}, ({elements}))"]
        if self.kind is list:
            return [f"{name}[:] = ({elements})"]
        return [f"{name}.clear()", f"{name}.extend(({elements}))"]


def _append(self: ListValue, ctx: CaptureContext, args: Arguments, kwargs: Keywords) -> Value:
    before = [] if self.maximum is None else self.before()
    self.items.append(args[0])
    self.trim(left=False)
    self.changed(ctx, before)
    return Constant(None)


def _append_left(self: ListValue, ctx: CaptureContext, args: Arguments, kwargs: Keywords) -> Value:
    before = [] if self.maximum is None else self.before()
    self.items.insert(0, args[0])
    self.trim(left=True)
    self.changed(ctx, before)
    return Constant(None)


def _extend(self: ListValue, ctx: CaptureContext, args: Arguments, kwargs: Keywords) -> Value:
    given = ctx.realize(args[0])
    if isinstance(given, SequenceValue):
        before = self.before()
        self.items.extend(given.elements(ctx))
        self.trim(left=False)
        self.changed(ctx, before)
        return Constant(None)
    for item in given.each(ctx, hinted=self.kind is list):  # a deque asks for no hint of their number
        _append(self, ctx, [item], {})
    return Constant(None)


def _insert(self: ListValue, ctx: CaptureContext, args: Arguments, kwargs: Keywords) -> Value:
    index = _whole_number(self, ctx, "insert", args[0], Constant(None))
    if self.maximum is not None and len(self.items) >= self.maximum:
        ctx.throw(IndexError, "deque already at its maximum size")
    self.items.insert(index, args[1])
    self.moves += 1
    ctx.effects.mutated(self)
    return Constant(None)


def _whole_number(self: ListValue, ctx: CaptureContext, name: str, value: Value, *others: Value) -> int:
    """Return a known argument that has to be a whole number."""
    value = ctx.realize(value).as_index(ctx)
    number = value.constant() if value.is_constant() else None
    if not isinstance(number, int) or not -sys.maxsize <= number <= sys.maxsize:
        self.refuse(
            ctx,
            f"method {name!r}",
            lambda owner, *args: getattr(owner, name)(*args),
            value,
            *others,
            reason=BUILTIN_METHOD,
        )
    return number


def _pop(self: ListValue, ctx: CaptureContext, args: Arguments, kwargs: Keywords) -> Value:
    before = self.before()
    index = _whole_number(self, ctx, "pop", args[0]) if args else -1
    if not -len(self.items) <= index < len(self.items):
        empty = "pop from empty list" if self.kind is list else "pop from an empty deque"
        ctx.throw(IndexError, empty if not self.items else "pop index out of range")
    element = self.element(ctx, index % len(self.items))
    del self.items[index]
    self.changed(ctx, before)
    return element


def _pop_left(self: ListValue, ctx: CaptureContext, args: Arguments, kwargs: Keywords) -> Value:
    return _pop(self, ctx, [Constant(0)], {})


def _remove(self: ListValue, ctx: CaptureContext, args: Arguments, kwargs: Keywords) -> Value:
    target = ctx.realize(args[0])
    for position in self.found_equal(
        ctx, target, refusal=IndexError if self.kind is collections.deque else RuntimeError
    ):
        before = self.before()
        del self.items[position : position + 1]  # which comparing it may have taken away
        self.changed(ctx, before)
        return Constant(None)
    if self.kind is list:
        ctx.throw(ValueError, "list.remove(x): x not in list")
    text = (
        repr(target.constant()) if target.is_constant() else self.unsupported("the words for what is not in it", TEXT)
    )
    ctx.throw(ValueError, f"{text} is not in deque")


def _clear(self: ListValue, ctx: CaptureContext, args: Arguments, kwargs: Keywords) -> Value:
    before = self.before()
    self.items.clear()
    self.changed(ctx, before)
    return Constant(None)


def _reverse(self: ListValue, ctx: CaptureContext, args: Arguments, kwargs: Keywords) -> Value:
    self.items.reverse()
    ctx.effects.mutated(self)
    return Constant(None)


def _copy(self: ListValue, ctx: CaptureContext, args: Arguments, kwargs: Keywords) -> Value:
    return ListValue(list(self.items), kind=self.kind, maximum=self.maximum)


def _sort(self: ListValue, ctx: CaptureContext, args: Arguments, kwargs: Keywords) -> Value:
    items = list(self.elements(ctx))
    self.items[:] = []  # as its keys and comparisons see it
    try:
        order = sort_values(ctx, items, kwargs)
    except BaseException:
        self.items[:] = items
        raise
    modified = bool(self.items)
    self.items[:] = order
    ctx.effects.mutated(self)
    if modified:
        ctx.throw(ValueError, "list modified during sort")
    return Constant(None)


def sort_values(ctx: CaptureContext, items: list[Value], kwargs: Keywords) -> list[Value]:
    """Return the items in the order of `sorted(items, key=, reverse=)`; the keys must be known."""
    key = ctx.realize(kwargs.get("key", Constant(None)))
    reverse = ctx.realize(kwargs.get("reverse", Constant(False))).as_index(ctx)
    backwards: Any = reverse.constant() if reverse.is_constant() else reverse.stand_in()
    fold(ctx, sorted, (), reverse=backwards)  # raises, with Python's own words, before a key is asked for
    no_key = isinstance(key, Constant) and key.value is None
    keys = [item if no_key else ctx.realize(ctx.call(key, [item], {})) for item in items]
    if all(value.is_constant() for value in keys):
        known: list[Any] = [value.constant() for value in keys]
    else:
        known = [_SortKey(ctx, value) for value in keys]
    order = fold(ctx, sorted, range(len(items)), key=lambda i: known[i], reverse=backwards)
    return [items[i] for i in order.constant()]  # type: ignore[attr-defined]  # a list of positions


class _SortKey:
    """A value that the real sort compares by evaluating `<` in the program."""

    def __init__(self, ctx: CaptureContext, value: Value) -> None:
        self.ctx = ctx
        self.value = value

    def __lt__(self, other: "_SortKey") -> bool:
        return self.ctx.less(self.value, other.value)


def _rotate(self: ListValue, ctx: CaptureContext, args: Arguments, kwargs: Keywords) -> Value:
    step = _whole_number(self, ctx, "rotate", args[0]) if args else 1
    rotated = collections.deque(self.items)
    rotated.rotate(step)
    self.items[:] = rotated
    self.moves += len(self.items) > 1
    ctx.effects.mutated(self)
    return Constant(None)


def _extend_left(self: ListValue, ctx: CaptureContext, args: Arguments, kwargs: Keywords) -> Value:
    given = ctx.realize(args[0])
    for item in list(given.elements(ctx)) if isinstance(given, SequenceValue) else given.each(ctx):
        _append_left(self, ctx, [item], {})
    return Constant(None)


def _initialise(self: ListValue, ctx: CaptureContext, args: Arguments, kwargs: Keywords) -> Value:
    given = list(args)  # a list may be filled with its own elements, which are gone by then
    _clear(self, ctx, [], {})
    return _extend(self, ctx, given, {}) if given else Constant(None)


_LIST_METHODS = {
    "append": _append,
    "appendleft": _append_left,
    "extend": _extend,
    "insert": _insert,
    "pop": _pop,
    "popleft": _pop_left,
    "remove": _remove,
    "clear": _clear,
    "reverse": _reverse,
    "copy": _copy,
    "sort": _sort,
    "rotate": _rotate,
    "extendleft": _extend_left,
    "__init__": _initialise,
}
_DEQUE_ONLY = frozenset({"appendleft", "popleft", "rotate", "extendleft"})
_ASSIGNED_OUTSIDE = "list assignment index out of range"
_NO_ITERABLE = "can only assign an iterable"
_NO_ITERABLE_STEP = "must assign iterable to extended slice"
