"""Lists, tuples (named ones, `torch.Size`, result structures of torch), deques and slices."""

import collections
from collections.abc import Callable, Hashable
from typing import Any

import torch

from .constant import Constant, MethodOf, fold
from .reasons import DATA_DEPENDENT_VALUE
from .source import Source
from .value import Arguments, CaptureContext, Keywords, Rebuilder, Value

_DUNDERS = frozenset({"__len__", "__getitem__", "__setitem__", "__delitem__", "__contains__", "__iter__"})


def call_dunder(ctx: CaptureContext, value: Value, name: str, args: Arguments) -> Value:
    """Evaluate an explicit call of a container's special method."""
    if name == "__len__":
        return value.length(ctx)
    if name == "__getitem__":
        return value.get_item(ctx, args[0])
    if name == "__contains__":
        return Constant(value.contains(ctx, args[0]))
    if name == "__iter__":
        return value.iterate(ctx)
    if name == "__setitem__":
        value.set_item(ctx, args[0], args[1])
    else:
        value.del_item(ctx, args[0])
    return Constant(None)


class SequenceIterator(Value):
    """An iterator over the elements of a sequence value; sees later changes, as Python's does."""

    def __init__(self, owner: "SequenceValue", position: int = 0) -> None:
        self.owner = owner
        self.position = position

    def python_type(self) -> type:
        """Return the iterator type."""
        return type(iter([])) if isinstance(self.owner, ListValue) else type(iter(()))

    def iterate(self, ctx: CaptureContext) -> Value:
        """Return itself."""
        return self

    def truth(self, ctx: CaptureContext) -> bool:
        """Iterators are true."""
        return True

    def next(self, ctx: CaptureContext) -> Value:
        """Give the next element."""
        if self.position >= len(self.owner.items):
            self.position = 1 << 62
            ctx.throw(StopIteration)
        element = self.owner.element(ctx, self.position)
        self.position += 1
        return element

    def rebuild(self, out: Rebuilder) -> str:
        """Make an iterator that stands at the same place."""
        name = out.fresh()
        out.line(f"{name} = {out.inject(iter)}({out.value(self.owner)})")
        if self.position:
            position = min(self.position, len(self.owner.items))
            step = out.fresh()
            out.line(f"for {step} in {out.inject(range)}({position}): {out.inject(next)}({name})")
        return name


class SequenceValue(Value):
    """What lists and tuples share."""

    kind: type

    def __init__(self, items: list[Value], kind: type, source: Source | None = None) -> None:
        self.items = items
        self.kind = kind
        self.source = source

    def python_type(self) -> type:
        """Return the class of the sequence."""
        return self.kind

    def describe(self) -> str:
        """Return type and length."""
        return f"{self.kind.__name__} of {len(self.items)}"

    def is_constant(self) -> bool:
        """Return whether every element is known."""
        return all(item.is_constant() for item in self.items)

    def element(self, ctx: CaptureContext, position: int) -> Value:
        """Return one element, wrapped now if it was lazy."""
        found = ctx.real(self.items[position])
        self.items[position] = found
        return found

    def elements(self, ctx: CaptureContext) -> list[Value]:
        """Return all elements."""
        return [self.element(ctx, position) for position in range(len(self.items))]

    def truth(self, ctx: CaptureContext) -> bool:
        """Return whether it has elements."""
        return bool(self.items)

    def length(self, ctx: CaptureContext) -> Value:
        """Return the number of elements."""
        return Constant(len(self.items))

    def iterate(self, ctx: CaptureContext) -> Value:
        """Return an iterator from the start."""
        return SequenceIterator(self)

    def index_of(self, ctx: CaptureContext, key: Value) -> int | slice:
        """Return the known index."""
        key = ctx.real(key)
        if not key.is_constant():
            self.no("subscript by a value that is not known", DATA_DEPENDENT_VALUE)
        index = key.constant()
        if not isinstance(index, int | slice):
            ctx.throw(TypeError, f"{self.kind.__name__} indices must be integers or slices")
        return index

    def get_item(self, ctx: CaptureContext, key: Value) -> Value:
        """Return an element or a slice."""
        index = self.index_of(ctx, key)
        if isinstance(index, slice):
            return self.sliced(self.items[index])
        if not -len(self.items) <= index < len(self.items):
            ctx.throw(IndexError, f"{self.kind.__name__} index out of range")
        return self.element(ctx, index % len(self.items))

    def sliced(self, items: list[Value]) -> Value:
        """Return a sequence of the type that slicing gives."""
        raise NotImplementedError

    def call_method(self, ctx: CaptureContext, name: str, args: Arguments, kwargs: Keywords) -> Value:
        """Evaluate the methods that all sequences have."""
        if name in _DUNDERS and not kwargs:
            return call_dunder(ctx, self, name, args)
        if name == "index":
            return self._index(ctx, args)
        if name == "count":
            return Constant(sum(ctx.equal(item, args[0]) for item in self.elements(ctx)))
        self.no(f"method {name!r}")

    def _index(self, ctx: CaptureContext, args: Arguments) -> Value:
        bounds = [ctx.real(arg).constant() for arg in args[1:]]
        for position in range(*slice(*(bounds or [None])).indices(len(self.items))):
            if ctx.equal(self.element(ctx, position), args[0]):
                return Constant(position)
        wanted = ctx.real(args[0])
        if isinstance(self, ListValue) and wanted.is_constant():
            ctx.throw(ValueError, f"{wanted.constant()!r} is not in list")
        ctx.throw(ValueError, "tuple.index(x): x not in tuple")


