"""Attribute lookup as Python does it: which class of the MRO has a name, and what finding it there gives."""

import abc
import functools
import sys
import threading
import types
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NoReturn
from weakref import WeakKeyDictionary

import torch

from ....base.real_objects.past_methods import is_really
from ...constant import Constant, fold
from ...guard import ABSENT, Answer, GuardKind, Member, look_up, member_found
from ...reasons import UNSUPPORTED_OBJECT, Break
from ...refused_arguments import demand_method_arguments
from ...source import Attribute, Injected
from ...value import Arguments, CaptureContext, Keywords, Rebuilder, Value
from .functions import BoundMethod

MISSING = ABSENT
HEAP_TYPE = 1 << 9  # a class made by a class statement or the like, not a builtin
_IMMUTABLE = 1 << 8  # a type whose attributes cannot be set
_ONLY_IN_C = _IMMUTABLE | 1 << 7  # or that cannot be called
C_DESCRIPTORS = (
    types.MethodDescriptorType,
    types.WrapperDescriptorType,
    types.ClassMethodDescriptorType,
)


# The template of each class that the program has made while it was captured -> its value.
CAPTURED_CLASSES: WeakKeyDictionary[type, Value] = WeakKeyDictionary()


def leads_to_template(value: object) -> bool:
    """Return whether a real object is a template, or of one: such an object stands for one that is to be made."""
    if is_really(value, type) or _is_template(type(value)):
        return _is_template(type(value)) or _is_template(value)
    if isinstance(value, _OF_OWNER):
        return leads_to_template(getattr(value, "__self__", getattr(value, "__objclass__", None)))
    if isinstance(value, types.GenericAlias | types.UnionType) or type(value).__module__ == "typing":
        parts = (getattr(value, "__origin__", None), *getattr(value, "__args__", ()))
        return any(map(leads_to_template, parts))
    return False


def _is_template(kind: object) -> bool:
    """Return whether a class is a template; others are not asked for a hash, which a metaclass may refuse."""
    return type(kind) in (type, abc.ABCMeta) and kind in CAPTURED_CLASSES


_OF_OWNER = (
    types.BuiltinFunctionType,
    types.MethodWrapperType,
    types.MemberDescriptorType,
    types.GetSetDescriptorType,
)


class ValueHolder:
    """Stands in the namespace of a class for a value that has no real object yet."""

    def __init__(self, value: Value) -> None:
        self.value = value


def is_native(kind: type) -> bool:
    """Return whether a class is written in C: some of those look like classes of Python but have a C `__new__`."""
    flags = kind.__flags__
    made_in_c = isinstance(kind.__dict__.get("__new__"), types.BuiltinFunctionType)
    return not flags & HEAP_TYPE or bool(flags & _ONLY_IN_C) or made_in_c


def natural_method(kind: type, name: str) -> object:
    """Return the special method that instances have from the classes in C among the bases; MISSING if none."""
    for base in kind.__mro__:
        if name in vars(base) and is_native(base):
            return vars(base)[name]
    return MISSING


def name_in_errors(kind: type) -> str:
    """Return the name that C gives a class in texts of errors: that of one written in C has its module in front."""
    bases = [base for base in kind.__mro__ if base.__flags__ & HEAP_TYPE]
    names = ("__dict__", "__slots__", "__weakref__")
    inherits_both = any(base.__dictoffset__ and base.__weakrefoffset__ for base in kind.__mro__[1:] if is_native(base))
    of_python = issubclass(kind, type) or inherits_both or any(name in vars(base) for base in bases for name in names)
    written_in_c = is_native(kind) or not of_python or kind.__module__ in sys.builtin_module_names
    if not written_in_c or kind.__module__ == "builtins":
        return told_name(kind)
    guard_description(kind, "__module__", "__qualname__")
    return f"{kind.__module__}.{kind.__qualname__}"


def told_name(kind: type) -> str:
    """Return the name of a class for a text, which holds until somebody renames the class."""
    guard_description(kind, "__name__")
    return kind.__name__


def guard_description(kind: type, *names: str) -> None:
    """Guard what a class that can change says of itself: the text that is made of it is a constant."""
    ctx = _WATCH.ctx
    if ctx is None or not may_change(kind):
        return
    for name in names:
        ctx.guards.add(Attribute(Injected(kind), name), GuardKind.EQUALS, getattr(kind, name))


