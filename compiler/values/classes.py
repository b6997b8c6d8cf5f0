"""Classes: their attributes, construction, `super()`; the table of rules for calling builtin classes."""

import enum
import types
from collections.abc import Callable, Hashable

import torch

from .attributes import C_DESCRIPTORS, NativeMethod, bind_raw, class_lookup, may_change
from .constant import fold
from .functions import BoundMethod
from .guard import Kind
from .mappings import DictValue
from .objects import ObjectValue
from .reasons import UNKNOWN_CALLEE, UNSUPPORTED_OBJECT, Break
from .sequences import ListValue
from .source import Attribute, Injected, Source
from .value import Arguments, CaptureContext, Keywords, Rebuilder, Value

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
            return self._description(ctx, name)
        owner, raw = class_lookup(self.kind, name)
        if owner is None:
            return self._from_metaclass(ctx, name)
        if issubclass(self.kind, enum.Enum) and not isinstance(raw, types.FunctionType | classmethod | staticmethod):
            return ctx.known(getattr(self.kind, name))
        return bind_raw(ctx, raw, owner, name, None, self.kind)

    def _description(self, ctx: CaptureContext, name: str) -> Value:
        """Return what every class says of itself; a user may rename a class, or give it other bases."""
        found = getattr(self.kind, name)
        if may_change(self.kind) and isinstance(found, str | tuple):
            ctx.guard(Attribute(Injected(self.kind), name), Kind.EQUALS, found)
        return ctx.known(found)

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
        if isinstance(raw, C_DESCRIPTORS):
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
