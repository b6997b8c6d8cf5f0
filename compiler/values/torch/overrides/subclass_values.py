"""Tensors of classes that programs derive from `torch.Tensor` in Python: a plain tensor of the graph, and the class.

Graphs carry the plain tensor over the same memory. What an operation gives, and of which class, `override_calls` asks
the class. Here are the object's own parts: attributes, methods of the class, and how it is made again after the graph.
"""

import types
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

import torch

from ...constant import Constant, MethodOf
from ...guard import ABSENT, GuardKind
from ...operator_table import Binary, Comparison, Unary
from ...python.containers.sequences import SequenceIterator, SequenceValue
from ...python.containers.tuples import TupleValue
from ...python.objects.attributes import bind_raw, class_lookup, is_native, told_name
from ...python.objects.classes import ClassValue
from ...reasons import ATTRIBUTE, CONSTRUCTION, TENSOR_STATE, UNSUPPORTED_TENSOR, Break
from ...rule_tables import calls
from ...source import Attribute, Inject, Item, Source
from ...value import Arguments, CaptureContext, Keywords, Rebuilder, Value
from ..tensor import TensorValue, tensor_method
from .override_facts import make_subclass, no_dispatch, no_override, plain_override, subclasses_have_a_say

_OF_THE_OBJECT = frozenset(  # what the plain tensor over the same memory has of its own
    {"grad", "grad_fn", "is_leaf", "_base", "_version", "retains_grad", "output_nr", "data", "names", "_backward_hooks"}
)
_READ_ITEMS = {"__getitem__": "get_item", "__setitem__": "set_item"}


def as_plain(tensor: torch.Tensor) -> torch.Tensor:
    """Return a plain tensor over the memory of one of a subclass, with its history whatever grad mode says."""
    if torch.is_grad_enabled() or tensor.is_inference():
        return tensor.as_subclass(torch.Tensor)
    with torch.enable_grad():
        return tensor.as_subclass(torch.Tensor)


def has_plain_twin(kind: type) -> bool:
    """Return whether tensors of a class are known by a plain tensor and their attributes."""
    if not issubclass(kind, torch.Tensor) or getattr(kind, "__torch_dispatch__", None) is not no_dispatch:
        return False
    bases = kind.__mro__[: kind.__mro__.index(torch.Tensor)]
    if any(is_native(base) or base.__module__.partition(".")[0] == "torch" for base in bases):
        return False
    names = ("__getattribute__", "__setattr__", "__del__", "__slots__")
    return not any(name in vars(base) for base in bases for name in names) and override_of(kind)[1] is not ABSENT


def override_of(kind: type) -> tuple[type | None, object]:
    """Return (owner, `__torch_function__`) of a class: ABSENT where it is none that capture can evaluate."""
    owner, raw = class_lookup(kind, "__torch_function__")
    if raw is plain_override or raw is no_override:
        return owner, raw
    function = raw.__func__ if isinstance(raw, classmethod) else None
    return (owner, raw) if isinstance(function, types.FunctionType) else (owner, ABSENT)


@dataclass(frozen=True, slots=True)
class PlainTwin(Source):
    """The plain tensor over the memory of a tensor of a subclass."""

    of: Source

    def base(self) -> Source:
        """Return the tensor of the subclass."""
        return self.of

    def text(self, base: str, inject: Inject) -> str:
        """Return `as_plain(base)`."""
        return f"{inject(as_plain)}({base})"

    def words(self) -> str:
        """Return where the tensor itself is."""
        return self.of.words()


