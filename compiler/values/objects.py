"""Instances of user code: attributes, special methods, changes; and objects that can only be passed on."""

import types
from collections.abc import Hashable

import torch

from .attributes import MISSING, NativeMethod, bind_raw, class_lookup
from .constant import Constant, MethodOf
from .guard import Kind
from .mappings import DictValue
from .reasons import UNKNOWN_CALLEE, UNSUPPORTED_OBJECT
from .sequences import ListValue
from .source import Attribute, Injected, Source
from .value import Arguments, CaptureContext, Keywords, Raised, Rebuilder, Value


class HashToken:
    """A dict key with a hash and equality of its own: the real dict asks the program."""

    def __init__(self, ctx: CaptureContext, value: Value, number: int) -> None:
        self.ctx = ctx
        self.value = value
        self.number = number

    def __hash__(self) -> int:
        return self.number

    def __eq__(self, other: object) -> bool:
        return isinstance(other, HashToken) and self.ctx.equal(self.value, other.value)


class ObjectValue(Value):
    """An instance of a class written in Python.

    Its `__dict__` is a DictValue, so reads are guarded one by one and writes are replayed in order. contents: what
    an instance of a dict or list subclass holds.
    """

    def __init__(self, kind: type, real: object = MISSING, source: Source | None = None) -> None:
        self.kind = kind
        self.real = real
        self.source = source
        namespace = getattr(real, "__dict__", None) if real is not MISSING else None
        place = Attribute(source, "__dict__") if source is not None and namespace is not None else None
        self.namespace = DictValue(dict, place, namespace)
        self.namespace.ordered = False
        self.slots: dict[str, Value] = {}
        self.written_slots: dict[str, Value] = {}
        self.contents: DictValue | ListValue | None = None

    def python_type(self) -> type:
        """Return the class."""
        return self.kind

    def describe(self) -> str:
        """Return the class's name."""
        return f"{self.kind.__qualname__} object"

    def identity(self) -> object:
        """Return the real object if there is one."""
        return self if self.real is MISSING else self.real

    def hash_token(self, ctx: CaptureContext) -> Hashable:
        """Hash by identity if the class does; inline `__hash__` if it is Python and gives a known value."""
        if class_lookup(self.kind, "__hash__")[0] in (object, torch.nn.Module):
            return ("object", id(self.identity()))
        method = self.method(ctx, "__hash__")
        found = ctx.real(ctx.call(method, [], {})) if method is not None else self
        number = found.constant() if found.is_constant() else None
        if not isinstance(number, int):
            self.no("hash by a rule of its own", UNSUPPORTED_OBJECT)
        return HashToken(ctx, self, number)

    def method(self, ctx: CaptureContext, name: str) -> Value | None:
        """Return a special method defined in Python, bound; None if the class has none."""
        owner, raw = class_lookup(self.kind, name)
        if owner is None or not isinstance(raw, types.FunctionType):
            return None
        return bind_raw(ctx, raw, owner, name, self, self.kind)

    def get_attr(self, ctx: CaptureContext, name: str) -> Value:
        """Evaluate `object.name` by Python's lookup rules."""
        custom = class_lookup(self.kind, "__getattribute__")[1]
        if isinstance(custom, types.FunctionType):
            return self._custom_attr(ctx, name, custom)
        found = self.generic_attr(ctx, name)
        if found is not None:
            return found
        fallback = class_lookup(self.kind, "__getattr__")[1]
        if isinstance(fallback, types.FunctionType):
            return self.missing_attr(ctx, name, fallback)
        self.guard_missing(ctx, name)
        ctx.throw(AttributeError, f"'{self.kind.__name__}' object has no attribute '{name}'")

    def guard_missing(self, ctx: CaptureContext, name: str) -> None:
        """Demand that neither the instance nor its class has the attribute."""
        ctx.guard(Injected(self.kind), Kind.LACKS_ATTRIBUTE, name)
        self.namespace.find(ctx, Constant(name))

    def _custom_attr(self, ctx: CaptureContext, name: str, custom: types.FunctionType) -> Value:
        """Evaluate a `__getattribute__` written in Python, then `__getattr__` if it raises AttributeError."""
        try:
            return ctx.call(ctx.wrap(custom, Injected(custom)), [self, Constant(name)], {})
        except Raised as raised:
            fallback = class_lookup(self.kind, "__getattr__")[1]
            missing = issubclass(raised.value.python_type(), AttributeError)
            if not missing or not isinstance(fallback, types.FunctionType):
                raise
            return self.missing_attr(ctx, name, fallback)

    def missing_attr(self, ctx: CaptureContext, name: str, fallback: types.FunctionType) -> Value:
        """Evaluate `__getattr__`."""
        self.guard_missing(ctx, name)
        return ctx.call(ctx.wrap(fallback, Injected(fallback)), [self, Constant(name)], {})

    def generic_attr(self, ctx: CaptureContext, name: str) -> Value | None:
        """Evaluate `object.__getattribute__`; None where it raises AttributeError."""
        if name == "__class__":
            return ctx.known(self.kind)
        if name == "__dict__":
            return self.namespace
        owner, raw = class_lookup(self.kind, name)
        if isinstance(raw, types.MemberDescriptorType):
            return self._slot(ctx, name)
        is_data = owner is not None and hasattr(type(raw), "__set__")
        if is_data and owner is not None:
            return bind_raw(ctx, raw, owner, name, self, self.kind)
        found = self._own(ctx, name, guard_absence=owner is not None and not _is_dunder(name))
        if found is not None:
            return found
        if owner is None:
            return None
        return bind_raw(ctx, raw, owner, name, self, self.kind)

    def _own(self, ctx: CaptureContext, name: str, *, guard_absence: bool) -> Value | None:
        unread, key = self.namespace.unread, Constant(name)
        if unread is not None and name not in unread and not guard_absence and name not in self.namespace.entries:
            return None  # special methods are looked up on the class: nothing to guard
        return self.namespace.find(ctx, key)

    def _slot(self, ctx: CaptureContext, name: str) -> Value | None:
        if name in self.slots:
            self.slots[name] = ctx.real(self.slots[name])
            return self.slots[name]
        if self.real is MISSING or not hasattr(self.real, name):
            return None
        assert self.source is not None
        self.slots[name] = ctx.wrap(getattr(self.real, name), Attribute(self.source, name))
        return self.slots[name]

    def set_attr(self, ctx: CaptureContext, name: str, value: Value) -> None:
        """Evaluate `object.name = value`."""
        custom = class_lookup(self.kind, "__setattr__")[1]
        if isinstance(custom, types.FunctionType):
            ctx.call(ctx.wrap(custom, Injected(custom)), [self, Constant(name), value], {})
        else:
            self.set_plain(ctx, name, value)

    def set_plain(self, ctx: CaptureContext, name: str, value: Value) -> None:
        """Evaluate `object.__setattr__(self, name, value)`."""
        owner, raw = class_lookup(self.kind, name)
        if isinstance(raw, property):
            if raw.fset is None:
                ctx.throw(AttributeError, f"property '{name}' of '{self.kind.__name__}' object has no setter")
            ctx.call(ctx.wrap(raw.fset, Injected(raw.fset)), [self, value], {})
        elif isinstance(raw, types.MemberDescriptorType):
            self.slots[name] = self.written_slots[name] = value
            ctx.mutated(self)
        elif owner is not None and hasattr(type(raw), "__set__"):
            setter = class_lookup(type(raw), "__set__")[1]
            if not isinstance(setter, types.FunctionType):
                self.no(f"setting attribute {name!r} through a descriptor written in C")
            ctx.call(ctx.wrap(setter, Injected(setter)), [ctx.wrap(raw, Injected(raw)), self, value], {})
        elif name == "__class__" or name == "__dict__":
            self.no(f"setting {name}")
        else:
            self.namespace.set_item(ctx, Constant(name), value)

    def del_attr(self, ctx: CaptureContext, name: str) -> None:
        """Evaluate `del object.name`."""
        custom = class_lookup(self.kind, "__delattr__")[1]
        if isinstance(custom, types.FunctionType):
            ctx.call(ctx.wrap(custom, Injected(custom)), [self, Constant(name)], {})
        else:
            self.del_plain(ctx, name)

    def del_plain(self, ctx: CaptureContext, name: str) -> None:
        """Evaluate `object.__delattr__(self, name)`."""
        owner, raw = class_lookup(self.kind, name)
        if isinstance(raw, property):
            if raw.fdel is None:
                ctx.throw(AttributeError, f"property '{name}' of '{self.kind.__name__}' object has no deleter")
            ctx.call(ctx.wrap(raw.fdel, Injected(raw.fdel)), [self], {})
        elif owner is not None and (hasattr(type(raw), "__delete__") or hasattr(type(raw), "__set__")):
            self.no(f"deleting attribute {name!r} through a descriptor")
        elif self.namespace.find(ctx, Constant(name)) is None:
            ctx.throw(AttributeError, f"'{self.kind.__name__}' object has no attribute '{name}'")
        else:
            self.namespace.del_item(ctx, Constant(name))

    def call(self, ctx: CaptureContext, args: Arguments, kwargs: Keywords) -> Value:
        """Evaluate `object(*args)`."""
        method = self.method(ctx, "__call__")
        if method is None:
            self.no("call", UNKNOWN_CALLEE)
        return ctx.hand_on(self, method, args, kwargs)

    def _special(self, ctx: CaptureContext, name: str, *args: Value) -> Value | None:
        method = self.method(ctx, name)
        return None if method is None else ctx.real(ctx.call(method, list(args), {}))

    def truth(self, ctx: CaptureContext) -> bool:
        """Evaluate `bool(object)`."""
        verdict = self._special(ctx, "__bool__")
        if verdict is None:
            verdict = self._special(ctx, "__len__")
        if verdict is not None:
            return verdict.truth(ctx)
        return self.contents.truth(ctx) if self.contents is not None else True

    def iterate(self, ctx: CaptureContext) -> Value:
        """Evaluate `iter(object)`."""
        found = self._special(ctx, "__iter__")
        if found is not None:
            return found
        if self.contents is not None:
            return self.contents.iterate(ctx)
        if self.method(ctx, "__getitem__") is not None:
            self.no("iteration by __getitem__")
        ctx.throw(TypeError, f"'{self.kind.__name__}' object is not iterable")

    def next(self, ctx: CaptureContext) -> Value:
        """Evaluate `next(object)`."""
        found = self._special(ctx, "__next__")
        if found is None:
            ctx.throw(TypeError, f"'{self.kind.__name__}' object is not an iterator")
        return found

    def length(self, ctx: CaptureContext) -> Value:
        """Evaluate `len(object)`."""
        found = self._special(ctx, "__len__")
        if found is not None:
            return found
        if self.contents is None:
            ctx.throw(TypeError, f"object of type '{self.kind.__name__}' has no len()")
        return self.contents.length(ctx)

    def get_item(self, ctx: CaptureContext, key: Value) -> Value:
        """Evaluate `object[key]`."""
        found = self._special(ctx, "__getitem__", key)
        if found is not None:
            return found
        if self.contents is None:
            ctx.throw(TypeError, f"'{self.kind.__name__}' object is not subscriptable")
        if isinstance(self.contents, DictValue) and self.contents.find(ctx, key) is None:
            missing = self._special(ctx, "__missing__", key)
            if missing is not None:
                return missing
        return self.contents.get_item(ctx, key)

    def set_item(self, ctx: CaptureContext, key: Value, value: Value) -> None:
        """Evaluate `object[key] = value`."""
        if self._special(ctx, "__setitem__", key, value) is None:
            if self.contents is None:
                ctx.throw(TypeError, f"'{self.kind.__name__}' object does not support item assignment")
            self.contents.set_item(ctx, key, value)

    def del_item(self, ctx: CaptureContext, key: Value) -> None:
        """Evaluate `del object[key]`."""
        if self._special(ctx, "__delitem__", key) is None:
            if self.contents is None:
                ctx.throw(TypeError, f"'{self.kind.__name__}' object doesn't support item deletion")
            self.contents.del_item(ctx, key)

    def contains(self, ctx: CaptureContext, item: Value) -> bool:
        """Evaluate `item in object`."""
        found = self._special(ctx, "__contains__", item)
        if found is not None:
            return found.truth(ctx)
        if self.contents is not None and self.method(ctx, "__iter__") is None:
            return self.contents.contains(ctx, item)
        return super().contains(ctx, item)

    def call_native(self, ctx: CaptureContext, method: NativeMethod, args: Arguments, kwargs: Keywords) -> Value:
        """Evaluate the few methods of object that programs call, and methods of dict and list on subclasses."""
        name = method.name
        if self.contents is not None and method.kind is not object:
            return self.contents.call_method(ctx, name, args, kwargs)
        if name in ("__init__", "__init_subclass__"):
            return Constant(None)
        if name == "__setattr__":
            self.set_plain(ctx, str(ctx.real(args[0]).constant()), args[1])
            return Constant(None)
        if name == "__delattr__":
            self.del_plain(ctx, str(ctx.real(args[0]).constant()))
            return Constant(None)
        if name in ("__getattribute__", "__getattr__"):
            attribute = str(ctx.real(args[0]).constant())
            found = self.generic_attr(ctx, attribute)
            if found is None:
                ctx.throw(AttributeError, f"'{self.kind.__name__}' object has no attribute '{attribute}'")
            return found
        if name in ("__eq__", "__ne__"):
            same = self.identity() is ctx.real(args[0]).identity()
            return Constant(same == (name == "__eq__")) if same else Constant(NotImplemented)
        return super().call_native(ctx, method, args, kwargs)

    def rebuild(self, out: Rebuilder) -> str:
        """Make a new instance and fill it; made first, so that it may refer to itself."""
        name = out.fresh()
        base = dict if isinstance(self.contents, DictValue) else list if self.contents is not None else object
        if issubclass(self.kind, base) and base is dict and self.kind.__mro__[1:2] != (object,):
            out.line(f"{name} = {out.inject(self.kind)}.__new__({out.inject(self.kind)})")
        else:
            out.line(f"{name} = {out.inject(base)}.__new__({out.inject(self.kind)})")
        out.know(self, name)
        for entry in self.namespace.entries.values():
            out.line(f"{name}.__dict__[{out.value(entry.key)}] = {out.value(entry.value)}")
        for slot, value in self.slots.items():
            out.line(f"{out.inject(object.__setattr__)}({name}, {slot!r}, {out.value(value)})")
        if isinstance(self.contents, DictValue):
            setter = out.inject(_native(self.kind, "__setitem__"))
            for entry in self.contents.entries.values():
                out.line(f"{setter}({name}, {out.value(entry.key)}, {out.value(entry.value)})")
        elif isinstance(self.contents, ListValue):
            items = "".join(f"{out.value(item)}, " for item in self.contents.items)
            out.line(f"{out.inject(list.extend)}({name}, ({items}))")
        return name

    def replay(self, out: Rebuilder) -> list[str]:
        """Write the changed slots into the original; its `__dict__` replays itself."""
        name = out.value(self)
        return [
            f"{out.inject(object.__setattr__)}({name}, {slot!r}, {out.value(value)})"
            for slot, value in self.written_slots.items()
        ]


