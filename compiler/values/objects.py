"""Instances and classes of user code: attribute lookup as Python does it, construction, special methods."""

import enum
import functools
import types
from collections.abc import Callable, Hashable

import torch

from .constant import Constant, Known, MethodOf, fold
from .functions import BoundMethod
from .guard import Kind
from .mappings import DictValue
from .reasons import UNKNOWN_CALLEE, UNSUPPORTED_OBJECT, Break
from .sequences import ListValue, TupleValue
from .source import Attribute, Injected, Item, Source
from .value import Arguments, CaptureContext, Keywords, Raised, Rebuilder, Value

MISSING = object()
_C_DESCRIPTORS = (
    types.MethodDescriptorType, types.WrapperDescriptorType, types.ClassMethodDescriptorType, types.BuiltinFunctionType,
)

Constructor = Callable[[CaptureContext, type, Arguments, Keywords], Value]
CONSTRUCTORS: dict[type, Constructor] = {}
INSTANCES: dict[type, Callable[[type], "ObjectValue"]] = {}  # base class -> maker of a fresh instance's value


def constructs(*kinds: type) -> Callable[[Constructor], Constructor]:
    """Register the rule for calling some builtin classes."""

    def register(rule: Constructor) -> Constructor:
        for kind in kinds:
            assert kind not in CONSTRUCTORS
            CONSTRUCTORS[kind] = rule
        return rule

    return register


def class_lookup(kind: type, name: str, after: type | None = None) -> tuple[type | None, object]:
    """Return (owner, raw attribute) of the first class in the MRO that has the name; (None, MISSING) if none."""
    mro = kind.__mro__
    start = mro.index(after) + 1 if after is not None else 0
    for owner in mro[start:]:
        if name in owner.__dict__:
            return owner, owner.__dict__[name]
    return None, MISSING


def is_torch_class(kind: type) -> bool:
    """Return whether the class is torch's own, whose attributes are taken as fixed."""
    module = str(getattr(kind, "__module__", ""))
    return module == "torch" or module.startswith("torch.") or kind is object


def guard_class_attribute(ctx: CaptureContext, kind: type, owner: type, name: str, raw: object) -> None:
    """Demand that the class still has this attribute."""
    if is_torch_class(owner) or not owner.__flags__ & (1 << 9):
        return
    if isinstance(raw, types.FunctionType | property) and class_lookup(kind, name)[0] is owner:
        ctx.guard(Attribute(Injected(kind), name), Kind.IDENTITY, raw)
    else:
        ctx.guard(Item(Attribute(Injected(owner), "__dict__"), name), Kind.IDENTITY, raw)


def bind_raw(
    ctx: CaptureContext, raw: object, owner: type, name: str, instance: Value | None, kind: type
) -> Value:
    """Evaluate what finding `raw` in class `owner` gives for an instance (None: for the class) of `kind`."""
    if isinstance(raw, types.FunctionType):
        guard_class_attribute(ctx, kind, owner, name, raw)
        function = ctx.wrap(raw, Injected(raw))
        return function if instance is None else BoundMethod(function, instance)
    if isinstance(raw, staticmethod | classmethod):
        guard_class_attribute(ctx, kind, owner, name, raw)
        inner = ctx.wrap(raw.__func__, Injected(raw.__func__))
        return inner if isinstance(raw, staticmethod) else BoundMethod(inner, ctx.known(kind))
    if instance is None:
        if isinstance(raw, (*_C_DESCRIPTORS, property, types.MemberDescriptorType, types.GetSetDescriptorType)):
            return Known(getattr(kind, name))
        of_class = class_lookup(type(raw), "__get__")[1]
        if isinstance(of_class, types.FunctionType) and not isinstance(raw, torch.nn.Module):
            guard_class_attribute(ctx, kind, owner, name, raw)
            call = ctx.wrap(of_class, Injected(of_class))
            return ctx.call(call, [ctx.wrap(raw, Injected(raw)), Constant(None), ctx.known(kind)], {})
        return _plain_class_attribute(ctx, kind, owner, name, raw)
    if isinstance(raw, property):
        guard_class_attribute(ctx, kind, owner, name, raw)
        if raw.fget is None:
            ctx.throw(AttributeError, f"property '{name}' has no getter")
        return ctx.call(ctx.wrap(raw.fget, Injected(raw.fget)), [instance], {})
    if isinstance(raw, functools.cached_property):
        value = ctx.call(ctx.wrap(raw.func, Injected(raw.func)), [instance], {})
        instance.set_attr(ctx, name, value)
        return value
    if isinstance(raw, _C_DESCRIPTORS):
        return NativeMethod(instance, owner, name)
    if isinstance(raw, functools._lru_cache_wrapper):
        guard_class_attribute(ctx, kind, owner, name, raw)
        return BoundMethod(ctx.wrap(raw, Injected(raw)), instance)
    getter = class_lookup(type(raw), "__get__")[1]
    if isinstance(getter, types.FunctionType):
        guard_class_attribute(ctx, kind, owner, name, raw)
        call = ctx.wrap(getter, Injected(getter))
        return ctx.call(call, [ctx.wrap(raw, Injected(raw)), instance, ctx.known(kind)], {})
    return _plain_class_attribute(ctx, kind, owner, name, raw)


