"""Lists, tuples (named ones, `torch.Size`, result structures of torch), deques and slices."""

import collections
import operator
from collections.abc import Callable, Hashable
from typing import Any

import torch

from ...constant import Constant, Known, MethodOf, fold
from ...operator_table import Comparison
from ...reasons import ATTRIBUTE, BUILTIN_METHOD, DATA_DEPENDENT_VALUE, TEXT
from ...source import Source
from ...value import Arguments, CaptureContext, Keywords, Rebuilder, Value, deep_copied

_OPERATORS: dict[str, Callable[..., object]] = {
    "__eq__": operator.eq,
    "__ne__": operator.ne,
    "__lt__": operator.lt,
    "__le__": operator.le,
    "__gt__": operator.gt,
    "__ge__": operator.ge,
    "__add__": operator.add,
    "__mul__": operator.mul,
    "__rmul__": operator.mul,
    "__or__": operator.or_,
    "__and__": operator.and_,
    "__sub__": operator.sub,
    "__xor__": operator.xor,
    "__iadd__": operator.iadd,
    "__imul__": operator.imul,
    "__ior__": operator.ior,
    "__iand__": operator.iand,
    "__isub__": operator.isub,
    "__ixor__": operator.ixor,
    "__hash__": hash,
    "__repr__": repr,
    "__str__": str,
}
_DUNDERS = frozenset({"__len__", "__getitem__", "__setitem__", "__delitem__", "__contains__", "__iter__", *_OPERATORS})


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
        return Constant(None)
    if name == "__delitem__":
        value.del_item(ctx, args[0])
        return Constant(None)
    if name not in _OPERATORS:
        value.unsupported(f"method {name!r}", BUILTIN_METHOD)
    try:
        answer = getattr(value.stand_in(), name)(*(ctx.realize(arg).stand_in() for arg in args))
    except TypeError:
        answer = None
    if answer is NotImplemented:
        return Constant(NotImplemented)
    return ctx.call(ctx.known(_OPERATORS[name]), [value, *args], {})


def _family(value: Value) -> type:
    return next(kind for kind in (list, tuple, collections.deque, object) if issubclass(value.python_type(), kind))


