"""Classes: their attributes, construction, `super()`; the table of rules for calling builtin classes."""

import collections
import enum
import operator
import types
import weakref
from collections.abc import Callable

import torch

from ....base.real_objects.past_methods import place_of_namespace
from ...constant import Constant, fold
from ...guard import ABSENT, GuardKind, Member
from ...known_object import KnownObject
from ...reasons import ATTRIBUTE, CONSTRUCTION, UNKNOWN_CALLEE, UNSUPPORTED_OBJECT, Break
from ...refused_arguments import demand_arguments, refuse_arguments
from ...rule_tables import calls
from ...source import Attribute, Injected, Source
from ...value import Arguments, CaptureContext, Keywords, Rebuilder, Value
from ..containers.mappings import DictValue, ProxyValue
from ..containers.sets import SetValue
from ..containers.tuples import TupleValue
from .attributes import (
    C_DESCRIPTORS,
    CAPTURED_CLASSES,
    HEAP_TYPE,
    NativeMethod,
    bind_raw,
    class_lookup,
    demand_plain_reading,
    guard_description,
    is_native,
    may_change,
    told_name,
)
from .class_changes import change_class, class_namespace
from .functions import BoundMethod
from .instances import ObjectValue, new_object

Constructor = Callable[[CaptureContext, type, Arguments, Keywords], Value]
CONSTRUCTORS: dict[type, Constructor] = {}


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


_DTYPES: dict[type, object] = {
    bool: torch.bool,
    int: torch.int64,
    float: torch.float64,
    complex: torch.complex128,
}


