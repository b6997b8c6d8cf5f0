"""What lists and tuples share: elements, iteration, comparison; and slices whose bounds are not all known."""

import collections
import operator
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch

from ...constant import Constant, Known
from ...operator_table import COMPARISONS, Comparison
from ...reasons import ATTRIBUTE, BUILTIN_METHOD, CANNOT_REBUILD, DATA_DEPENDENT_VALUE, TEXT
from ...source import Source
from ...type_attributes import type_attribute
from ...value import Arguments, CaptureContext, Keywords, Rebuilder, Value

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
_COMPARISONS = {record.method: record for record in COMPARISONS.values()}
MUTATED_DEQUE = "deque mutated during iteration"
_REPEATS = frozenset({"__mul__", "__rmul__", "__imul__"})  # the methods refuse in other words than the operator
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
    except Exception:
        answer = None
        if name in _REPEATS and not hasattr(ctx.realize(args[0]).python_type(), "__index__"):
            value.refuse(ctx, name, lambda container, count: getattr(container, name)(count), args[0])
    if answer is NotImplemented:
        return Constant(NotImplemented)
    if name in _COMPARISONS:  # the method does not ask the other side, whatever its class
        other = ctx.realize(args[0])
        compared = value.compare(ctx, _COMPARISONS[name], other if other.contents is None else other.contents, False)
        if compared is not None:
            return compared
    return ctx.call(ctx.known(_OPERATORS[name]), [value, *args], {})


def _family(value: Value) -> type:
    return next(kind for kind in (list, tuple, collections.deque, object) if issubclass(value.python_type(), kind))


class ElementIterator(Value):
    """An iterator over the elements of a container value."""

    always_true = True
    equal_by_identity = True

    def iterate(self, ctx: CaptureContext) -> Value:
        """Return itself."""
        return self

    def length_hint(self) -> int:
        """Return how many elements are left, as far as the iterator knows."""
        raise NotImplementedError

    def call_method(self, ctx: CaptureContext, name: str, args: Arguments, kwargs: Keywords) -> Value:
        """Evaluate the explicit special methods."""
        if name == "__next__":
            return self.next(ctx)
        if name == "__iter__":
            return self
        if name == "__length_hint__":
            return Constant(self.length_hint())
        self.unsupported(f"method {name!r}", BUILTIN_METHOD)

    def get_attr(self, ctx: CaptureContext, name: str) -> Value:
        """Return a method."""
        return type_attribute(ctx, self, name)


class TableIterator(ElementIterator):
    """An iterator over a dictionary or a set. real: one over a real container that has every change of the evaluated.

    It says which element comes next, when it ends, and what it refuses.
    """

    def __init__(self, function: Callable[[Any], Any], over: Value, real: Any) -> None:
        self.function = function
        self.over = over
        self.real = real
        self.steps = 0
        self.ended = False
        self.refused = False

    def python_type(self) -> type:
        """Return the type of the real one."""
        return type(self.real)

    def stand_in(self) -> object:
        """Return an iterator over nothing."""
        return self.function(self.over.stand_in())

    def changed(self) -> bool:
        """Return whether the container has other keys, or has them elsewhere, than when this was made."""
        raise NotImplementedError

    def demand_order(self) -> None:
        """Raise Break where the real container may be in another order than the program's."""
        raise NotImplementedError

    def element(self, ctx: CaptureContext, found: Any) -> Value:
        """Return the element for what the real iterator gave."""
        raise NotImplementedError

    def next(self, ctx: CaptureContext) -> Value:
        """Give the next element, or raise what the real iterator raises."""
        if self.changed() and not self.ended and not self.refused:
            self.demand_order()
        try:
            found = next(self.real)
        except StopIteration:
            self.ended = True
            ctx.throw(StopIteration)
        except RuntimeError as error:
            self.refused = True
            ctx.throw(RuntimeError, *error.args)
        element = self.element(ctx, found)
        self.steps += 1
        return element

    def length_hint(self) -> int:
        """Ask the real one."""
        return operator.length_hint(self.real)

    def rebuild(self, out: Rebuilder) -> str:
        """Make an iterator at the same position; an ended one needs no container."""
        name = out.fresh()
        if self.ended:
            out.line(f"{name} = {out.inject(self.function)}({out.inject(self.over.stand_in())})")
            out.line(f"{out.inject(next)}({name}, None)")
            return name
        if self.changed() or self.refused:  # the changes are made after this
            self.unsupported("handing over an iterator over a container that has changed", CANNOT_REBUILD)
        out.line(f"{name} = {iterating(self.function, self.over, out)}")
        if self.steps:
            step = out.fresh()
            out.line(f"for {step} in {out.inject(range)}({self.steps}): {out.inject(next)}({name}, None)")
        return name