class _Watch(threading.local):
    """The capture going on in this thread, and the look-ups that it has guarded."""

    ctx: CaptureContext | None = None
    seen: set[tuple[type, str, type | None]] = set()  # noqa: RUF012 - replaced with ctx, never shared
    templates: list[type] = []  # noqa: RUF012 - as above


_WATCH = _Watch()


@contextmanager
def lookups_guarded(ctx: CaptureContext) -> Iterator[None]:
    """Guard every look-up in classes that can change until the block ends: no rule can forget one."""
    before = (_WATCH.ctx, _WATCH.seen, _WATCH.templates)
    _WATCH.ctx, _WATCH.seen, _WATCH.templates = ctx, set(), []
    try:
        yield
    finally:
        for template in reversed(_WATCH.templates):
            _retire(template)
        _WATCH.ctx, _WATCH.seen, _WATCH.templates = before


def enter_template(kind: type, value: Value) -> None:
    """Enter a class that was made while capturing."""
    CAPTURED_CLASSES[kind] = value
    _WATCH.templates.append(kind)


def _retire(template: type) -> None:
    """Take a template out of the `__subclasses__()` of the program's classes, once the capture has ended."""
    if template.__base__ is None or is_native(template.__base__):
        return
    base = next(base for base in template.__mro__ if is_native(base))
    try:
        template.__bases__ = (type("Retired", (base,), {}),)
    except TypeError:  # instances of the two would not be laid out alike
        return


def class_lookup(kind: type, name: str, after: type | None = None) -> tuple[type | None, object]:
    """Return (owner, raw attribute) of the first class in the MRO that has the name; (None, MISSING) if none.

    after: look behind this class only. In a capture the outcome is guarded; of plain data only that it is plain,
    since whoever reads its value guards that.
    """
    if _WATCH.ctx is not None and _WATCH.ctx.effects.class_changes:
        changed = _look_at_changes(_WATCH.ctx, kind, name, after)
        if changed is not None:
            return changed
    owner, raw = look_up(kind, name, after)
    if _WATCH.ctx is not None and (kind, name, after) not in _WATCH.seen:
        _WATCH.seen.add((kind, name, after))
        if kind.__flags__ & (HEAP_TYPE | _IMMUTABLE) == HEAP_TYPE:  # libraries' classes, too: tests replace methods
            _WATCH.ctx.guards.add(Injected(kind), GuardKind.MEMBER, Member(name, after, member_found(raw)))
    return owner, raw


_READING = ("__len__", "__bool__", "__iter__", "__getitem__", "__contains__", "__getattribute__", "__getattr__")


def demand_plain_reading(kind: type) -> None:
    """Raise Break for a class derived from tuple by whose methods instances are read otherwise than as their elements.

    Instances are known by their elements alone.
    """
    bases = [base for base in kind.__mro__ if not is_native(base)]
    refused = {name for base in bases for name, raw in vars(base).items() if raw is None and name[:2] == "__"}
    for name in (*(refused - {"__doc__"}), *_READING) if bases else ():
        if isinstance(class_lookup(kind, name)[1], types.FunctionType | None):
            raise Break(UNSUPPORTED_OBJECT, f"a {kind.__qualname__}, a tuple with its own {name}")


def _look_at_changes(
    ctx: CaptureContext, kind: type, name: str, after: type | None
) -> tuple[type | None, object] | None:
    """Return what a look-up finds among attributes that the program has set; None if it does not get that far."""
    mro = kind.__mro__
    deleted = False
    for owner in mro[mro.index(after) + 1 if after is not None else 0 :]:
        changes = ctx.effects.class_changes.get(owner)
        raw = getattr(changes, "raw", {}).get(name, owner.__dict__.get(name, MISSING) if deleted else None)
        if raw is None and name in owner.__dict__:
            return None
        if raw is not None and raw is not MISSING:
            return owner, raw
        deleted = deleted or raw is MISSING
    return (None, MISSING) if deleted else None


@functools.lru_cache(maxsize=4096)
def may_change(kind: type) -> bool:
    """Return whether a class is the user's, whose attributes may change; torch's and Python's own are fixed."""
    is_local = "<locals>" in kind.__qualname__  # each fx module has a class of its own, which it changes
    return bool(kind.__flags__ & HEAP_TYPE) and not (_is_fixed(kind) and not (is_local and is_torch_class(kind)))