class ClassValue(KnownObject):
    """A class, known by identity."""

    def __init__(self, kind: type, source: Source | None = None) -> None:
        self.kind = kind
        self.source = source

    def defines_operators(self) -> bool:
        """Return True: a metaclass may have them."""
        return True

    def describe(self) -> str:
        """Return the class's name."""
        return f"class {self.kind.__qualname__}"

    def constant(self) -> object:
        """Return the class."""
        return self.kind

    def truth(self, ctx: CaptureContext) -> bool:
        """Classes are true, unless their metaclass says otherwise."""
        answer = self._special(ctx, "__bool__")
        answer = self._special(ctx, "__len__") if answer is None else answer
        return True if answer is None else answer.truth(ctx)

    def graph_argument(self, ctx: CaptureContext) -> tuple[object, object]:
        """Return the class for both; where it stands for a dtype, the dtype: graphs cannot print `int`."""
        argument = _DTYPES.get(self.kind, self.kind)
        return argument, argument

    def get_attr(self, ctx: CaptureContext, name: str) -> Value:
        """Evaluate `cls.name`."""
        if name in _FIXED_OF_CLASSES:
            return self._description(ctx, name)
        if name == "__dict__":
            return class_namespace(ctx, self.kind)
        owner, raw = class_lookup(self.kind, name)
        if name == "__annotations__" and name not in vars(self.kind) and self.kind.__flags__ & HEAP_TYPE:
            self.unsupported("annotations of a class that has none: Python makes them when asked", ATTRIBUTE)
        if owner is None:
            if self.kind.__flags__ & HEAP_TYPE:  # torch's and Python's own classes may be given it, too
                ctx.guards.add(Injected(self.kind), GuardKind.MEMBER, Member(name, None, ABSENT))
            return self._from_metaclass(ctx, name)
        methods: tuple[type, ...] = (types.FunctionType, classmethod, staticmethod)
        set_later = name in owner.__dict__ and not hasattr(type(raw), "__get__") and owner not in type(raw).__mro__
        if issubclass(self.kind, enum.Enum) and not isinstance(raw, methods) and not (set_later and may_change(owner)):
            return fold(ctx, getattr, self.kind, name)
        if owner is type and not hasattr(
            self.kind, name
        ):  # `type` describes others, and lacks `__annotations__` itself
            return fold(ctx, getattr, self.kind, name)
        return bind_raw(ctx, raw, owner, name, None, self.kind)

    def _description(self, ctx: CaptureContext, name: str) -> Value:
        """Return what every class says of itself; a user may rename a class, or give it other bases."""
        attribute = getattr(self.kind, name)
        if may_change(self.kind) and isinstance(attribute, str | tuple | type | None):
            how = GuardKind.IDENTITY if isinstance(attribute, type) else GuardKind.EQUALS
            ctx.guards.add(Attribute(Injected(self.kind), name), how, attribute)
        return ctx.known(attribute)

    def _from_metaclass(self, ctx: CaptureContext, name: str) -> Value:
        owner, raw = class_lookup(type(self.kind), name)
        if isinstance(raw, types.FunctionType) and owner is not None:
            return BoundMethod(ctx.wrap(raw, Injected(raw)), self)
        if raw is vars(enum.EnumMeta)["__members__"]:  # a proxy that is made at every look-up
            table = ctx.wrap(vars(self.kind)["_member_map_"], Attribute(Injected(self.kind), "_member_map_"))
            assert isinstance(table, DictValue)
            return ProxyValue(table)
        if isinstance(raw, property) and isinstance(raw.fget, types.FunctionType) and owner is not None:
            if owner.__module__ == "enum":
                return fold(ctx, getattr, self.kind, name)
            return bind_raw(ctx, raw, owner, name, self, type(self.kind))
        fallback = class_lookup(type(self.kind), "__getattr__")[1]
        if owner is None and isinstance(fallback, types.FunctionType):
            return ctx.call(ctx.wrap(fallback, Injected(fallback)), [self, Constant(name)], {})
        if not hasattr(self.kind, name):
            self.refuse(ctx, f"attribute {name!r}", lambda value: getattr(value, name), reason=ATTRIBUTE)
        attribute = getattr(self.kind, name)
        if name == "mro":  # called in a moment
            self._description(ctx, "__mro__")
        if callable(attribute) or owner is type:
            return ctx.known(attribute)
        self.unsupported(f"attribute {name!r} of the metaclass", UNSUPPORTED_OBJECT)

    def set_attr(self, ctx: CaptureContext, name: str, value: Value) -> None:
        """Set an attribute, on the class when the graph has run."""
        if self.kind in CAPTURED_CLASSES and CAPTURED_CLASSES[self.kind] is not self:
            CAPTURED_CLASSES[self.kind].set_attr(ctx, name, value)
        else:
            change_class(ctx, self.kind, name, value)

    def del_attr(self, ctx: CaptureContext, name: str) -> None:
        """Delete an attribute, on the class when the graph has run."""
        if self.kind in CAPTURED_CLASSES and CAPTURED_CLASSES[self.kind] is not self:
            CAPTURED_CLASSES[self.kind].del_attr(ctx, name)
        else:
            change_class(ctx, self.kind, name, None)

    def call(self, ctx: CaptureContext, args: Arguments, kwargs: Keywords) -> Value:
        """Evaluate construction."""
        rule = CONSTRUCTORS.get(self.kind)
        demand_arguments(ctx, self.kind, args, kwargs)
        if rule is not None:
            try:
                return rule(ctx, self.kind, args, kwargs)
            except (IndexError, KeyError, ValueError):
                refuse_arguments(ctx, self.kind, args, kwargs)  # rules do not count their arguments
                raise
        own = class_lookup(type(self.kind), "__call__")[1]
        if isinstance(own, types.FunctionType) and not issubclass(self.kind, enum.Enum):
            return ctx.call(ctx.wrap(own, Injected(own)), [self, *args], kwargs)
        return self.construct(ctx, args, kwargs)

    def construct(self, ctx: CaptureContext, args: Arguments, kwargs: Keywords) -> Value:
        """Evaluate `type.__call__(cls, ...)`."""
        for base, base_rule in CONSTRUCTORS.items():
            if base in (BaseException, tuple, torch.autograd.Function) and issubclass(self.kind, base):
                return base_rule(ctx, self.kind, args, kwargs)
        return construct(ctx, self.kind, args, kwargs)

    def call_native(self, ctx: CaptureContext, method: Value, args: Arguments, kwargs: Keywords) -> Value:
        """Evaluate `super().__call__(...)` in a metaclass, and rules of `type` that read."""
        name = method.name if isinstance(method, NativeMethod) else ""
        if name == "__call__":
            return self.construct(ctx, args, kwargs)
        if name == "__getattribute__":
            return self.get_attr(ctx, str(ctx.realize(args[0]).constant()))
        if name in ("__instancecheck__", "__subclasscheck__"):
            kind = (
                ctx.realize(args[0]).python_type() if name == "__instancecheck__" else ctx.realize(args[0]).constant()
            )
            assert isinstance(kind, type)
            return Constant(type.__subclasscheck__(self.kind, kind))
        if name in ("__init__", "__init_subclass__"):
            return Constant(None)
        return super().call_native(ctx, method, args, kwargs)

    def _special(self, ctx: CaptureContext, name: str, *args: Value) -> Value | None:
        """Evaluate a special method of a metaclass written by the user; None if there is none."""
        owner, raw = class_lookup(type(self.kind), name)
        if owner is None or owner.__module__ == "enum" or not isinstance(raw, types.FunctionType):
            return None
        return ctx.realize(ctx.call(bind_raw(ctx, raw, owner, name, self, type(self.kind)), list(args), {}))

    def stand_in(self) -> object:
        """Return the class, whose errors tell its name."""
        guard_description(self.kind, "__name__")
        return self.kind

    def iterate(self, ctx: CaptureContext) -> Value:
        """Iterate over enum members."""
        if issubclass(self.kind, enum.Enum):
            return ctx.known(tuple(self.kind)).iterate(ctx)
        answer = self._special(ctx, "__iter__")
        return super().iterate(ctx) if answer is None else answer

    def get_item(self, ctx: CaptureContext, key: Value) -> Value:
        """Look up an enum member, or parametrise a generic class."""
        answer = self._special(ctx, "__getitem__", key)
        if answer is not None:
            return answer
        _, raw = class_lookup(self.kind, "__class_getitem__")
        function = raw.__func__ if isinstance(raw, classmethod) else None
        if isinstance(function, types.FunctionType) and function.__module__ not in ("typing", "typing_extensions"):
            return ctx.call(self.get_attr(ctx, "__class_getitem__"), [key], {})
        return fold(ctx, operator.getitem, self.kind, key.constant())

    def length(self, ctx: CaptureContext) -> Value:
        """Return the number of enum members."""
        answer = self._special(ctx, "__len__")
        return answer if answer is not None else fold(ctx, len, self.kind)

    def contains(self, ctx: CaptureContext, item: Value) -> bool:
        """Return whether an enum has the member."""
        answer = self._special(ctx, "__contains__", item)
        if answer is not None:
            return answer.truth(ctx)
        if not item.is_constant():
            self.refuse(ctx, "membership test", operator.contains, item)
        return bool(fold(ctx, lambda: item.constant() in self.kind).constant())  # type: ignore[operator]  # as Python

    def rebuild(self, out: Rebuilder) -> str:
        """Return an injected name; a class that was made while capturing is made again."""
        return out.class_name(self.kind)


