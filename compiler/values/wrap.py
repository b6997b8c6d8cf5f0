"""A real object and its Source become a value, with the guards that make it true: a table from type to rule."""

import collections
import enum
import functools
import gc
import operator
import re
import sys
import types
import typing
import weakref
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.attention

from ..base.real_objects.past_methods import is_really, place_of_namespace
from ..base.torch_facts import inference_block, operator_kinds, operator_namespaces
from .constant import LITERAL_TYPES, Constant, Known, MethodOf
from .guard import GuardKind
from .identities import settled, stored_token
from .python.containers.lists import ListValue
from .python.containers.mappings import DictValue, ProxyValue
from .python.containers.namespaces import GlobalsValue
from .python.containers.sequences import SliceValue
from .python.containers.sets import SetValue
from .python.containers.tuples import TupleValue
from .python.objects.attributes import CAPTURED_CLASSES, class_lookup, demand_plain_reading, is_native
from .python.objects.class_changes import class_namespace
from .python.objects.classes import ClassValue
from .python.objects.exception_groups import GroupValue
from .python.objects.exceptions import ExceptionValue
from .python.objects.functions import BoundMethod, CellValue, wrap_function
from .python.objects.instances import ObjectValue, OpaqueValue
from .python.objects.partials import PartialValue, holds_dictionary
from .rule_tables import WRAP_RULES, WrapRule, wraps_type
from .source import Attribute, BaseContents, BaseItem, Injected, Item, ListedItem, Referent, Source
from .torch.modes import DeviceBlock
from .torch.modules import ModuleValue
from .value import Arguments, CaptureContext, Keywords, Value

_UNION: type = type(typing.Union[int, str])  # noqa: UP007 - the old spelling has the class that is wanted
_KNOWN_BY_IDENTITY = (
    torch.dtype,
    torch.layout,
    torch.memory_format,
    *operator_kinds,
    *operator_namespaces,
    types.ModuleType,
    enum.Enum,
    type(torch.nn.attention.SDPBackend.MATH),
    types.MethodDescriptorType,
    types.WrapperDescriptorType,
    types.CodeType,
    type(property()),
    types.GetSetDescriptorType,
    types.MemberDescriptorType,
    types.ClassMethodDescriptorType,
    _UNION,
    type(typing.Any),
    type(typing.Callable),
    type(typing.Sequence),
    typing.TypeVar,
    typing.ParamSpec,
    staticmethod,
    classmethod,
    type(typing.Optional),
    type(typing.Any),
    re.Pattern,
    operator.itemgetter,
    operator.attrgetter,
    operator.methodcaller,
)


def wrap_object(ctx: CaptureContext, value: object, source: Source) -> Value:
    """Return the value of anything but a tensor (which the capture makes a graph input)."""
    rule = WRAP_RULES.get(type(value))
    if rule is None:
        rule = next((rule for kinds, rule in _BY_BASE if issubclass(type(value), kinds)), _other)
    return rule(ctx, value, source)


def _class(ctx: CaptureContext, value: object, source: Source) -> Value:
    assert isinstance(value, type)
    if CAPTURED_CLASSES and value in CAPTURED_CLASSES:  # found in another one: each call makes it anew
        return CAPTURED_CLASSES[value]
    ctx.guards.add(source, GuardKind.IDENTITY, value)
    return ClassValue(value, source)


def _by_identity(ctx: CaptureContext, value: object, source: Source) -> Value:
    ctx.guards.add(source, GuardKind.IDENTITY, value)
    return Known(value, source)


def _module(ctx: CaptureContext, value: object, source: Source) -> Value:
    ctx.guards.add(source, GuardKind.TYPE, type(value))
    if getattr(type(value), "_plumbline_compiled", False):
        return ctx.wrap(object.__getattribute__(value, "_original"), Attribute(source, "_original"))
    return ModuleValue(type(value), value, source)