def _plain_class_attribute(ctx: CaptureContext, kind: type, owner: type, name: str, raw: object) -> Value:
    if hasattr(type(raw), "__get__") and not isinstance(raw, type | torch.nn.Module):
        raise Break(UNSUPPORTED_OBJECT, f"{kind.__name__}.{name} is a descriptor written in C")
    if is_torch_class(owner):
        return ctx.known(raw)
    return ctx.wrap(raw, Attribute(Injected(kind), name))


_FIXED_OF_CLASSES = frozenset(
    {"__name__", "__qualname__", "__module__", "__mro__", "__bases__", "__doc__", "__class__", "__base__"}
)


class ClassValue(Value):
    """A class, known by identity."""

    def __init__(self, kind: type, source: Source | None = None) -> None:
        self.kind = kind
        self.source = source

    def python_type(self) -> type:
        """Return the metaclass."""
        return type(self.kind)

    def describe(self) -> str:
        """Return the class's name."""
        return f"class {self.kind.__qualname__}"

    def is_constant(self) -> bool:
        """Return True: the class is the constant."""
        return True

    def constant(self) -> object:
        """Return the class."""
        return self.kind

    def identity(self) -> object:
        """Return the class."""
        return self.kind

    def hash_token(self, ctx: CaptureContext) -> Hashable:
        """Return the class."""
        return self.kind

    def truth(self, ctx: CaptureContext) -> bool:
        """Classes are true, enums and odd metaclasses too."""
        return True

    def get_attr(self, ctx: CaptureContext, name: str) -> Value:
        """Evaluate `cls.name`."""
        if name in _FIXED_OF_CLASSES:
            return ctx.known(getattr(self.kind, name))
        owner, raw = class_lookup(self.kind, name)
        if owner is None:
            return self._from_metaclass(ctx, name)
        if issubclass(self.kind, enum.Enum) and not isinstance(raw, types.FunctionType | classmethod | staticmethod):
            return ctx.known(getattr(self.kind, name))
        return bind_raw(ctx, raw, owner, name, None, self.kind)

    def _from_metaclass(self, ctx: CaptureContext, name: str) -> Value:
        owner, raw = class_lookup(type(self.kind), name)
        if isinstance(raw, types.FunctionType) and owner is not None:
            return BoundMethod(ctx.wrap(raw, Injected(raw)), self)
        if not hasattr(self.kind, name):
            ctx.throw(AttributeError, f"type object '{self.kind.__name__}' has no attribute '{name}'")
        found = getattr(self.kind, name)
        if callable(found) or owner is type:
            return ctx.known(found)
        self.no(f"attribute {name!r} of the metaclass", UNSUPPORTED_OBJECT)

    def set_attr(self, ctx: CaptureContext, name: str, value: Value) -> None:
        """Break: class attributes are shared state."""
        self.no(f"setting class attribute {name!r}")

    def call(self, ctx: CaptureContext, args: Arguments, kwargs: Keywords) -> Value:
        """Evaluate construction."""
        rule = CONSTRUCTORS.get(self.kind)
        if rule is not None:
            return rule(ctx, self.kind, args, kwargs)
        for base, base_rule in CONSTRUCTORS.items():
            if base in (BaseException, tuple) and issubclass(self.kind, base):
                return base_rule(ctx, self.kind, args, kwargs)
        return construct(ctx, self.kind, args, kwargs)

    def iterate(self, ctx: CaptureContext) -> Value:
        """Iterate over enum members."""
        if issubclass(self.kind, enum.Enum):
            return ctx.known(tuple(self.kind)).iterate(ctx)
        self.no("iteration")

    def get_item(self, ctx: CaptureContext, key: Value) -> Value:
        """Look up an enum member, or parametrise a generic class."""
        return fold(ctx, lambda: self.kind[key.constant()])  # type: ignore[index]  # as in Python, may raise

    def length(self, ctx: CaptureContext) -> Value:
        """Return the number of enum members."""
        return fold(ctx, len, self.kind)

    def contains(self, ctx: CaptureContext, item: Value) -> bool:
        """Return whether an enum has the member."""
        return bool(fold(ctx, lambda: item.constant() in self.kind).constant())  # type: ignore[operator]  # as Python

    def rebuild(self, out: Rebuilder) -> str:
        """Return an injected name."""
        return out.inject(self.kind)