def _asks_own_code(kind: type[enum.Enum], value: object) -> bool:
    """Return whether the look-up of a member asks a `_missing_` that the user has written."""
    own = any("_missing_" in vars(base) for base in kind.__mro__ if base.__module__ != "enum")
    return own and all(value is not member.value and value != member.value for member in kind)


def construct(ctx: CaptureContext, kind: type, args: Arguments, kwargs: Keywords) -> Value:
    """Evaluate `kind(*args, **kwargs)` of a class written in Python."""
    if issubclass(kind, enum.Enum):
        if kwargs or not all(ctx.realize(arg).is_constant() for arg in args):  # members are looked up, none is made
            raise Break(CONSTRUCTION, f"a member of {kind.__qualname__} by a value that is not known")
        if len(args) == 1 and _asks_own_code(kind, ctx.realize(args[0]).constant()):
            raise Break(CONSTRUCTION, f"a member of {kind.__qualname__}, whose `_missing_` is asked")
        return fold(ctx, kind, *(ctx.realize(arg).constant() for arg in args))
    _require_constructible(ctx, kind)
    owner, maker = class_lookup(kind, "__new__")
    if maker is None:
        ctx.call(Constant(None), args, kwargs)
    _demand_plain(kind, "__new__", getattr(maker, "__func__", maker), types.FunctionType, types.BuiltinFunctionType)
    if not isinstance(maker, staticmethod | types.BuiltinFunctionType):
        raise Break(CONSTRUCTION, f"construction of {kind.__qualname__}, whose __new__ is bound to it")
    if owner is not None and isinstance(maker, staticmethod) and isinstance(maker.__func__, types.FunctionType):
        new = ctx.call(ctx.wrap(maker.__func__, Injected(maker.__func__)), [ctx.known(kind), *args], kwargs)
        if issubclass(kind, torch.Tensor) and issubclass(new.python_type(), kind):
            place, init = class_lookup(new.python_type(), "__init__")
            if isinstance(init, types.FunctionType) and place is not None:
                ctx.calls.initialise(new, ctx.wrap(init, Injected(init)), args, kwargs)
            return new
        if not issubclass(new.python_type(), kind) or not isinstance(new, ObjectValue):
            return new
        instance = new
    else:
        new = native_new(ctx, kind, args, kwargs, checked=maker is not object.__new__)
        if not isinstance(new, ObjectValue):
            return new
        instance = new
    kind = instance.kind  # it may be of a derived class, whose `__init__` is asked
    owner, raw = class_lookup(kind, "__init__")
    if raw is None:
        ctx.call(Constant(None), args, kwargs)
    _demand_plain(kind, "__init__", raw, types.FunctionType, types.WrapperDescriptorType)
    if isinstance(raw, types.FunctionType) and owner is not None:
        ctx.calls.initialise(instance, ctx.wrap(raw, Injected(raw)), args, kwargs)
    elif owner is types.SimpleNamespace:
        instance.namespace.call_method(ctx, "update", args, kwargs)
    elif instance.contents is not None and not isinstance(instance.contents, Constant):
        _demand_arguments(ctx, kind, instance.contents.python_type(), args, kwargs)
        instance.contents.initialise_instance(ctx, args, kwargs)
    elif (args or kwargs) and maker is object.__new__:
        ctx.throw(TypeError, f"{told_name(kind)}() takes no arguments")
    return instance