class SequenceIterator(ElementIterator):
    """An iterator over the elements of a sequence value; sees later changes, as Python's does."""

    def __init__(self, owner: "SequenceValue", position: int = 0) -> None:
        self.owner = owner
        self.position = position
        self.kind: type | None = None  # where it is not that of lists or tuples
        self.made_by: tuple[Callable[[Any], Any], Value] | None = None
        """What gives such an iterator, called with what, where that is not `iter` of the owner."""

    def python_type(self) -> type:
        """Return the iterator type."""
        if self.kind is not None:
            return self.kind
        return type(self.stand_in())

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
        if self.made_by is not None:
            function, over = self.made_by
            return function(over.stand_in())
        return iter(()) if issubclass(self.owner.kind, tuple) else iter([])

    def length_hint(self) -> int:
        """Return how many elements are left."""
        return max(0, len(self.owner.items) - self.position)

    def rebuild(self, out: Rebuilder) -> str:
        """Make an iterator at the same position."""
        name = out.fresh()
        function, over = self.made_by or (iter, self.owner)
        out.line(f"{name} = {iterating(function, over, out)}")
        past_the_end = self.position > len(self.owner.items)
        steps = min(self.position, len(self.owner.items))
        if self.position and self.made_by is None and issubclass(self.owner.kind, list | tuple):
            out.line(f"{out.inject(_stand_at)}({name}, {out.value(self.owner)}, {steps}, {past_the_end})")
        elif self.position:
            step = out.fresh()
            out.line(f"for {step} in {out.inject(range)}({steps}): {out.inject(next)}({name}, None)")
            if past_the_end:
                out.line(f"{out.inject(next)}({name}, None)")
        return name


def iterating(function: Callable[[Any], Any], over: Value, out: Rebuilder) -> str:
    """Return the expression of an iterator over a container; over what an instance holds, past its methods."""
    if over.holder is not None:
        kind = over.python_type()
        function = getattr(kind, "__iter__" if function is iter else "__reversed__")
    return f"{out.inject(function)}({out.value(over)})"


def _stand_at(iterator: Any, sequence: Any, place: int, ended: bool) -> None:
    """Let an iterator ask for a place next, or for none; the changes of a list may be made after this."""
    if type(iterator) not in _INDEXED:
        for _ in range(place + ended):
            next(iterator, None)
    elif ended:
        iterator.__setstate__(len(sequence))
        next(iterator, None)
    else:
        with _long_enough(sequence, place):  # Python would move it to the end that there is
            iterator.__setstate__(place)


_INDEXED: tuple[type, ...] = (type(iter([])), type(iter(())))


@contextmanager
def _long_enough(sequence: Any, length: int) -> Iterator[None]:
    """Let a list have at least as many elements in the block."""
    absent = length - len(sequence)
    if absent > 0:
        list.extend(sequence, [None] * absent)
    try:
        yield
    finally:
        if absent > 0:
            list.__delitem__(sequence, slice(-absent, None))


class ReversedIterator(SequenceIterator):
    """An iterator over a list or tuple from its last element; sees later changes, as Python's does.

    position: how many elements it has given; it counts down from the length that the sequence had at first.
    """

    def __init__(self, owner: "SequenceValue") -> None:
        super().__init__(owner)
        self.made_by = reversed, owner
        self.last = len(owner.items) - 1

    def next(self, ctx: CaptureContext) -> Value:
        """Give the element before the one given last; there is none after the sequence has become too short."""
        place = self.last - self.position
        if not 0 <= place < len(self.owner.items):
            self.position = 1 << 62
            ctx.throw(StopIteration)
        self.position += 1
        return self.owner.element(ctx, place)

    def length_hint(self) -> int:
        """Return what is left to count down."""
        left = max(0, self.last + 1 - self.position)
        return left if left <= len(self.owner.items) else 0

    def rebuild(self, out: Rebuilder) -> str:
        """Make an iterator at the same position."""
        name = out.fresh()
        place = max(-1, self.last - self.position)
        out.line(f"{name} = {out.inject(_reversed_from)}({out.value(self.owner)}, {place})")
        return name


def _reversed_from(sequence: Any, place: int) -> object:
    """Return a reversed iterator that asks for a place next, which a list that became shorter may not have."""
    with _long_enough(sequence, place + 1):  # Python would move it to the end that there is
        iterator: Any = list.__reversed__(sequence) if isinstance(sequence, list) else reversed(sequence)
        iterator.__setstate__(place)
    return iterator