def construct(ctx: CaptureContext, kind: type, args: Arguments, kwargs: Keywords) -> Value:
    """Evaluate `kind(*args, **kwargs)` of a class written in Python."""
    if issubclass(kind, enum.Enum) and not kwargs and all(ctx.real(arg).is_constant() for arg in args):
        return fold(ctx, kind, *(ctx.real(arg).constant() for arg in args))
    _require_constructible(ctx, kind)
    owner, maker = class_lookup(kind, "__new__")
    if isinstance(maker, staticmethod) and isinstance(maker.__func__, types.FunctionType):
        made = ctx.call(ctx.wrap(maker.__func__, Injected(maker.__func__)), [ctx.known(kind), *args], kwargs)
        if not (isinstance(made, ObjectValue) and issubclass(made.kind, kind)):
            return made
    else:
        made = new_object(kind)
    owner, raw = class_lookup(kind, "__init__")
    if isinstance(raw, types.FunctionType) and owner is not None:
        guard_class_attribute(ctx, kind, owner, "__init__", raw)
        ctx.call(ctx.wrap(raw, Injected(raw)), [made, *args], kwargs)
    elif made.contents is not None:
        made.contents.call_method(ctx, "__init__", args, kwargs)
    elif (args or kwargs) and maker is object.__new__:
        ctx.throw(TypeError, f"{kind.__name__}() takes no arguments")
    return made


_PLAIN_BASES = (object, dict, list, BaseException)


def _require_constructible(ctx: CaptureContext, kind: type) -> None:
    if type(kind).__call__ is not type.__call__:
        raise Break(UNKNOWN_CALLEE, f"construction of {kind.__qualname__}, whose metaclass has its own __call__")
    if getattr(kind, "__abstractmethods__", None):
        ctx.throw(TypeError, f"Can't instantiate abstract class {kind.__name__}")
    if issubclass(kind, torch.Tensor | torch.autograd.Function):
        raise Break(UNKNOWN_CALLEE, f"construction of {kind.__qualname__}")
    if getattr(kind, "__del__", None) is not None:
        raise Break(UNKNOWN_CALLEE, f"construction of {kind.__qualname__}, which has __del__")
    for base in kind.__mro__:
        native = not base.__flags__ & (1 << 9)
        if native and base not in _PLAIN_BASES and base.__module__ not in ("typing", "abc", "collections"):
            raise Break(UNKNOWN_CALLEE, f"construction of {kind.__qualname__}, which derives from {base.__qualname__}")
        if base.__module__.split(".")[0] in ("threading", "_thread", "socket", "io", "subprocess", "logging", "random"):
            raise Break(UNKNOWN_CALLEE, f"construction of {kind.__qualname__}")


def new_object(kind: type) -> "ObjectValue":
    """Return a fresh instance without having run `__init__`."""
    for base, maker in INSTANCES.items():
        if issubclass(kind, base):
            return maker(kind)
    made = ObjectValue(kind)
    if issubclass(kind, dict):
        made.contents = DictValue(dict)
    elif issubclass(kind, list):
        made.contents = ListValue([])
    return made


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
        return ctx.call(method, args, kwargs)

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


class NativeMethod(Value):
    """A method written in C, found on a class written in Python: `super().__setattr__`, `object.__init__`, ..."""

    def __init__(self, owner: Value, kind: type, name: str) -> None:
        self.owner = owner
        self.kind = kind
        self.name = name

    def python_type(self) -> type:
        """Return the type of bound builtins."""
        return types.BuiltinMethodType

    def describe(self) -> str:
        """Return the method's qualified name."""
        return f"{self.kind.__qualname__}.{self.name}"

    def call(self, ctx: CaptureContext, args: Arguments, kwargs: Keywords) -> Value:
        """Evaluate the few methods of object that programs call, and methods of dict and list on subclasses."""
        owner, name = self.owner, self.name
        if isinstance(owner, ObjectValue):
            if owner.contents is not None and self.kind is not object:
                return owner.contents.call_method(ctx, name, args, kwargs)
            if name == "__init__" and isinstance(owner, ExceptionValue):
                owner.args = [ctx.real(arg) for arg in args]
            if name in ("__init__", "__init_subclass__"):
                return Constant(None)
            if name == "__setattr__":
                owner.set_plain(ctx, str(ctx.real(args[0]).constant()), args[1])
                return Constant(None)
            if name == "__delattr__":
                owner.del_plain(ctx, str(ctx.real(args[0]).constant()))
                return Constant(None)
            if name in ("__getattribute__", "__getattr__"):
                attribute = str(ctx.real(args[0]).constant())
                found = owner.generic_attr(ctx, attribute)
                if found is None:
                    ctx.throw(AttributeError, f"'{owner.kind.__name__}' object has no attribute '{attribute}'")
                return found
            if name in ("__eq__", "__ne__"):
                same = owner.identity() is ctx.real(args[0]).identity()
                return Constant(same == (name == "__eq__")) if same else Constant(NotImplemented)
        self.no("call", UNKNOWN_CALLEE)

    def rebuild(self, out: Rebuilder) -> str:
        """Make the bound method."""
        name = out.fresh()
        out.line(f"{name} = {out.inject(self.kind.__dict__[self.name])}.__get__({out.value(self.owner)})")
        return name


