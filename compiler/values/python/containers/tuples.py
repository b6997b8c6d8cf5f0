"""Tuples: plain, named, `torch.Size`, result structures of torch."""

import types
from collections.abc import Callable, Hashable
from typing import Any

import torch

from ...constant import Constant, MethodOf, fold_call
from ...guard import look_up
from ...reasons import COPY, Break
from ...source import Source
from ...value import Arguments, CaptureContext, Keywords, Rebuilder, Value
from ..deep_copies import deep_copied
from .own_attributes import OwnAttributes
from .sequences import ReversedIterator, SequenceValue

_COPY_HOOKS = ("__copy__", "__deepcopy__", "__reduce__", "__reduce_ex__", "__getstate__", "__setstate__")


class TupleValue(OwnAttributes, SequenceValue):
    """A tuple: plain, named, `torch.Size`, or a result structure of torch."""

    def __init__(self, items: list[Value], source: Source | None = None, kind: type = tuple) -> None:
        super().__init__(items, kind, source)
        self.of_code: tuple[object, ...] | None = None  # the constant of a code object that it is

    def identity(self) -> object:
        """Return the value, or the constant of the code; there is one empty tuple only."""
        if self.of_code is not None:
            return self.of_code
        return () if self.kind is tuple and not self.items else self

    def defines_operators(self) -> bool:
        """Return whether it is of a class that a program may have derived."""
        return self.kind is not tuple and self.kind is not torch.Size

    def constant(self) -> object:
        """Return the tuple."""
        return make_tuple(self.kind, [item.constant() for item in self.items])

    def shallow_copy(self, ctx: CaptureContext) -> Value:
        """Return itself; an instance of another class is made anew."""
        self._demand_plain_copies(ctx)
        return self if self.kind is tuple else TupleValue(list(self.elements(ctx)), kind=self.kind)

    def deep_copy(self, ctx: CaptureContext, memo: dict[int, Value]) -> Value:
        """Return a tuple of copies."""
        self._demand_plain_copies(ctx)
        items = self.elements(ctx)
        copied = [deep_copied(ctx, item, memo) for item in items]
        if self.kind is not tuple:
            return TupleValue(copied, kind=self.kind)
        if id(self) in memo:  # one of its elements holds it, and has copied it
            return memo[id(self)]
        same = all(new.identity() is old.identity() for new, old in zip(copied, items, strict=True))
        return self if same else TupleValue(copied)

    def mirrored(self, part: Callable[[Value], object], seen: dict[int, object], ctx: CaptureContext) -> object:
        """Return a tuple of the class."""
        return make_tuple(self.kind, [part(item) for item in self.elements(ctx)])

    def stand_in(self) -> object:
        """Return a tuple of the class: empty, or of None where it has fields."""
        fields = len(tuple_fields(self.kind))
        if fields and self.kind.__module__ != "torch.return_types":
            return make_tuple(self.kind, (None,) * fields)
        return make_tuple(self.kind, ()) if issubclass(self.kind, tuple) else super().stand_in()

    def _demand_plain_copies(self, ctx: CaptureContext) -> None:
        """Break where the class says how it is copied, and where there are attributes to be copied."""
        self.demand_no_attributes(ctx, "copy")
        if any(isinstance(look_up(self.kind, name)[1], types.FunctionType) for name in _COPY_HOOKS):
            raise Break(COPY, f"copy of {self.describe()}")

    def reversed(self, ctx: CaptureContext) -> Value:
        """Return an iterator from the last element."""
        return ReversedIterator(self)

    def concatenate(self, ctx: CaptureContext, other: Value, inplace: bool) -> Value | None:
        """Return a new tuple; a Size on either side makes a Size, of whole numbers only."""
        if not isinstance(other, TupleValue) or torch.Size not in (self.kind, other.kind):
            return super().concatenate(ctx, other, inplace)
        elements = [*self.elements(ctx), *other.elements(ctx)]
        if not all(issubclass(item.python_type(), int) for item in elements):
            left, right = self._wholes(ctx), other._wholes(ctx)
            self.refuse(ctx, "+", lambda _: left + right)
        return TupleValue(elements, kind=torch.Size)

    def _wholes(self, ctx: CaptureContext) -> tuple[Any, ...]:
        """Return a tuple of the class whose elements have the types of these."""
        items: list[Any] = [
            1 if issubclass(item.python_type(), int) else item.stand_in() for item in self.elements(ctx)
        ]
        return torch.Size(items) if self.kind is torch.Size else tuple(items)

    def sliced(self, items: list[Value]) -> Value:
        """Return a plain tuple; a slice of a Size is a Size."""
        return TupleValue(list(items), kind=torch.Size if self.kind is torch.Size else tuple)

    def hash_token(self, ctx: CaptureContext) -> Hashable:
        """Return the tuple of the elements' tokens."""
        return tuple(item.hash_token(ctx) for item in self.elements(ctx))

    def get_attr(self, ctx: CaptureContext, name: str) -> Value:
        """Return a field, a method, or an attribute of the class."""
        if name == "__class__" and look_up(self.kind, name)[1] is vars(object)[name]:
            return ctx.known(self.kind)
        fields = tuple_fields(self.kind)
        if name in fields:
            return self.element(ctx, fields.index(name))
        if fields and name in ("_asdict", "_replace"):
            return MethodOf(self, name)
        own = self.own_attribute(ctx, name)
        if own is not None:
            return own
        return ctx.class_attr(self, self.kind, name)

    def call_method(self, ctx: CaptureContext, name: str, args: Arguments, kwargs: Keywords) -> Value:
        """Evaluate a tuple method."""
        own = self.own_attribute(ctx, name)
        if own is not None:
            return ctx.call(own, args, kwargs)
        if name == "numel" and self.kind is torch.Size and self.is_constant():
            sizes: Any = [item.constant() for item in self.items]
            return fold_call(ctx, Constant(torch.Size(sizes)), name, args, kwargs)
        if name == "__add__" and self.kind is not torch.Size and len(args) == 1 and not kwargs:
            joined = super().concatenate(ctx, ctx.realize(args[0]), False)  # the method does not ask the other side
            if joined is not None:
                return joined
        if name in ("_asdict", "_replace") and tuple_fields(self.kind):
            if args or not set(kwargs) <= set(tuple_fields(self.kind)):
                positions = [None] * len(args)
                names_no_field = (TypeError, ValueError)
                self.refuse(ctx, name, lambda own: getattr(own, name)(*positions, **kwargs), errors=names_no_field)
            named = dict(zip(tuple_fields(self.kind), self.items, strict=True))
            if name == "_replace":
                return TupleValue([kwargs.get(key, value) for key, value in named.items()], kind=self.kind)
            return ctx.call(ctx.known(dict), [], named)
        return super().call_method(ctx, name, args, kwargs)

    def class_name(self, out: Rebuilder) -> str:
        """Return the expression of the class."""
        return out.class_name(self.kind)

    def rebuild(self, out: Rebuilder) -> str:
        """Make a new tuple of the same class."""
        if self.of_code is not None:
            return out.inject(self.of_code)
        name = out.fresh()
        elements = "".join(f"{out.value(item)}, " for item in self.items)
        literals = all(isinstance(item, Constant) for item in self.items)
        if self.kind is tuple and self.items and literals:  # a display of literals would be one object for all calls
            out.line(f"{name} = {out.inject(tuple)}([{elements}])")
        elif self.kind is tuple:
            out.line(f"{name} = ({elements})")
        else:
            out.line(f"{name} = {out.inject(make_tuple)}({self.class_name(out)}, ({elements}))")
        return name


def tuple_fields(kind: type) -> tuple[str, ...]:
    """Return the field names of a named tuple or of a result structure."""
    of_torch = kind.__module__ == "torch.return_types"
    fields = look_up(kind, "__match_args__" if of_torch else "_fields")[1]  # by getattr it would ask the metaclass
    return tuple(fields) if isinstance(fields, tuple | list) else ()


def make_tuple(kind: type, items: object) -> object:
    """Make a tuple of a class from its elements, without running a user's `__new__`."""
    if kind.__module__ == "torch.return_types" or kind is torch.Size:
        make: Callable[[object], object] = kind
        return make(items)
    return tuple.__new__(kind, items)  # type: ignore[arg-type]  # kind derives from tuple, items is iterable