class SequenceValue(Value):
    """What lists and tuples share."""

    equal_by_identity = True  # with another sequence `compare` has answered

    kind: type

    def __init__(self, items: list[Value], kind: type, source: Source | None = None) -> None:
        self.items = items
        self.kind = kind
        self.source = source
        self.moves = 0  # how often its elements were moved, added or removed

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
        try:
            (None,) * (len(self.items) * max(times, 0))
        except (OverflowError, MemoryError) as error:
            ctx.throw(type(error), *error.args)
        return times

    def compare(self, ctx: CaptureContext, record: Comparison, other: Value, reflected: bool) -> Value | None:
        """Compare element by element with a sequence of the same family."""
        if not isinstance(other, SequenceValue):
            return None
        if _family(self) is not _family(other):
            if record.asks_equality:
                return Constant(record.symbol == "!=")
            self.refuse(ctx, record.symbol, record.function, other)
        early = record.asks_equality and not issubclass(self.kind, tuple)  # tuples are compared before they are counted
        if early and len(self.items) != len(other.items):
            return Constant(record.symbol == "!=")
        for position, (a, b) in enumerate(self._beside(ctx, other)):
            if not ctx.same_or_equal(a, b):
                if self.kind is list and position >= min(len(self.items), len(other.items)):
                    break  # they are no longer there: what is left of the lists is compared
                if self.kind is collections.deque:  # asks the same elements again, and for the truth of the answer
                    return Constant(ctx.realize(ctx.call(ctx.known(record.function), [a, b], {})).truth(ctx))
                unequal = Constant(record.symbol == "!=")
                return unequal if record.asks_equality else ctx.call(ctx.known(record.function), [a, b], {})
        return Constant(bool(record.function(len(self.items), len(other.items))))

    def _beside(self, ctx: CaptureContext, other: "SequenceValue") -> Iterator[tuple[Value, Value]]:
        """Yield the elements of two sequences, as long as both have one: comparing some may change the others."""
        moves, position = (self.moves, other.moves), 0
        while True:
            if self.kind is collections.deque and (self.moves, other.moves) != moves:
                ctx.throw(RuntimeError, MUTATED_DEQUE)
            if position >= min(len(self.items), len(other.items)):
                return
            yield self.element(ctx, position), other.element(ctx, position)
            position += 1

    def found_equal(
        self, ctx: CaptureContext, item: Value, bounds: slice = slice(None), refusal: type[Exception] = RuntimeError
    ) -> Iterator[int]:
        """Yield where an equal element is; comparing may change the sequence, after which a deque goes no further.

        refusal: what it raises then; for IndexError, as `remove` does, even where the element was equal.
        """
        moves, position, size = self.moves, bounds.start or 0, len(self.items)
        stop = sys.maxsize if bounds.stop is None else bounds.stop
        position, stop = (max(bound + size, 0) if bound < 0 else bound for bound in (position, stop))
        while position < min(stop, len(self.items)):
            equal = ctx.same_or_equal(self.element(ctx, position), item)
            if equal and refusal is RuntimeError:
                yield position
            if self.kind is collections.deque and self.moves != moves:
                ctx.throw(refusal, MUTATED_DEQUE)
            if equal and refusal is not RuntimeError:
                yield position
            position += 1

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
        if not isinstance(index, int | slice) or (isinstance(index, int) and not -sys.maxsize <= index <= sys.maxsize):
            self.refuse(ctx, "subscript", operator.getitem, key)
        if isinstance(index, slice):
            try:
                index.indices(0)
            except (TypeError, ValueError) as error:
                ctx.throw(type(error), *error.args)
        return index

    def get_item(self, ctx: CaptureContext, key: Value) -> Value:
        """Return an element or a slice."""
        index = self.index_of(ctx, key)
        if isinstance(index, slice):
            return self.sliced(self.items[index])
        if not -len(self.items) <= index < len(self.items):
            ctx.throw(
                IndexError, f"{'tuple' if issubclass(self.kind, tuple) else self.kind.__name__} index out of range"
            )
        return self.element(ctx, index % len(self.items))

    def sliced(self, items: list[Value]) -> Value:
        """Return a sequence of the type that slicing gives."""
        raise NotImplementedError

    def call_method(self, ctx: CaptureContext, name: str, args: Arguments, kwargs: Keywords) -> Value:
        """Evaluate the methods that all sequences have."""
        if name == "__add__" and len(args) == 1 and not kwargs:  # it does not ask the other side
            other = ctx.realize(args[0])
            joined = self.concatenate(ctx, other if other.contents is None else other.contents, False)
            return joined or self.refuse(ctx, name, lambda own, other: own.__add__(other), other)
        if name in _DUNDERS and not kwargs:
            return call_dunder(ctx, self, name, args)
        if name == "index":
            return self._index(ctx, args)
        if name == "count":
            return Constant(sum(1 for _ in self.found_equal(ctx, ctx.realize(args[0]))))
        self.unsupported(f"method {name!r}", BUILTIN_METHOD)

    def _index(self, ctx: CaptureContext, args: Arguments) -> Value:
        bounds = [ctx.realize(arg).as_index(ctx) for arg in args[1:]]
        if any(not issubclass(bound.python_type(), int) for bound in bounds):
            self.refuse(ctx, "method 'index'", lambda own, *rest: own.index(None, *rest), *bounds)
        known: list[Any] = [bound.constant() for bound in bounds]
        item = ctx.realize(args[0])
        for position in self.found_equal(ctx, item, slice(*[*known, None, None][:2])):
            return Constant(position)
        if issubclass(self.kind, tuple):
            ctx.throw(ValueError, "tuple.index(x): x not in tuple")
        text = (
            repr(item.constant()) if item.is_constant() else self.unsupported("the words for what is not in it", TEXT)
        )
        ctx.throw(ValueError, f"{text} is not in {self.kind.__name__}")


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

    def shallow_copy(self, ctx: CaptureContext) -> Value:
        """Return itself."""
        return self

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
        name = out.fresh()
        out.line(f"{name} = {out.inject(slice)}({', '.join(out.value(part) for part in self.parts)})")
        return name