class SequenceIterator(Value):
    """An iterator over the elements of a sequence value; sees later changes, as Python's does."""

    def __init__(self, owner: "SequenceValue", position: int = 0) -> None:
        self.owner = owner
        self.position = position
        self.kind: type | None = None  # where it is not that of lists or tuples

    def equal_by_identity(self) -> bool:
        """Return True."""
        return True

    def python_type(self) -> type:
        """Return the iterator type."""
        if self.kind is not None:
            return self.kind
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

    def stand_in(self) -> object:
        """Return an iterator over nothing."""
        return iter([]) if isinstance(self.owner, ListValue) else iter(())

    def call_method(self, ctx: CaptureContext, name: str, args: Arguments, kwargs: Keywords) -> Value:
        """Evaluate the explicit special methods."""
        if name == "__next__":
            return self.next(ctx)
        if name == "__iter__":
            return self
        if name == "__length_hint__":
            return Constant(max(0, len(self.owner.items) - self.position))
        self.unsupported(f"method {name!r}", BUILTIN_METHOD)

    def get_attr(self, ctx: CaptureContext, name: str) -> Value:
        """Return a method."""
        if not hasattr(self.python_type(), name):
            self.refuse(ctx, f"attribute {name!r}", lambda value: getattr(value, name), reason=ATTRIBUTE)
        return MethodOf(self, name)

    def rebuild(self, out: Rebuilder) -> str:
        """Make an iterator at the same position."""
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
        element = ctx.realize(self.items[position])
        self.items[position] = element
        return element

    def elements(self, ctx: CaptureContext) -> list[Value]:
        """Return all elements."""
        return [self.element(ctx, position) for position in range(len(self.items))]

    def graph_argument(self, ctx: CaptureContext) -> tuple[object, object]:
        """Return a list or tuple of the elements' arguments."""
        pairs = [ctx.realize(item).graph_argument(ctx) for item in self.elements(ctx)]
        kind = list if self.kind is list else tuple
        if self.kind not in (list, tuple, torch.Size):
            return super().graph_argument(ctx)
        return kind(node for node, _ in pairs), kind(fake for _, fake in pairs)

    def unpacked(self, ctx: CaptureContext) -> list[Value]:
        """Return all elements."""
        return self.elements(ctx)

    def equal_by_identity(self) -> bool:
        """Return True: with another sequence `compare` has answered."""
        return True

    def concatenate(self, ctx: CaptureContext, other: Value, inplace: bool) -> Value | None:
        """Return a new sequence; None for one of another family."""
        if not isinstance(other, SequenceValue) or _family(self) is not _family(other):
            return None
        return self.sliced([*self.items, *other.items])

    def repeat(self, ctx: CaptureContext, count: Value, reflected: bool, inplace: bool) -> Value | None:
        """Return a new sequence."""
        return self.sliced(self.items * self._repetitions(ctx, count, reflected, inplace))

    def _repetitions(self, ctx: CaptureContext, count: Value, reflected: bool, inplace: bool) -> int:
        number = ctx.realize(count).as_index(ctx)
        times = number.constant() if number.is_constant() else None
        odd = reflected and inplace and isinstance(count, Known)  # it asks a class made in Python for a `*=` of its own
        if reflected and (odd or not isinstance(times, int)):
            count.refuse(ctx, "*", operator.imul if inplace else operator.mul, self)
        if not isinstance(times, int):
            self.refuse(ctx, "repetition", operator.mul, number)
        return times

    def compare(self, ctx: CaptureContext, record: Comparison, other: Value, reflected: bool) -> Value | None:
        """Compare element by element with a sequence of the same family."""
        if not isinstance(other, SequenceValue):
            return None
        if _family(self) is not _family(other):
            if record.asks_equality:
                return Constant(record.symbol == "!=")
            self.refuse(ctx, record.symbol, record.function, other)
        first, second = self.elements(ctx), other.elements(ctx)
        if record.asks_equality:
            same = len(first) == len(second) and all(ctx.equal(a, b) for a, b in zip(first, second, strict=True))
            return Constant(same == (record.symbol == "=="))
        for a, b in zip(first, second, strict=False):
            if not ctx.equal(a, b):
                return ctx.call(ctx.known(record.function), [a, b], {})
        return Constant(bool(record.function(len(first), len(second))))

    def reversed(self, ctx: CaptureContext) -> Value:
        """Return an iterator from the last element."""
        return SequenceIterator(TupleValue(self.elements(ctx)[::-1]))

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
        key = ctx.realize(key).as_index(ctx)
        if not key.is_constant():
            if not issubclass(key.python_type(), torch.Tensor):
                self.refuse(ctx, "subscript", operator.getitem, key)
            self.unsupported("subscript by a value that is not known", DATA_DEPENDENT_VALUE)
        index = key.constant()
        if not isinstance(index, int | slice) and hasattr(type(index), "__index__"):
            index = operator.index(index)  # type: ignore[arg-type]  # it has the method
        if not isinstance(index, int | slice):
            self.refuse(ctx, "subscript", operator.getitem, key)
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

    def stand_in(self) -> object:
        """Return an empty sequence of the type."""
        if self.kind in (list, collections.deque):
            return self.kind()
        fields = len(tuple_fields(self.kind))
        if fields and self.kind.__module__ != "torch.return_types":
            return make_tuple(self.kind, (None,) * fields)
        return make_tuple(self.kind, ()) if issubclass(self.kind, tuple) else super().stand_in()

    def call_method(self, ctx: CaptureContext, name: str, args: Arguments, kwargs: Keywords) -> Value:
        """Evaluate the methods that all sequences have."""
        if name in _DUNDERS and not kwargs:
            return call_dunder(ctx, self, name, args)
        if name in _ARITY and (kwargs or not _ARITY[name][0] <= len(args) <= _ARITY[name][1]):
            self.refuse(
                ctx,
                f"method {name!r}",
                lambda value, *others: getattr(value, name)(*others, **kwargs),
                *args,
                reason=BUILTIN_METHOD,
            )
        if name == "index":
            return self._index(ctx, args)
        if name == "count":
            return Constant(sum(ctx.equal(item, args[0]) for item in self.elements(ctx)))
        self.unsupported(f"method {name!r}", BUILTIN_METHOD)

    def _index(self, ctx: CaptureContext, args: Arguments) -> Value:
        bounds = [ctx.realize(arg).constant() for arg in args[1:]]
        for position in range(*slice(*[*bounds, None, None][:2]).indices(len(self.items))):
            if ctx.equal(self.element(ctx, position), args[0]):
                return Constant(position)
        item = ctx.realize(args[0])
        if not isinstance(self, ListValue):
            ctx.throw(ValueError, "tuple.index(x): x not in tuple")
        text = (
            repr(item.constant()) if item.is_constant() else self.unsupported("the words for what is not in it", TEXT)
        )
        ctx.throw(ValueError, f"{text} is not in {self.kind.__name__}")


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
        self.items[:] = self.items * self._repetitions(ctx, count, reflected, inplace)
        self.trim(left=False)
        ctx.mutated(self)
        return self

    def initialise_instance(self, ctx: CaptureContext, args: Arguments, kwargs: Keywords) -> None:
        """Evaluate `__init__`; a deque's second argument is its bound."""
        if self.kind is collections.deque:
            bound = ctx.realize(args[1] if len(args) > 1 else kwargs.get("maxlen", Constant(None))).constant()
            self.maximum = bound if isinstance(bound, int) else None
            args, kwargs = args[:1], {}
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

    def sliced(self, items: list[Value]) -> Value:
        """Return a new list, or a deque."""
        sequence = ListValue(list(items), kind=self.kind, maximum=self.maximum)
        sequence.trim(left=False)
        return sequence

    def get_item(self, ctx: CaptureContext, key: Value) -> Value:
        """Return an element or a slice; deques have no slices."""
        index = self.index_of(ctx, key)
        if isinstance(index, slice) and self.kind is collections.deque:
            self.refuse(ctx, "subscript", lambda value: value[:])
        return super().get_item(ctx, Constant(index))

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
            if self.kind is collections.deque:
                self.refuse(ctx, "item assignment", lambda sequence: sequence.__setitem__(index, ()))
            if type(ctx.realize(value)).iterate is Value.iterate:
                ctx.throw(TypeError, _NO_ITERABLE if index.step in (None, 1) else _NO_ITERABLE_STEP)
            try:
                self.items[index] = ctx.unpack(value)
            except ValueError as error:
                ctx.throw(ValueError, *error.args)
        else:
            if not -len(self.items) <= index < len(self.items):
                words = "deque index out of range" if self.kind is collections.deque else _ASSIGNED_OUTSIDE
                ctx.throw(IndexError, words)
            self.items[index] = value
        ctx.mutated(self)

    def del_item(self, ctx: CaptureContext, key: Value) -> None:
        """Remove an element or a slice."""
        index = self.index_of(ctx, key)
        if isinstance(index, int) and not -len(self.items) <= index < len(self.items):
            ctx.throw(IndexError, "deque index out of range" if self.kind is collections.deque else _ASSIGNED_OUTSIDE)
        if isinstance(index, slice) and self.kind is collections.deque:
            self.refuse(ctx, "item deletion", lambda value: value.__delitem__(index))
        del self.items[index]
        ctx.mutated(self)

    def call_method(self, ctx: CaptureContext, name: str, args: Arguments, kwargs: Keywords) -> Value:
        """Evaluate a list or deque method."""
        rule = _LIST_METHODS.get(name)
        if rule is None or (self.kind is list and name in _DEQUE_ONLY):
            return super().call_method(ctx, name, args, kwargs)
        if name in _ARITY and (kwargs or not _ARITY[name][0] <= len(args) <= _ARITY[name][1]):
            self.refuse(
                ctx,
                f"method {name!r}",
                lambda value, *others: getattr(value, name)(*others, **kwargs),
                *args,
                reason=BUILTIN_METHOD,
            )
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
        out.bind(self, name)
        if self.items:
            out.line(f"{name}.extend(({', '.join(out.value(item) for item in self.items)},))")
        return name

    def replay(self, out: Rebuilder) -> list[str]:
        """Put the elements into the original."""
        name = out.value(self)
        elements = "".join(f"{out.value(item)}, " for item in self.items)
        if self.native:
            clear, extend = (out.inject(self.kind.__dict__[word]) for word in ("clear", "extend"))
            return [f"{clear}({name})", f"{extend}({name}, ({elements}))"]
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
    index = _whole_number(self, ctx, "insert", args[0], Constant(None))
    if self.maximum is not None and len(self.items) >= self.maximum:
        ctx.throw(IndexError, "deque already at its maximum size")
    self.items.insert(index, args[1])
    ctx.mutated(self)
    return Constant(None)