class SubclassValue(Value):
    """A tensor of a subclass. inner: the plain tensor over its memory; real: the object itself, if it is an input."""

    has_text = False

    def __init__(
        self, kind: type, inner: TensorValue, source: Source | None = None, real: torch.Tensor | None = None
    ) -> None:
        self.kind = kind
        self.inner = inner
        self.source = source
        self.real = real
        self.attributes: dict[str, Value] = {}

    def python_type(self) -> type:
        """Return the class."""
        return self.kind

    def describe(self) -> str:
        """Return class, dtype and shape."""
        return f"{self.kind.__name__}{self.inner.describe().removeprefix(self.inner.kind.__name__)}"

    def identity(self) -> object:
        """Return the value: one stands for one object."""
        return self

    def hash_token(self, ctx: CaptureContext) -> Hashable:
        """Tensors hash by identity."""
        if class_lookup(self.kind, "__hash__")[1] is not vars(torch.Tensor)["__hash__"]:
            raise Break(UNSUPPORTED_TENSOR, f"hash of {self.describe()}")
        ctx.guards.told_apart(self)
        return ("tensor", id(self))

    def answers_operator(self, other: Value, name: str) -> bool:
        """Return True: torch takes any operand, or refuses it."""
        return True

    def is_asked(self, ctx: CaptureContext) -> bool:
        """Return whether its class has a say in the operations of now."""
        return not ctx.modes.overrides.off and override_of(self.kind)[1] is not no_override

    def graph_argument(self, ctx: CaptureContext) -> tuple[object, object]:
        """Return the plain tensor's, where the class has no say."""
        if self.is_asked(ctx):
            raise Break(UNSUPPORTED_TENSOR, f"{self.describe()} as an argument of an operation")
        return self.inner.graph_argument(ctx)

    def binary(self, ctx: CaptureContext, record: Binary, other: Value, reflected: bool, inplace: bool) -> Value | None:
        """Call the method of the class, or add an operation."""
        own = self._own(ctx, f"__{'r' if reflected else 'i' if inplace else ''}{record.name}__")
        if own is not None:
            return ctx.call(own, [other], {})
        function = record.assigning if inplace and not reflected else record.function
        return ctx.graph.call("call_function", function, [other, self] if reflected else [self, other], {})

    def unary(self, ctx: CaptureContext, record: Unary) -> Value | None:
        """Call the method of the class, or add an operation."""
        own = self._own(ctx, record.method)
        return ctx.call(own, [], {}) if own else ctx.graph.call("call_function", record.function, [self], {})

    def compare(self, ctx: CaptureContext, record: Comparison, other: Value, reflected: bool) -> Value | None:
        """Call the method of the class, or add an operation; with None and texts a tensor is never equal."""
        own = self._own(ctx, record.reflected if reflected else record.method)
        if own is not None:
            return ctx.call(own, [other], {})
        without_data = isinstance(other, Constant) and (other.value is None or type(other.value) is str)
        if record.asks_equality and without_data and override_of(self.kind)[1] is plain_override:
            return Constant(record.symbol == "!=")
        return ctx.graph.call("call_function", record.function, [other, self] if reflected else [self, other], {})

    def truth(self, ctx: CaptureContext) -> bool:
        """Break: the data is not known."""
        own = self._own(ctx, "__bool__")
        return ctx.realize(ctx.call(own, [], {})).truth(ctx) if own is not None else self.inner.truth(ctx)

    def length(self, ctx: CaptureContext) -> Value:
        """Return the first size."""
        return self._by_default(ctx, "__len__") or self.inner.length(ctx)

    def iterate(self, ctx: CaptureContext) -> Value:
        """Iterate over the rows, which are of the class."""
        own = self._by_default(ctx, "__iter__")
        if own is not None:
            return ctx.realize(own)
        if self.inner.fake.dim() == 0:
            return self.inner.iterate(ctx)
        rows = ctx.graph.call("call_method", "unbind", [self, Constant(0)], {})
        assert isinstance(rows, SequenceValue)
        return SequenceIterator(rows)

    def _by_default(self, ctx: CaptureContext, name: str) -> Value | None:
        """Return what a method of the class gives; None for torch's own, Break where the class is asked about it."""
        own = self._own(ctx, name)
        if own is None and override_of(self.kind)[1] not in (plain_override, no_override):
            raise Break(UNSUPPORTED_TENSOR, f"{name} of {self.describe()}, whose class overrides functions")
        return None if own is None else ctx.call(own, [], {})

    def get_item(self, ctx: CaptureContext, key: Value) -> Value:
        """Call the method of the class, or add an indexing operation."""
        own = self._own(ctx, "__getitem__")
        if own is not None:
            return ctx.call(own, [key], {})
        if not self.is_asked(ctx) and not ctx.modes.overrides.modes:
            return self.inner.get_item(ctx, key)
        return ctx.graph.call("call_method", "__getitem__", [self, key], {})

    def set_item(self, ctx: CaptureContext, key: Value, value: Value) -> None:
        """Call the method of the class, or add an index assignment."""
        own = self._own(ctx, "__setitem__")
        if own is not None:
            ctx.call(own, [key, value], {})
        elif not self.is_asked(ctx) and not ctx.modes.overrides.modes:
            self.inner.set_item(ctx, key, value)
        else:
            ctx.graph.call("call_method", "__setitem__", [self, key, value], {})

    def get_attr(self, ctx: CaptureContext, name: str) -> Value:
        """Look into the object, the class, then ask the plain tensor."""
        if name in self.attributes:
            return self.attributes[name]
        if name == "__class__":
            return ctx.known(self.kind)
        owner, raw = class_lookup(self.kind, name)
        own = getattr(self.real, "__dict__", {})
        if name in own and self.source is not None and not hasattr(type(raw), "__set__"):
            return ctx.wrap(own[name], Item(Attribute(self.source, "__dict__"), name))
        if owner is None:
            return self._missing(ctx, name)
        if self.source is not None and not hasattr(type(raw), "__set__"):
            ctx.guards.add(Attribute(self.source, "__dict__"), GuardKind.LACKS_KEY, name)
        if _is_of_program(owner) or isinstance(raw, staticmethod | classmethod | types.BuiltinFunctionType):
            return bind_raw(ctx, raw, owner, name, self, self.kind)
        if callable(getattr(torch.Tensor, name, None)):
            return MethodOf(self, name)
        return self._part(ctx, name)

    def _missing(self, ctx: CaptureContext, name: str) -> Value:
        owner, fallback = class_lookup(self.kind, "__getattr__")
        if self.source is not None:
            ctx.guards.add(Attribute(self.source, "__dict__"), GuardKind.LACKS_KEY, name)
        if owner is not None:
            return ctx.call(bind_raw(ctx, fallback, owner, name, self, self.kind), [Constant(name)], {})
        ctx.throw(AttributeError, f"'{told_name(self.kind)}' object has no attribute '{name}'")

    def _part(self, ctx: CaptureContext, name: str) -> Value:
        """Return what torch's own attribute gives."""
        if name in _OF_THE_OBJECT:
            raise Break(TENSOR_STATE, f"attribute {name!r} of {self.describe()}")
        if not self.is_asked(ctx) and not ctx.modes.overrides.modes:
            return self.inner.get_attr(ctx, name)
        return ctx.graph.call("call_function", getattr, [self, Constant(name)], {})

    def set_attr(self, ctx: CaptureContext, name: str, value: Value) -> None:
        """Keep attributes of the user's own, which are replayed; Break for torch's and for descriptors."""
        _, raw = class_lookup(self.kind, name)
        if raw is not ABSENT and hasattr(type(raw), "__set__"):
            raise Break(TENSOR_STATE, f"setting attribute {name!r} of {self.describe()}")
        self.attributes[name] = ctx.realize(value)
        ctx.effects.mutated(self)

    def del_attr(self, ctx: CaptureContext, name: str) -> None:
        """Break."""
        self.unsupported(f"deleting attribute {name!r}", ATTRIBUTE)

    def call_method(self, ctx: CaptureContext, name: str, args: Arguments, kwargs: Keywords) -> Value:
        """Call the method of the class, or add a method call to the graph."""
        own = self._own(ctx, name)
        if own is not None:
            return ctx.call(own, args, kwargs)
        if name == "as_subclass":
            return _as_subclass(ctx, self, args, kwargs)
        if name == "requires_grad_" and not self._requires_already(ctx, args, kwargs):
            raise Break(TENSOR_STATE, f"requires_grad_ of {self.describe()}")  # it would make a leaf of the inner one
        if self.is_asked(ctx) or ctx.modes.overrides.modes:
            return ctx.graph.call("call_method", name, [self, *args], kwargs)
        if name in _READ_ITEMS and not kwargs:
            return getattr(self, _READ_ITEMS[name])(ctx, *args) or Constant(None)
        return own_again(self.inner.call_method(ctx, name, args, kwargs), [self])

    def _requires_already(self, ctx: CaptureContext, args: Arguments, kwargs: Keywords) -> bool:
        """Return whether `requires_grad_` with these arguments changes nothing."""
        flag = ctx.realize([*args, *kwargs.values(), Constant(True)][0])
        return flag.is_constant() and flag.constant() is self.inner.fake.requires_grad

    def _own(self, ctx: CaptureContext, name: str) -> Value | None:
        """Return the bound method that the program's class has under a name; None if torch's is found."""
        owner, raw = class_lookup(self.kind, name)
        if owner is None or not _is_of_program(owner):
            return None
        return bind_raw(ctx, raw, owner, name, self, self.kind)

    def rebuild(self, out: Rebuilder) -> str:
        """Give the plain tensor the class, and its attributes."""
        plain = out.value(self.inner)
        name = out.fresh()
        out.line(f"{name} = {plain}.as_subclass({out.inject(self.kind)})")
        out.bind(self, name)
        for key, value in self.attributes.items():
            out.line(f"{name}.{key} = {out.value(value)}")
        return name

    def replay(self, out: Rebuilder) -> list[str]:
        """Write the changed attributes."""
        name = out.value(self)
        return [f"{name}.{key} = {out.value(value)}" for key, value in self.attributes.items()]