class SuperValue(Value):
    """What `super()` gives."""

    def __init__(self, start: type, instance: Value) -> None:
        self.start = start
        self.instance = instance

    def python_type(self) -> type:
        """Return super."""
        return super

    def get_attr(self, ctx: CaptureContext, name: str) -> Value:
        """Look the name up in the classes after `start`."""
        of_class = isinstance(self.instance, ClassValue)
        kind = self.instance.kind if isinstance(self.instance, ClassValue) else self.instance.python_type()
        owner, raw = class_lookup(kind, name, after=self.start)
        if owner is None:
            ctx.throw(AttributeError, f"'super' object has no attribute '{name}'")
        if name == "__new__":
            return NewMethod()
        if isinstance(raw, types.FunctionType):
            function = ctx.wrap(raw, Injected(raw))
            return function if of_class else BoundMethod(function, self.instance)
        if isinstance(raw, _C_DESCRIPTORS):
            return NativeMethod(self.instance, owner, name)
        return bind_raw(ctx, raw, owner, name, None if of_class else self.instance, kind)


class NewMethod(Value):
    """`object.__new__` reached through `super()`."""

    def python_type(self) -> type:
        """Return the type of builtins."""
        return types.BuiltinFunctionType

    def call(self, ctx: CaptureContext, args: Arguments, kwargs: Keywords) -> Value:
        """Return a fresh instance of the class given."""
        kind = ctx.real(args[0])
        if not isinstance(kind, ClassValue):
            self.no("call", UNKNOWN_CALLEE)
        _require_constructible(ctx, kind.kind)
        return new_object(kind.kind)


class ExceptionValue(ObjectValue):
    """An exception instance."""

    def __init__(
        self, kind: type, args: list[Value], real: object = MISSING, source: Source | None = None
    ) -> None:
        super().__init__(kind, real, source)
        self.args = args
        self.cause: Value | None = None

    def get_attr(self, ctx: CaptureContext, name: str) -> Value:
        """Give args and the chain fields, else look up as for any object."""
        if name == "args":
            return TupleValue(list(self.args))
        if name == "__cause__" and self.real is MISSING:
            return self.cause or Constant(None)
        if name in ("__cause__", "__context__", "__traceback__", "__suppress_context__"):
            self.no(f"attribute {name!r}")
        if name == "value" and issubclass(self.kind, StopIteration):
            return self.args[0] if self.args else Constant(None)
        return super().get_attr(ctx, name)

    def set_attr(self, ctx: CaptureContext, name: str, value: Value) -> None:
        """Keep the cause; a traceback is made anew by whoever raises."""
        if name == "__cause__":
            self.cause = ctx.real(value)
        elif name == "args":
            self.args = list(ctx.unpack(value))
        elif name not in ("__traceback__", "__suppress_context__"):
            super().set_attr(ctx, name, value)

    def call_method(self, ctx: CaptureContext, name: str, args: Arguments, kwargs: Keywords) -> Value:
        """Evaluate `with_traceback`."""
        if name == "with_traceback":
            return self
        return super().call_method(ctx, name, args, kwargs)

    def rebuild(self, out: Rebuilder) -> str:
        """Make the exception."""
        name = out.fresh()
        args = "".join(f", {out.value(arg)}" for arg in self.args)
        out.line(f"{name} = {out.inject(self.kind)}.__new__({out.inject(self.kind)}{args})")
        out.know(self, name)
        if self.cause is not None:
            out.line(f"{name}.__cause__ = {out.value(self.cause)}")
        for entry in self.namespace.entries.values():
            out.line(f"{name}.__dict__[{out.value(entry.key)}] = {out.value(entry.value)}")
        return name


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