_OF_EXCEPTIONS = {name: vars(BaseException)[name] for name in ("__getattribute__", "args")}


def _exception(ctx: CaptureContext, value: object, source: Source) -> Value:
    assert isinstance(value, BaseException)
    ctx.guards.add(source, GuardKind.TYPE, type(value))
    if not all(class_lookup(type(value), name)[1] is plain for name, plain in _OF_EXCEPTIONS.items()):
        return OpaqueValue(value, source)  # only its own code knows what its arguments are
    args = ctx.realize(ctx.wrap(value.args, Attribute(source, "args")))
    assert isinstance(args, TupleValue)
    if not isinstance(value, BaseExceptionGroup):
        return ExceptionValue(type(value), args.items, value, source)
    group = GroupValue(type(value), args.items, value, source)
    members = ctx.realize(ctx.wrap(value.exceptions, Attribute(source, "exceptions")))
    inside = ctx.unpack(members)
    group.tuple_of_members = members if isinstance(members, TupleValue) else None
    group.members = tuple(member for member in inside if isinstance(member, ExceptionValue))
    return group


def _other(ctx: CaptureContext, value: object, source: Source) -> Value:
    """Wrap an instance of a class of Python; anything else can only be passed on."""
    kind = type(value)
    ctx.guards.add(source, GuardKind.TYPE, kind)
    readable = not kind.__dictoffset__ or place_of_namespace(kind) is not None
    if readable and (not is_native(kind) or kind is types.SimpleNamespace) and not _has_native_state(kind):
        return _instance(ctx, value, source)
    return OpaqueValue(value, source)


def _instance(ctx: CaptureContext, value: object, source: Source) -> Value:
    instance = ObjectValue(type(value), value, source)
    instance.hold(_contents(ctx, value, source))
    return instance


_CONVERSIONS: dict[type, Callable[..., object]] = {
    int: int.__int__,
    float: float.__float__,
    complex: complex.__complex__,
    str: str.__str__,
    bytes: bytes.__bytes__,
}


def _contents(ctx: CaptureContext, value: object, source: Source) -> Value | None:
    """Return what an instance of a subclass of a builtin type holds, read and written past its methods."""
    for base, convert in _CONVERSIONS.items():
        if is_really(value, base):
            return ctx.wrap(convert(value), BaseContents(source, convert))
    rule = next((rule for base, rule in _CONTENTS.items() if is_really(value, base)), None)
    return None if rule is None else rule(ctx, value, source)


def _dict_contents(ctx: CaptureContext, value: Any, source: Source) -> Value:
    kind: Any = _dict_kind(type(value))
    dictionary = DictValue(kind, source, dict(kind.items(value)))
    dictionary.subclass_of = dictionary.kind
    if isinstance(value, collections.defaultdict):
        dictionary.factory = ctx.wrap(value.default_factory, Attribute(source, "default_factory"))
    return dictionary


def _sequence_contents(ctx: CaptureContext, value: Any, source: Source) -> Value:
    owner: Any = list if isinstance(value, list) else collections.deque
    items: list[Any] = list(owner.__iter__(value))
    ctx.guards.add(BaseContents(source, owner.__len__), GuardKind.EQUALS, len(items))
    lazy = [ctx.lazy(item, BaseItem(source, owner, position)) for position, item in enumerate(items)]
    sequence = ListValue(lazy, source, owner, getattr(value, "maxlen", None))
    sequence.native = True
    return sequence


def _set_contents(ctx: CaptureContext, value: Any, source: Source) -> Value:
    kind: Any = set if isinstance(value, set) else frozenset
    members = _set(ctx, kind(kind.__iter__(value)), BaseContents(source, kind.copy))
    members.source = source
    return members


_CONTENTS: dict[type, WrapRule] = {
    dict: _dict_contents,
    list: _sequence_contents,
    collections.deque: _sequence_contents,
    set: _set_contents,
    frozenset: _set_contents,
}