def own_again(answer: Value, owners: list[SubclassValue]) -> Value:
    """Return the tensor of the subclass where an operation gave the plain tensor of one: it returns its argument."""
    return next((owner for owner in owners if owner.inner is answer), answer)


def _is_of_program(owner: type) -> bool:
    return owner not in torch.Tensor.__mro__


def of_class(ctx: CaptureContext, kind: type, inner: TensorValue) -> SubclassValue:
    """Return a new tensor of a class over a plain one."""
    hold_switch(ctx)
    return SubclassValue(kind, inner)


def hold_switch(ctx: CaptureContext) -> None:
    """Look at arguments from here on, and guard whether subclasses have a say where the code begins."""
    if not ctx.modes.overrides.subclasses:
        ctx.modes.overrides.subclasses = True
        ctx.guards.add(None, GuardKind.STATE, (subclasses_have_a_say, subclasses_have_a_say()))
        ctx.modes.overrides.off += not subclasses_have_a_say()


def _class_of(ctx: CaptureContext, value: Value) -> type:
    kind = ctx.realize(value)
    if not isinstance(kind, ClassValue) or not (kind.kind is torch.Tensor or has_plain_twin(kind.kind)):
        raise Break(CONSTRUCTION, f"a tensor of class {kind.describe()}")
    return kind.kind