def _native(kind: type, name: str) -> object:
    for owner in kind.__mro__:
        if name in owner.__dict__ and not isinstance(owner.__dict__[name], types.FunctionType):
            return owner.__dict__[name]
    raise AttributeError(name)


def _is_dunder(name: str) -> bool:
    return name.startswith("__") and name.endswith("__")


class OpaqueValue(Value):
    """An object of a type written in C that capture does not know; it can only be passed on."""

    def __init__(self, real: object, source: Source) -> None:
        self.real = real
        self.source = source

    def python_type(self) -> type:
        """Return its type."""
        return type(self.real)

    def describe(self) -> str:
        """Return its type's name."""
        return f"{type(self.real).__qualname__} object"

    def identity(self) -> object:
        """Return the object."""
        return self.real

    def get_attr(self, ctx: CaptureContext, name: str) -> Value:
        """Give the class; methods may be looked up, so that the call is what breaks."""
        if name == "__class__":
            return ctx.known(type(self.real))
        if not hasattr(type(self.real), name):
            self.no(f"attribute {name!r}", UNSUPPORTED_OBJECT)
        if isinstance(class_lookup(type(self.real), name)[1], types.MethodDescriptorType):
            return MethodOf(self, name)
        self.no(f"attribute {name!r}", UNSUPPORTED_OBJECT)

    def call_method(self, ctx: CaptureContext, name: str, args: Arguments, kwargs: Keywords) -> Value:
        """Break at the call."""
        self.no(f"method {name!r}", UNKNOWN_CALLEE)

    def call(self, ctx: CaptureContext, args: Arguments, kwargs: Keywords) -> Value:
        """Break at the call."""
        self.no("call", UNKNOWN_CALLEE)

    def truth(self, ctx: CaptureContext) -> bool:
        """Break: its rule is not known."""
        self.no("truth value", UNSUPPORTED_OBJECT)