def _dict_kind(kind: type) -> type:
    for base in (collections.OrderedDict, collections.defaultdict):
        if issubclass(kind, base):
            return base
    return dict


_KNOWN_BASES = (
    object,
    dict,
    list,
    set,
    frozenset,
    collections.OrderedDict,
    collections.defaultdict,
    collections.deque,
    types.SimpleNamespace,
    *_CONVERSIONS,
)


def _has_native_state(kind: type) -> bool:
    """Return whether instances hold more than Python attributes: a base written in C other than object and dict."""
    return any(
        is_native(base) and base not in _KNOWN_BASES and base.__module__ not in ("typing", "abc")
        for base in kind.__mro__
    )


@wraps_type(*(kind for kind in LITERAL_TYPES if kind not in (type(None), bool, type(Ellipsis), type(NotImplemented))))
def _literal(ctx: CaptureContext, value: object, source: Source) -> Value:
    ctx.guards.add(source, GuardKind.EQUALS, value)
    literal = Constant(value, None)
    literal.read_from = source
    return literal


@wraps_type(type(None), bool, type(Ellipsis), type(NotImplemented))
def _singleton(ctx: CaptureContext, value: object, source: Source) -> Value:
    ctx.guards.add(source, GuardKind.IDENTITY, value)
    return Constant(value, None)


@wraps_type(slice)
def _slice(ctx: CaptureContext, value: object, source: Source) -> Value:
    """Return a slice by its bounds: comparing slices compares those, which may be the program's objects."""
    assert isinstance(value, slice)
    bounds = {name: getattr(value, name) for name in ("start", "stop", "step")}
    if all(bound is None or type(bound) in LITERAL_TYPES for bound in bounds.values()):
        return _by_value(ctx, value, source)
    ctx.guards.add(source, GuardKind.TYPE, slice)
    result = SliceValue([ctx.lazy(bound, Attribute(source, name)) for name, bound in bounds.items()])
    result.source = source
    return result


@wraps_type(torch.device)
def _by_value(ctx: CaptureContext, value: object, source: Source) -> Value:
    ctx.guards.add(source, GuardKind.EQUALS, value)
    return DeviceBlock(value) if isinstance(value, torch.device) else Constant(value)


@wraps_type(list, collections.deque)
def _list(ctx: CaptureContext, value: object, source: Source) -> Value:
    assert isinstance(value, list | collections.deque)
    ctx.guards.add(source, GuardKind.TYPE, type(value))
    ctx.guards.add(source, GuardKind.LENGTH, len(value))
    items = [ctx.lazy(item, Item(source, position)) for position, item in enumerate(value)]
    if isinstance(value, collections.deque):
        ctx.guards.add(Attribute(source, "maxlen"), GuardKind.EQUALS, value.maxlen)
        return ListValue(items, source, collections.deque, value.maxlen)
    return ListValue(items, source)


@wraps_type(tuple, torch.Size)
def _tuple(ctx: CaptureContext, value: object, source: Source) -> Value:
    assert isinstance(value, tuple)
    ctx.guards.add(source, GuardKind.TYPE, type(value))
    demand_plain_reading(type(value))
    ctx.guards.add(source, GuardKind.LENGTH, len(value))
    items = [ctx.lazy(item, Item(source, position)) for position, item in enumerate(value)]
    result = TupleValue(items, source, type(value))
    result.find_namespace(ctx, value)
    return result


def _is_namespace(value: dict[Any, Any], source: Source) -> bool:
    """Return whether a dictionary holds the globals of a module."""
    if isinstance(source, Attribute) and isinstance(source.of, Injected):
        module: object = source.of.value  # one that need not be among those imported
    else:
        module = sys.modules.get(value["__name__"]) if type(value.get("__name__")) is str else None
    return isinstance(module, types.ModuleType) and vars(module) is value