def _as_subclass(ctx: CaptureContext, tensor: Value, args: Arguments, kwargs: Keywords) -> Value:
    """Return a tensor of a class over the memory of another."""
    if len(args) != 1 or kwargs:
        raise Break(CONSTRUCTION, "as_subclass by keywords")
    kind = _class_of(ctx, args[0])
    inner = tensor.inner if isinstance(tensor, SubclassValue) else tensor
    assert isinstance(inner, TensorValue)
    if kind is not torch.Tensor:
        return of_class(ctx, kind, inner)
    return ctx.graph.call("call_function", torch.ops.aten.alias.default, [inner], {})


@tensor_method("as_subclass")
def _plain_as_subclass(ctx: CaptureContext, tensor: TensorValue, args: Arguments, kwargs: Keywords) -> Value | None:
    return _as_subclass(ctx, tensor, args, kwargs)


@calls(make_subclass)
def _make_subclass(ctx: CaptureContext, args: Arguments, kwargs: Keywords) -> Value:
    """Return a tensor of a class over the data of another, without its history."""
    values = [ctx.realize(arg) for arg in args]
    named = ctx.realize(kwargs.get("require_grad", Constant(False)))
    asks = values[2:] or [named]  # for a gradient
    plain = kwargs.keys() <= {"require_grad"} and all(one.is_constant() and not one.constant() for one in asks)
    data = values[1] if len(values) in (2, 3) and plain else None
    kind = _class_of(ctx, values[0]) if values else torch.Tensor
    if not isinstance(data, TensorValue) or kind is torch.Tensor:
        raise Break(CONSTRUCTION, "_make_subclass of other things than a plain tensor")
    inner = ctx.graph.call("call_method", "detach", [data], {})
    assert isinstance(inner, TensorValue)
    return of_class(ctx, kind, inner)


def convert(ctx: CaptureContext, value: Value, kind: type) -> Value:
    """Return what an operation gave, with plain tensors in it made tensors of a class, as `Tensor` does by default."""
    value = ctx.realize(value)
    if kind is torch.Tensor:
        return value
    if isinstance(value, TensorValue) or (isinstance(value, SubclassValue) and not issubclass(value.kind, kind)):
        inner: Any = value.inner if isinstance(value, SubclassValue) else value
        return of_class(ctx, kind, inner)
    if isinstance(value, SequenceValue) and value.kind in (list, tuple):
        parts: list[Value] = [convert(ctx, part, kind) for part in value.items]
        return TupleValue(parts) if value.kind is tuple else ctx.call(ctx.known(list), [TupleValue(parts)], {})
    if isinstance(value, TupleValue):  # named tuples of torch
        return TupleValue([convert(ctx, part, kind) for part in value.items], kind=value.kind)
    return value