def _demand_plain(kind: type, name: str, raw: object, *plain: type) -> None:
    """Raise Break for a class that is constructed by a descriptor, or by an object that is called."""
    if raw is not None and not isinstance(raw, plain):
        raise Break(CONSTRUCTION, f"construction of {kind.__qualname__}, whose {name} is no function")


_ABSTRACT = 1 << 20  # the flag of a class with abstract methods
_NAMED_ARGUMENTS: dict[type, str | None] = {  # they are ignored where the class has its own one of these, not refused
    list: "__new__",
    set: None,
    tuple: "__init__",
    frozenset: "__init__",
    float: "__init__",
}
_LITERAL_BASES = (int, float, complex, str, bytes)
_PLAIN_BASES = (
    object,
    dict,
    list,
    set,
    frozenset,
    tuple,
    BaseException,
    collections.OrderedDict,
    collections.defaultdict,
    collections.deque,
    types.SimpleNamespace,
    *_LITERAL_BASES,
)


def native_new(ctx: CaptureContext, kind: type, args: Arguments, kwargs: Keywords, *, checked: bool = False) -> Value:
    """Evaluate the `__new__` that a class inherits from its builtin base; checked: the class has no other one."""
    _require_constructible(ctx, kind)
    if issubclass(kind, torch.Tensor):
        raise Break(CONSTRUCTION, f"construction of {kind.__qualname__} by torch's own __new__")
    if issubclass(kind, tuple):
        demand_plain_reading(kind)
        _demand_arguments(ctx, kind, tuple, args, kwargs)
        if not is_native(class_lookup(kind, "__init__")[0] or object):
            raise Break(CONSTRUCTION, f"construction of {kind.__qualname__}, a tuple with an `__init__` of its own")
        return TupleValue(ctx.realize(args[0]).gathered(ctx)[:] if args else [], kind=kind)
    instance = new_object(kind)
    base = next((base for base in (*_LITERAL_BASES, frozenset) if issubclass(kind, base)), None)
    if base is not None:
        _demand_arguments(ctx, kind, base, args, kwargs)
        contents = ctx.call(ctx.known(base), args, {} if base in (float, frozenset) else kwargs)
        instance.hold(SetValue.of_members(contents) if isinstance(contents, SetValue) else contents)
        if not isinstance(instance.contents, Constant | SetValue):
            raise Break(CONSTRUCTION, f"construction of {kind.__qualname__} of a value that is not known")
    return instance