def _is_fixed(one: object) -> bool:
    """Return whether a class or a function is torch's or Python's own."""
    root = str(getattr(one, "__module__", "")).partition(".")[0]
    return root == "torch" or (root in sys.stdlib_module_names and root != "__main__")


def was_added(raw: object) -> bool:
    """Return whether what a class has is a function, a method or a property of the user's."""
    function = getattr(raw, "fget" if isinstance(raw, property) else "__func__", raw)
    return isinstance(function, types.FunctionType) and not _is_fixed(function)


def guard_bases(ctx: CaptureContext, kind: type, candidates: object) -> None:
    """Demand that a class derives from what it derives from now, for `isinstance` and `issubclass` with `wanted`."""
    classes = candidates if isinstance(candidates, tuple) else (candidates,)
    if may_change(kind):
        ctx.guards.add(Attribute(Injected(kind), "__mro__"), GuardKind.EQUALS, kind.__mro__)
    else:
        classes = tuple(base for base in classes if isinstance(base, type) and may_change(base))
    if any(isinstance(base, abc.ABCMeta) and base not in kind.__mro__ for base in classes):  # `register` may add it
        try:
            verdict = issubclass(kind, classes)
        except TypeError:  # a protocol that answers for instances only
            return
        ctx.guards.add(Injected(issubclass), GuardKind.ANSWER, Answer((kind, classes), {}, verdict))


def is_torch_class(kind: type) -> bool:
    """Return whether the class is torch's own, whose methods are taken as fixed."""
    module = str(getattr(kind, "__module__", ""))
    return module == "torch" or module.startswith("torch.") or kind is object


def bind_raw(ctx: CaptureContext, raw: object, owner: type, name: str, instance: Value | None, kind: type) -> Value:
    """Evaluate what finding `raw` in class `owner` gives for an instance (None: for the class) of `kind`."""
    attribute = _Attribute(ctx, raw, owner, name, instance, kind)
    for kinds, rule in _ON_CLASS if instance is None else _ON_INSTANCE:
        if issubclass(type(raw), kinds):  # a mock gives itself out for what it stands for
            return rule(attribute)
    getter = class_lookup(type(raw), "__get__")[1]
    if isinstance(getter, types.FunctionType) and not (instance is None and isinstance(raw, torch.nn.Module)):
        call = ctx.wrap(getter, Injected(getter))
        return ctx.call(call, [ctx.wrap(raw, Injected(raw)), instance or Constant(None), ctx.known(kind)], {})
    return _plain_class_attribute(ctx, kind, owner, name, raw)


@dataclass(frozen=True, slots=True)
class _Attribute:
    """What a look-up has found: raw, under `name` in class `owner`, for an instance of `kind` or for `kind` itself."""

    ctx: CaptureContext
    raw: Any
    owner: type
    name: str
    instance: Value | None
    kind: type

    def inner(self, function: object) -> Value:
        """Return the value of an object that the descriptor holds."""
        return self.ctx.wrap(function, Injected(function))

    def the_instance(self) -> Value:
        """Return the instance, where the rule is one of instances."""
        assert self.instance is not None
        return self.instance


def _bound_function(attribute: _Attribute) -> Value:
    function = attribute.inner(attribute.raw)
    return function if attribute.instance is None else BoundMethod(function, attribute.instance)


def _bound_to_class(attribute: _Attribute) -> Value:
    inner = attribute.raw.__func__
    if sys.version_info < (3, 13) and not isinstance(inner, types.FunctionType) and hasattr(type(inner), "__get__"):
        kind = attribute.ctx.known(attribute.kind)  # what it holds is bound to the class as to an instance
        return bind_raw(attribute.ctx, inner, attribute.owner, attribute.name, kind, attribute.kind)
    return BoundMethod(attribute.inner(attribute.raw.__func__), attribute.ctx.known(attribute.kind))


def refused_by_property(ctx: CaptureContext, instance: Value, operation: Callable[[object], object]) -> NoReturn:
    """Raise what a property without the function for an operation raises: Python itself is asked, on a stand-in."""
    try:
        operation(instance.stand_in())
    except AttributeError as error:
        ctx.throw(AttributeError, *error.args)
    raise AssertionError("a property without a function has one")


def _property_value(attribute: _Attribute) -> Value:
    if attribute.raw.fget is None:
        refused_by_property(attribute.ctx, attribute.the_instance(), attribute.raw.__get__)
    return attribute.ctx.call(attribute.inner(attribute.raw.fget), [attribute.the_instance()], {})