class ListValue(SequenceValue):
    """A list, or a deque."""

    def __init__(
        self, items: list[Value], source: Source | None = None, kind: type = list, maximum: int | None = None
    ) -> None:
        super().__init__(items, kind, source)
        self.maximum = maximum

    def constant(self) -> object:
        """Return a fresh list."""
        values = [item.constant() for item in self.items]
        return values if self.kind is list else collections.deque(values, self.maximum)

    def sliced(self, items: list[Value]) -> Value:
        """Return a new list."""
        return ListValue(list(items))

    def get_attr(self, ctx: CaptureContext, name: str) -> Value:
        """Return a method."""
        if name == "__class__":
            return ctx.known(self.kind)
        if name == "maxlen" and self.kind is collections.deque:
            return Constant(self.maximum)
        if not hasattr(self.kind, name):
            ctx.throw(AttributeError, f"'{self.kind.__name__}' object has no attribute '{name}'")
        return MethodOf(self, name)

    def set_item(self, ctx: CaptureContext, key: Value, value: Value) -> None:
        """Replace an element or a slice."""
        index = self.index_of(ctx, key)
        if isinstance(index, slice):
            try:
                self.items[index] = ctx.unpack(value)
            except ValueError as error:
                ctx.throw(ValueError, *error.args)
        else:
            if not -len(self.items) <= index < len(self.items):
                ctx.throw(IndexError, "list assignment index out of range")
            self.items[index] = value
        ctx.mutated(self)

    def del_item(self, ctx: CaptureContext, key: Value) -> None:
        """Remove an element or a slice."""
        index = self.index_of(ctx, key)
        if isinstance(index, int) and not -len(self.items) <= index < len(self.items):
            ctx.throw(IndexError, "list assignment index out of range")
        del self.items[index]
        ctx.mutated(self)

    def call_method(self, ctx: CaptureContext, name: str, args: Arguments, kwargs: Keywords) -> Value:
        """Evaluate a list or deque method."""
        rule = _LIST_METHODS.get(name)
        if rule is None or (self.kind is list and name in _DEQUE_ONLY):
            return super().call_method(ctx, name, args, kwargs)
        return rule(self, ctx, args, kwargs)

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
        out.know(self, name)
        if self.items:
            out.line(f"{name}.extend(({', '.join(out.value(item) for item in self.items)},))")
        return name

    def replay(self, out: Rebuilder) -> list[str]:
        """Put the elements into the original."""
        name = out.value(self)
        elements = "".join(f"{out.value(item)}, " for item in self.items)
        if self.kind is list:
            return [f"{name}[:] = ({elements})"]
        return [f"{name}.clear()", f"{name}.extend(({elements}))"]


def _append(self: ListValue, ctx: CaptureContext, args: Arguments, kwargs: Keywords) -> Value:
    self.items.append(args[0])
    self.trim(left=False)
    ctx.mutated(self)
    return Constant(None)


def _append_left(self: ListValue, ctx: CaptureContext, args: Arguments, kwargs: Keywords) -> Value:
    self.items.insert(0, args[0])
    self.trim(left=True)
    ctx.mutated(self)
    return Constant(None)