def _whole_number(self: ListValue, ctx: CaptureContext, name: str, value: Value, *others: Value) -> int:
    """Return a known argument that has to be a whole number."""
    value = ctx.realize(value).as_index(ctx)
    number = value.constant() if value.is_constant() else None
    if not isinstance(number, int):
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
    index = _whole_number(self, ctx, "pop", args[0]) if args else -1
    if not -len(self.items) <= index < len(self.items):
        empty = "pop from empty list" if self.kind is list else "pop from an empty deque"
        ctx.throw(IndexError, empty if not self.items else "pop index out of range")
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
    target = ctx.realize(args[0])
    if self.kind is list:
        ctx.throw(ValueError, "list.remove(x): x not in list")
    text = (
        repr(target.constant()) if target.is_constant() else self.unsupported("the words for what is not in it", TEXT)
    )
    ctx.throw(ValueError, f"{text} is not in deque")


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
    key = ctx.realize(kwargs.get("key", Constant(None)))
    reverse = ctx.realize(kwargs.get("reverse", Constant(False)))
    no_key = isinstance(key, Constant) and key.value is None
    keys = [item if no_key else ctx.realize(ctx.call(key, [item], {})) for item in items]
    if all(value.is_constant() for value in keys):
        known: list[Any] = [value.constant() for value in keys]
    else:
        known = [_SortKey(ctx, value) for value in keys]
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
    step = _whole_number(self, ctx, "rotate", args[0]) if args else 1
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
_ARITY = {
    "append": (1, 1),
    "appendleft": (1, 1),
    "extend": (1, 1),
    "insert": (2, 2),
    "pop": (0, 1),
    "popleft": (0, 0),
    "remove": (1, 1),
    "clear": (0, 0),
    "reverse": (0, 0),
    "copy": (0, 0),
    "rotate": (0, 1),
    "extendleft": (1, 1),
    "index": (1, 3),
    "count": (1, 1),
}
_ASSIGNED_OUTSIDE = "list assignment index out of range"
_NO_ITERABLE = "can only assign an iterable"
_NO_ITERABLE_STEP = "must assign iterable to extended slice"