def _demand_arguments(ctx: CaptureContext, kind: type, base: type, args: Arguments, kwargs: Keywords) -> None:
    """Raise what a builtin container or a float raises for arguments of an instance of a class derived from it."""
    if base is collections.deque:
        refused = len(args) > 2 or not kwargs.keys() <= {"iterable", "maxlen"}
    elif base in _NAMED_ARGUMENTS:
        freed = _NAMED_ARGUMENTS[base]
        if freed is not None and not is_native(class_lookup(kind, freed)[0] or object):
            kwargs = {}
        refused = len(args) > 1 or bool(kwargs)
    else:
        refused = False
    if refused:
        fold(ctx, type(told_name(kind), (base,), {}), *[()] * len(args), **dict.fromkeys(kwargs))


def _require_constructible(ctx: CaptureContext, kind: type) -> None:
    if type(kind).__call__ is not type.__call__ and not isinstance(
        class_lookup(type(kind), "__call__")[1], types.FunctionType
    ):
        raise Break(CONSTRUCTION, f"construction of {kind.__qualname__}, whose metaclass has its own __call__")
    if kind.__dictoffset__ and place_of_namespace(kind) is None:
        raise Break(CONSTRUCTION, f"construction of {kind.__qualname__}, which hides the namespace of its instances")
    if kind.__flags__ & _ABSTRACT:
        fold(ctx, object.__new__, kind)
    made_in_python = isinstance(class_lookup(kind, "__new__")[1], staticmethod)
    if issubclass(kind, torch.autograd.Function) or (issubclass(kind, torch.Tensor) and not made_in_python):
        raise Break(CONSTRUCTION, f"construction of {kind.__qualname__}")
    if class_lookup(kind, "__del__")[1] not in (None, ABSENT):
        ctx.frames.break_around(Break(CONSTRUCTION, f"construction of {kind.__qualname__}, which has __del__"))
    if issubclass(kind, weakref.ref):
        ctx.frames.break_around(Break(CONSTRUCTION, f"construction of {kind.__qualname__}, a weak reference"))
    for base in kind.__mro__:
        native = is_native(base) and not issubclass(torch.Tensor, base)
        if native and base not in _PLAIN_BASES and base.__module__ not in ("typing", "abc", "collections"):
            raise Break(CONSTRUCTION, f"construction of {kind.__qualname__}, which derives from {base.__qualname__}")
        if base.__module__.split(".")[0] in ("threading", "_thread", "socket", "io", "subprocess", "logging", "random"):
            raise Break(CONSTRUCTION, f"construction of {kind.__qualname__}")


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
        if name in ("__thisclass__", "__self__", "__self_class__"):
            kind_value = (
                self.instance if isinstance(self.instance, ClassValue) else ctx.known(self.instance.python_type())
            )
            return {"__thisclass__": ctx.known(self.start), "__self__": self.instance}.get(name, kind_value)
        owner_class = self.instance.kind if isinstance(self.instance, ClassValue) else None
        of_class = owner_class is not None and issubclass(owner_class, self.start)
        kind = owner_class if of_class and owner_class is not None else self.instance.python_type()
        owner, raw = class_lookup(kind, name, after=self.start)
        if owner is None:
            ctx.throw(AttributeError, f"'super' object has no attribute '{name}'")
        if name == "__new__" and not isinstance(raw, staticmethod):
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
        kind = ctx.realize(args[0])
        if not isinstance(kind, ClassValue):
            self.unsupported("call", UNKNOWN_CALLEE)
        if issubclass(kind.kind, torch.nn.Module):
            return new_object(kind.kind)
        if issubclass(kind.kind, BaseException):
            instance = new_object(kind.kind)
            instance.call_native(ctx, NativeMethod(instance, BaseException, "__init__"), args[1:], kwargs)
            return instance
        return native_new(ctx, kind.kind, args[1:], kwargs)


@calls(object.__new__, dict.__new__, list.__new__, int.__new__, float.__new__, str.__new__, set.__new__)
def _new(ctx: CaptureContext, args: Arguments, kwargs: Keywords) -> Value:
    return NewMethod().call(ctx, args, kwargs)