def _extend(self: ListValue, ctx: CaptureContext, args: Arguments, kwargs: Keywords) -> Value:
    self.items.extend(ctx.unpack(args[0]))
    self.trim(left=False)
    ctx.mutated(self)
    return Constant(None)


def _insert(self: ListValue, ctx: CaptureContext, args: Arguments, kwargs: Keywords) -> Value:
    index = self.index_of(ctx, args[0])
    assert isinstance(index, int)
    self.items.insert(index, args[1])
    ctx.mutated(self)
    return Constant(None)


def _pop(self: ListValue, ctx: CaptureContext, args: Arguments, kwargs: Keywords) -> Value:
    index = self.index_of(ctx, args[0]) if args else -1
    assert isinstance(index, int)
    if not -len(self.items) <= index < len(self.items):
        ctx.throw(IndexError, "pop from empty list" if not self.items else "pop index out of range")
    element = self.element(ctx, index % len(self.items))
    del self.items[index]
    ctx.mutated(self)
    return element


def _pop_left(self: ListValue, ctx: CaptureContext, args: Arguments, kwargs: Keywords) -> Value:
    return _pop(self, ctx, [Constant(0)], {})


def _remove(self: ListValue, ctx: CaptureContext, args: Arguments, kwargs: Keywords) -> Value:
    for position, item in enumerate(self.elements(ctx)):
        if ctx.equal(item, args[0]):
            del self.items[position]
            ctx.mutated(self)
            return Constant(None)
    ctx.throw(ValueError, "list.remove(x): x not in list")


def _clear(self: ListValue, ctx: CaptureContext, args: Arguments, kwargs: Keywords) -> Value:
    self.items.clear()
    ctx.mutated(self)
    return Constant(None)


def _reverse(self: ListValue, ctx: CaptureContext, args: Arguments, kwargs: Keywords) -> Value:
    self.items.reverse()
    ctx.mutated(self)
    return Constant(None)


def _copy(self: ListValue, ctx: CaptureContext, args: Arguments, kwargs: Keywords) -> Value:
    return ListValue(list(self.items), kind=self.kind, maximum=self.maximum)


def _sort(self: ListValue, ctx: CaptureContext, args: Arguments, kwargs: Keywords) -> Value:
    self.items[:] = sort_values(ctx, self.elements(ctx), kwargs)
    ctx.mutated(self)
    return Constant(None)


def sort_values(ctx: CaptureContext, items: list[Value], kwargs: Keywords) -> list[Value]:
    """Return the items in the order of `sorted(items, key=, reverse=)`; the keys must be known."""
    key = ctx.real(kwargs.get("key", Constant(None)))
    reverse = ctx.real(kwargs.get("reverse", Constant(False)))
    no_key = isinstance(key, Constant) and key.value is None
    keys = [item if no_key else ctx.real(ctx.call(key, [item], {})) for item in items]
    if all(found.is_constant() for found in keys):
        known: list[Any] = [found.constant() for found in keys]
    else:
        known = [_SortKey(ctx, found) for found in keys]
    order = fold(ctx, sorted, range(len(items)), key=lambda i: known[i], reverse=bool(reverse.constant()))
    return [items[i] for i in order.constant()]  # type: ignore[attr-defined]  # a list of positions


class _SortKey:
    """A value that the real sort compares by evaluating `<` in the program."""

    def __init__(self, ctx: CaptureContext, value: Value) -> None:
        self.ctx = ctx
        self.value = value

    def __lt__(self, other: "_SortKey") -> bool:
        return self.ctx.less(self.value, other.value)


def _rotate(self: ListValue, ctx: CaptureContext, args: Arguments, kwargs: Keywords) -> Value:
    step = self.index_of(ctx, args[0]) if args else 1
    assert isinstance(step, int)
    rotated = collections.deque(self.items)
    rotated.rotate(step)
    self.items[:] = rotated
    ctx.mutated(self)
    return Constant(None)


def _extend_left(self: ListValue, ctx: CaptureContext, args: Arguments, kwargs: Keywords) -> Value:
    for item in ctx.unpack(args[0]):
        _append_left(self, ctx, [item], {})
    return Constant(None)


def _initialise(self: ListValue, ctx: CaptureContext, args: Arguments, kwargs: Keywords) -> Value:
    self.items[:] = ctx.unpack(args[0]) if args else []
    self.trim(left=False)
    ctx.mutated(self)
    return Constant(None)