@wraps_type(dict, collections.OrderedDict, collections.defaultdict)
def _dict(ctx: CaptureContext, value: object, source: Source) -> Value:
    assert isinstance(value, dict)
    if _is_namespace(value, source):
        ctx.guards.add(source, GuardKind.IDENTITY, value)
        return GlobalsValue(value)
    ctx.guards.add(source, GuardKind.TYPE, type(value))
    dictionary = DictValue(type(value), source, value)
    dictionary.find_namespace(ctx, value)
    if isinstance(value, collections.defaultdict):
        dictionary.factory = ctx.wrap(value.default_factory, Attribute(source, "default_factory"))
    return dictionary


@wraps_type(set, frozenset)
def _set(ctx: CaptureContext, value: object, source: Source) -> Value:
    assert isinstance(value, set | frozenset)
    ctx.guards.add(source, GuardKind.TYPE, type(value))
    result = SetValue(type(value), source)
    if all(type(member) in LITERAL_TYPES or isinstance(member, type | enum.Enum | torch.dtype) for member in value):
        ctx.guards.add(source, GuardKind.MEMBERS, frozenset(value))
        members = [ctx.known(member) for member in value]
    else:
        ctx.guards.add(source, GuardKind.LENGTH, len(value))
        members = [ctx.wrap(member, ListedItem(source, position)) for position, member in enumerate(value)]
    rows = [(stored_token(ctx, member), member) for member in members]
    with settled(token for token, _ in rows):
        result.members = dict(rows)
    result.tokens = type(value)(result.members)
    return result


@wraps_type(types.FunctionType)
def _function(ctx: CaptureContext, value: object, source: Source) -> Value:
    assert isinstance(value, types.FunctionType)
    ctx.guards.add(source, GuardKind.CODE, value.__code__)
    if not isinstance(source, Injected):  # one of equal code may be made with other globals, as mocks are
        ctx.guards.add(Attribute(source, "__globals__"), GuardKind.IDENTITY, value.__globals__)
    return wrap_function(ctx, value, source)


@wraps_type(types.MethodType)
def _method(ctx: CaptureContext, value: object, source: Source) -> Value:
    assert isinstance(value, types.MethodType)
    if isinstance(source, Injected):
        function = ctx.wrap(value.__func__, Injected(value.__func__))
        return BoundMethod(function, ctx.wrap(value.__self__, Injected(value.__self__)), source)
    ctx.guards.add(source, GuardKind.TYPE, types.MethodType)
    function = ctx.wrap(value.__func__, Attribute(source, "__func__"))
    return BoundMethod(function, ctx.wrap(value.__self__, Attribute(source, "__self__")), source)


@wraps_type(types.BuiltinFunctionType)
def _builtin(ctx: CaptureContext, value: object, source: Source) -> Value:
    owner = getattr(value, "__self__", None)
    if owner is None or isinstance(owner, types.ModuleType | type) or isinstance(source, Injected):
        ctx.guards.add(source, GuardKind.IDENTITY, value)
        return Known(value, source)
    name = getattr(value, "__name__", "")
    ctx.guards.add(source, GuardKind.TYPE, types.BuiltinFunctionType)
    ctx.guards.add(Attribute(source, "__name__"), GuardKind.EQUALS, name)
    return MethodOf(ctx.wrap(owner, Attribute(source, "__self__")), name, source)


@wraps_type(types.MethodWrapperType)
def _slot(ctx: CaptureContext, value: object, source: Source) -> Value:
    """Return the slot of a descriptor of C by identity, as `Tensor.shape.__get__`: a new object at each look-up."""
    if isinstance(source, Injected) and isinstance(getattr(value, "__self__", None), types.GetSetDescriptorType):
        return Known(value)
    return _other(ctx, value, source)