class TupleValue(SequenceValue):
    """A tuple: plain, named, `torch.Size`, or a result structure of torch."""

    def __init__(self, items: list[Value], source: Source | None = None, kind: type = tuple) -> None:
        super().__init__(items, kind, source)

    def identity(self) -> object:
        """Return the value; there is one empty tuple only."""
        return () if self.kind is tuple and not self.items else self

    def constant(self) -> object:
        """Return the tuple."""
        return make_tuple(self.kind, [item.constant() for item in self.items])

    def shallow_copy(self, ctx: CaptureContext) -> Value:
        """Return itself."""
        return self

    def deep_copy(self, ctx: CaptureContext, memo: dict[int, Value]) -> Value:
        """Return a tuple of copies."""
        return TupleValue([deep_copied(ctx, item, memo) for item in self.elements(ctx)], kind=self.kind)

    def mirrored(self, part: Callable[[Value], object], seen: dict[int, object], ctx: CaptureContext) -> object:
        """Return a tuple of the class."""
        return make_tuple(self.kind, [part(item) for item in self.elements(ctx)])

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
            if args or not set(kwargs) <= set(tuple_fields(self.kind)):
                self.refuse(ctx, name, lambda value: getattr(value, name)(*([None] * len(args)), **kwargs))
            named = dict(zip(tuple_fields(self.kind), self.items, strict=True))
            if name == "_replace":
                return TupleValue([kwargs.get(key, value) for key, value in named.items()], kind=self.kind)
            return ctx.call(ctx.known(dict), [], named)
        return super().call_method(ctx, name, args, kwargs)

    def set_attr(self, ctx: CaptureContext, name: str, value: Value) -> None:
        """Raise what Python raises; instances of subclasses may have attributes, which are not kept."""
        if getattr(self.kind, "__dictoffset__", 0):
            self.unsupported(f"setting attribute {name!r}", ATTRIBUTE)
        self.refuse(ctx, f"setting attribute {name!r}", lambda owner: setattr(owner, name, None), reason=ATTRIBUTE)

    def class_name(self, out: Rebuilder) -> str:
        """Return the expression of the class."""
        return out.class_name(self.kind)

    def rebuild(self, out: Rebuilder) -> str:
        """Make a new tuple of the same class."""
        name = out.fresh()
        elements = "".join(f"{out.value(item)}, " for item in self.items)
        if self.kind is tuple:
            out.line(f"{name} = ({elements})")
        else:
            out.line(f"{name} = {out.inject(make_tuple)}({self.class_name(out)}, ({elements}))")
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

    def graph_argument(self, ctx: CaptureContext) -> tuple[object, object]:
        """Return a slice of the bounds' arguments."""
        pairs = [ctx.realize(part).graph_argument(ctx) for part in self.parts]
        return slice(*(node for node, _ in pairs)), slice(*(fake for _, fake in pairs))

    def is_constant(self) -> bool:
        """Return whether every bound can be fixed."""
        return all(part.is_constant() for part in self.parts)

    def constant(self) -> object:
        """Fix the bounds."""
        return slice(*(part.constant() for part in self.parts))

    def as_index(self, ctx: CaptureContext) -> Value:
        """Ask bounds that are objects for their number."""
        return SliceValue([ctx.realize(part).as_index(ctx) for part in self.parts])

    def get_attr(self, ctx: CaptureContext, name: str) -> Value:
        """Return start, stop or step."""
        names = ("start", "stop", "step")
        if name in names:
            return self.parts[names.index(name)]
        self.unsupported(f"attribute {name!r}", ATTRIBUTE)

    def rebuild(self, out: Rebuilder) -> str:
        """Make the slice."""
        return f"{out.inject(slice)}({', '.join(out.value(part) for part in self.parts)})"