_LIST_METHODS = {
    "append": _append, "appendleft": _append_left, "extend": _extend, "insert": _insert, "pop": _pop,
    "popleft": _pop_left, "remove": _remove, "clear": _clear, "reverse": _reverse, "copy": _copy, "sort": _sort,
    "rotate": _rotate, "extendleft": _extend_left, "__init__": _initialise,
}
_DEQUE_ONLY = frozenset({"appendleft", "popleft", "rotate", "extendleft"})


class TupleValue(SequenceValue):
    """A tuple: plain, named, `torch.Size`, or a result structure of torch."""

    def __init__(self, items: list[Value], source: Source | None = None, kind: type = tuple) -> None:
        super().__init__(items, kind, source)

    def constant(self) -> object:
        """Return the tuple."""
        return make_tuple(self.kind, [item.constant() for item in self.items])

    def sliced(self, items: list[Value]) -> Value:
        """Return a plain tuple; a slice of a Size is a Size."""
        return TupleValue(list(items), kind=torch.Size if self.kind is torch.Size else tuple)

    def hash_token(self, ctx: CaptureContext) -> Hashable:
        """Return the tuple of the elements' tokens."""
        return tuple(item.hash_token(ctx) for item in self.elements(ctx))

    def get_attr(self, ctx: CaptureContext, name: str) -> Value:
        """Return a field, a method, or an attribute of the class."""
        if name == "__class__":
            return ctx.known(self.kind)
        fields = tuple_fields(self.kind)
        if name in fields:
            return self.element(ctx, fields.index(name))
        if fields and name in ("_asdict", "_replace"):
            return MethodOf(self, name)
        return ctx.class_attr(self, self.kind, name)

    def call_method(self, ctx: CaptureContext, name: str, args: Arguments, kwargs: Keywords) -> Value:
        """Evaluate a tuple method."""
        if name == "numel" and self.kind is torch.Size and self.is_constant():
            sizes: Any = [item.constant() for item in self.items]
            return fold(ctx, torch.Size(sizes).numel)
        if name in ("_asdict", "_replace") and tuple_fields(self.kind):
            named = dict(zip(tuple_fields(self.kind), self.items, strict=True))
            if name == "_replace":
                return TupleValue([kwargs.get(key, value) for key, value in named.items()], kind=self.kind)
            return ctx.call(ctx.known(dict), [], named)
        return super().call_method(ctx, name, args, kwargs)

    def rebuild(self, out: Rebuilder) -> str:
        """Make a new tuple of the same class."""
        name = out.fresh()
        elements = "".join(f"{out.value(item)}, " for item in self.items)
        if self.kind is tuple:
            out.line(f"{name} = ({elements})")
        else:
            out.line(f"{name} = {out.inject(make_tuple)}({out.inject(self.kind)}, ({elements}))")
        return name


def tuple_fields(kind: type) -> tuple[str, ...]:
    """Return the field names of a named tuple or of a result structure."""
    fields = getattr(kind, "_fields", None)
    if fields is None and kind.__module__ == "torch.return_types":
        fields = getattr(kind, "__match_args__", ())
    return tuple(fields or ())


def make_tuple(kind: type, items: object) -> object:
    """Make a tuple of a class from its elements, without running a user's `__new__`."""
    if kind.__module__ == "torch.return_types" or kind is torch.Size:
        make: Callable[[object], object] = kind
        return make(items)
    return tuple.__new__(kind, items)  # type: ignore[arg-type]  # kind derives from tuple, items is iterable


class SliceValue(Value):
    """A slice whose bounds are not all known."""

    def __init__(self, parts: list[Value]) -> None:
        self.parts = parts

    def python_type(self) -> type:
        """Return slice."""
        return slice

    def is_constant(self) -> bool:
        """Return whether every bound can be fixed."""
        return all(part.is_constant() for part in self.parts)

    def constant(self) -> object:
        """Fix the bounds."""
        return slice(*(part.constant() for part in self.parts))

    def get_attr(self, ctx: CaptureContext, name: str) -> Value:
        """Return start, stop or step."""
        names = ("start", "stop", "step")
        if name in names:
            return self.parts[names.index(name)]
        self.no(f"attribute {name!r}")

    def rebuild(self, out: Rebuilder) -> str:
        """Make the slice."""
        return f"{out.inject(slice)}({', '.join(out.value(part) for part in self.parts)})"