@wraps_type(functools.partial)
def _partial(ctx: CaptureContext, value: object, source: Source) -> Value:
    assert isinstance(value, functools.partial)
    ctx.guards.add(source, GuardKind.TYPE, functools.partial)
    args = ctx.wrap(value.args, Attribute(source, "args"))
    assert isinstance(args, TupleValue)
    keywords = ctx.lazy(value.keywords, Attribute(source, "keywords"))
    partial = PartialValue(ctx.wrap(value.func, Attribute(source, "func")), args, keywords, source)
    partial.has_dictionary = holds_dictionary(value)
    return partial


def _is_empty(cell: Any) -> bool:
    try:
        cell.cell_contents  # noqa: B018 - reading it is the question
    except ValueError:
        return True
    return False


@wraps_type(types.CellType)
def _cell(ctx: CaptureContext, value: object, source: Source) -> Value:
    assert isinstance(value, types.CellType)
    try:
        content = value.cell_contents
    except ValueError:
        ctx.guards.add(BaseContents(source, _is_empty), GuardKind.EQUALS, True)
        return CellValue(None, source)
    return CellValue(ctx.lazy(content, Attribute(source, "cell_contents")), source)


class OpenBlock(OpaqueValue):
    """An inference block that was entered before the code that is captured."""

    def get_attr(self, ctx: CaptureContext, name: str) -> Value:
        """Give the two methods: calling one is what breaks."""
        return MethodOf(self, name) if name in ("__enter__", "__exit__") else super().get_attr(ctx, name)


@wraps_type(inference_block)
def _open_block(ctx: CaptureContext, value: object, source: Source) -> Value:
    ctx.guards.add(source, GuardKind.TYPE, inference_block)
    return OpenBlock(value, source)


class WeakReference(OpaqueValue):
    """A weak reference from outside."""

    always_true = True

    def call(self, ctx: CaptureContext, args: Arguments, kwargs: Keywords) -> Value:
        """Return what it leads to now."""
        assert isinstance(self.real, weakref.ref)
        assert self.source is not None
        return ctx.realize(ctx.lazy(self.real(), Referent(self.source)))


@wraps_type(weakref.ref)
def _weak(ctx: CaptureContext, value: object, source: Source) -> Value:
    ctx.guards.add(source, GuardKind.TYPE, weakref.ref)
    return WeakReference(value, source)


@wraps_type(types.MappingProxyType)
def _proxy(ctx: CaptureContext, value: object, source: Source) -> Value:
    assert isinstance(value, types.MappingProxyType)
    ctx.guards.add(source, GuardKind.TYPE, types.MappingProxyType)
    kind = class_shown_by(value)
    if kind is not None:
        shown = (Injected(shown_by), Injected(shown_by(value)))  # the class is not searched for at each entry
        ctx.guards.add(source, GuardKind.EXPRESSION, "{1}({0}) is {2}", shown)
        return class_namespace(ctx, kind, source)
    owner = ctx.realize(ctx.wrap(shown_by(value), BaseContents(source, shown_by)))
    return ProxyValue(owner, value, source) if isinstance(owner, DictValue) else OpaqueValue(value, source)


def shown_by(proxy: object) -> object:
    """Return the mapping that a mappingproxy shows."""
    return gc.get_referents(proxy)[0]


def class_shown_by(proxy: object) -> type | None:
    """Return the class whose namespace a mappingproxy shows; None where it shows another mapping."""
    namespace = shown_by(proxy)
    if type(namespace) is not dict or "__module__" not in namespace:
        return None
    return next((one for one in gc.get_referrers(namespace) if isinstance(one, type)), None)


_BY_BASE: tuple[tuple[type | tuple[type, ...], WrapRule], ...] = (  # for types without a rule of their own, in turn
    (type, _class),  # before the types known by identity: a class may derive from one
    (_KNOWN_BY_IDENTITY, _by_identity),
    (types.BuiltinFunctionType, _builtin),
    (tuple, _tuple),  # named tuples, results of torch
    (torch.nn.Module, _module),
    (BaseException, _exception),
)