def _cached_property_value(attribute: _Attribute) -> Value:
    value = attribute.ctx.call(attribute.inner(attribute.raw.func), [attribute.the_instance()], {})
    attribute.the_instance().set_attr(attribute.ctx, attribute.name, value)
    return value


def _native_method(attribute: _Attribute) -> Value:
    instance = attribute.the_instance()
    if isinstance(attribute.raw, types.ClassMethodDescriptorType) and attribute.owner is not object:
        return fold(attribute.ctx, getattr, attribute.kind, attribute.name)  # of the class: `fromhex` of a float
    if not issubclass(instance.python_type(), attribute.raw.__objclass__):  # `upper = str.upper` in another class
        fold(attribute.ctx, attribute.raw.__get__, instance.stand_in())
    home, name = attribute.raw.__objclass__, attribute.raw.__name__
    if vars(home).get(name) is attribute.raw:
        return NativeMethod(instance, home, name)  # whatever it is called here: `fetch = dict.get`
    return NativeMethod(instance, attribute.owner, attribute.name)


_BindingRule = Callable[[_Attribute], Value]
_BindingRules = tuple[tuple[type | tuple[type, ...], _BindingRule], ...]
_ON_BOTH: _BindingRules = (
    (ValueHolder, lambda attribute: attribute.ctx.realize(attribute.raw.value)),  # no real object yet
    (types.FunctionType, _bound_function),
    (staticmethod, lambda attribute: attribute.inner(attribute.raw.__func__)),
    (classmethod, _bound_to_class),
)
_ON_CLASS: _BindingRules = (
    *_ON_BOTH,
    (
        (*C_DESCRIPTORS, property, types.MemberDescriptorType, types.GetSetDescriptorType),
        lambda attribute: fold(attribute.ctx, getattr, attribute.kind, attribute.name),  # the descriptor itself
    ),
)
_ON_INSTANCE: _BindingRules = (
    *_ON_BOTH,
    (property, _property_value),
    (functools.cached_property, _cached_property_value),
    (C_DESCRIPTORS, _native_method),
    (
        functools._lru_cache_wrapper,
        lambda attribute: BoundMethod(attribute.inner(attribute.raw), attribute.the_instance()),
    ),
)


def _plain_class_attribute(ctx: CaptureContext, kind: type, owner: type, name: str, raw: object) -> Value:
    if hasattr(type(raw), "__get__") and not isinstance(raw, type | torch.nn.Module):
        raise Break(UNSUPPORTED_OBJECT, f"{kind.__name__}.{name} is a descriptor written in C")
    if owner is object:
        return ctx.known(raw)
    return ctx.wrap(raw, Attribute(Injected(kind), name))


class NativeMethod(Value):
    """A method written in C, found on a class written in Python: `super().__setattr__`, `object.__init__`, ..."""

    def __init__(self, owner: Value, kind: type, name: str) -> None:
        self.owner = owner
        self.kind = kind
        self.name = name
        self.bound = True  # not where one instruction loads a method to call it: Python binds none there

    def python_type(self) -> type:
        """Return the type of such a bound method: a slot of a C type is wrapped."""
        slot = isinstance(self.kind.__dict__.get(self.name), types.WrapperDescriptorType)
        return types.MethodWrapperType if slot else types.BuiltinMethodType

    def stand_in(self) -> object:
        """Return a bound method of the type: its attributes are those of all such methods."""
        return [].__len__ if self.python_type() is types.MethodWrapperType else [].append

    def describe(self) -> str:
        """Return the method's qualified name."""
        return f"{self.kind.__qualname__}.{self.name}"

    def call(self, ctx: CaptureContext, args: Arguments, kwargs: Keywords) -> Value:
        """Evaluate what the owner knows of it."""
        demand_method_arguments(ctx, self.owner, self.kind.__dict__.get(self.name), args, kwargs, bound=self.bound)
        return self.owner.call_native(ctx, self, args, kwargs)

    def rebuild(self, out: Rebuilder) -> str:
        """Make the bound method."""
        name = out.fresh()
        owner = out.value(self.owner)  # without the class, descriptors of some C methods read past their arguments
        out.line(f"{name} = {out.inject(self.kind.__dict__[self.name])}.__get__({owner}, type({owner}))")
        return name
