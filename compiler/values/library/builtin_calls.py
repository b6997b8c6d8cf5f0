"""Python's builtins as a table of small rules: constructors, type questions, attributes, reductions, iterators."""

import collections
import itertools
import operator
import sys
import types
import typing
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NoReturn, Union

import torch

from ..constant import Constant, MethodOf, fold
from ..guard import ABSENT, look_up
from ..identities import key_among
from ..python.containers.iterators import CalledUntil, IteratorValue, enumerated, filtered, mapped, zipped
from ..python.containers.lists import ListValue, sort_values
from ..python.containers.mappings import DictValue, ProxyValue, pairs_of
from ..python.containers.sequences import SliceValue
from ..python.containers.sets import SetValue, copy_of_set
from ..python.containers.tuples import TupleValue
from ..python.objects.attributes import (
    HEAP_TYPE,
    MISSING,
    class_lookup,
    demand_plain_reading,
    guard_bases,
    leads_to_template,
)
from ..python.objects.captured_classes import class_by_call
from ..python.objects.classes import ClassValue, SuperValue, construct, constructs
from ..python.objects.exception_groups import make_group
from ..python.objects.exceptions import attribute_of, make_exception
from ..python.objects.functions import BoundMethod
from ..python.objects.instances import ObjectValue
from ..python.operators import binary, compare
from ..reasons import CLASS_DEFINITION, CONSTRUCTION, IDENTITY_NUMBER, SIDE_EFFECT_CALL, UNSUPPORTED_OPERATION, Break
from ..refused_arguments import refuse_arguments
from ..rule_tables import CallRule, calls
from ..scalar import SizeValue
from ..source import Injected
from ..torch.tensor import TensorValue
from ..value import Arguments, CaptureContext, Keywords, Raised, Value, elements_of
from .conversion_calls import known_argument

NONE = Constant(None)


# --- questions about types and attributes


@constructs(type)
def _type(ctx: CaptureContext, kind: type, args: Arguments, kwargs: Keywords) -> Value:
    if len(args) == 3 and not kwargs:
        return class_by_call(ctx, args)
    if len(args) != 1 or kwargs:
        raise Break(CLASS_DEFINITION, "making a class")
    return ctx.known(ctx.realize(args[0]).python_type())


def _classes(ctx: CaptureContext, subject: Value, value: Value, check: Callable[[Any, Any], bool]) -> Iterator[type]:
    """Give the classes that an object is compared with, in turn; what comes behind the one that fits is not looked at.

    check: isinstance or issubclass of the subject, which refuses in words of its own what is no class.
    """
    value = ctx.realize(value)
    if isinstance(value, TupleValue):
        for item in value.elements(ctx):
            yield from _classes(ctx, subject, item, check)
        return
    real: Any = value.constant() if value.is_constant() else None
    if not isinstance(real, type) and not getattr(real, "__args__", ()):
        real = getattr(real, "__origin__", real)  # typing.Sequence stands for collections.abc.Sequence
    of_typing = not isinstance(real, type) and getattr(real, "__origin__", None) is Union
    parts = real.__args__ if of_typing or isinstance(real, types.UnionType) else (real,)
    for part in parts:
        if isinstance(part, type) and part is not typing.Any and not isinstance(part, types.GenericAlias):
            yield part
        else:
            _refuse_class(ctx, subject, value, part, check)


def _refuse_class(
    ctx: CaptureContext, subject: Value, value: Value, real: object, check: Callable[[Any, Any], bool]
) -> NoReturn:
    """Raise what Python raises for what is no class; Break where it answers all the same."""
    _demand_no_class(value, check.__name__)
    _demand_no_class(subject, check.__name__)
    asked = subject.constant() if subject.is_constant() else None
    fold(ctx, check, asked, real if value.is_constant() else value.stand_in())
    value.unsupported(check.__name__, UNSUPPORTED_OPERATION)


def _demand_no_class(value: Value, what: str) -> None:
    """Raise Break for an object that may act as a class."""
    owners = (class_lookup(value.python_type(), name)[0] for name in _OF_CLASSES)
    if not value.is_constant() and any(owner not in (None, object) for owner in owners):
        value.unsupported(what, UNSUPPORTED_OPERATION)


_OF_CLASSES = ("__instancecheck__", "__subclasscheck__", "__bases__", "__getattr__", "__getattribute__")


_ASKED_AT_ONCE = frozenset({"collections", "typing", "typing_extensions", "abc", "numbers", "enum"})


@calls(isinstance)
def _isinstance(ctx: CaptureContext, args: Arguments, kwargs: Keywords) -> Value:
    value = ctx.realize(args[0])
    return Constant(any(_is_instance(ctx, value, candidate) for candidate in _classes(ctx, value, args[1], isinstance)))


def _is_instance(ctx: CaptureContext, value: Value, candidate: type) -> bool:
    kind = value.python_type()
    if kind is candidate:
        return True  # Python does not ask a metaclass where the type is the very one
    verdict = _metaclass_answer(ctx, candidate, "__instancecheck__", value)
    if verdict is not None:
        return verdict
    _demand_own_class(value)
    if isinstance(value, TensorValue) and not _tensor_is(value, candidate):
        guard_bases(ctx, value.kind, (candidate,))
        return False
    if value.is_constant() and not isinstance(value, SizeValue):
        return isinstance(value.constant(), candidate)
    guard_bases(ctx, kind, (candidate,))
    if look_up(candidate, "_is_runtime_protocol")[1] is True and not _derives(kind, candidate):
        return _has_all_of(ctx, value, candidate)
    if isinstance(value, TensorValue):
        return True
    told = _told_class(ctx, value)
    return any(
        _is_of(one, candidate) if _asks_type(candidate) else fold(ctx, issubclass, one, candidate).truth(ctx)
        for one in (kind, *told)
    )


def _demand_own_class(value: Value) -> None:
    """Raise Break for what is no plain instance and may say that it is of another class than its own."""
    kind = value.python_type()
    if kind.__flags__ & HEAP_TYPE and not isinstance(value, ObjectValue | TensorValue):
        told, reader = (look_up(kind, name)[1] for name in ("__class__", "__getattribute__"))
        if told is not vars(object)["__class__"] or isinstance(reader, types.FunctionType):
            value.unsupported("isinstance, which asks it for its class", UNSUPPORTED_OPERATION)


def _told_class(ctx: CaptureContext, value: Value) -> tuple[type, ...]:
    """Return the class that an object says it is of, where that is code of its own: isinstance believes it as well."""
    kind = value.python_type()
    if not isinstance(value, ObjectValue) or not any(
        class_lookup(kind, name)[0] is not object for name in ("__class__", "__getattribute__")
    ):
        return ()
    told = _attribute(ctx, value, "__class__")
    if told is None or not told.is_constant():
        return ()
    real = told.constant()
    return (real,) if isinstance(real, type) and real is not kind else ()


def _asks_type(candidate: type) -> bool:
    """Return whether isinstance goes by the classes alone: `type` asks no `__subclasscheck__` for that."""
    return class_lookup(type(candidate), "__instancecheck__")[0] is type


def _is_of(kind: type, candidate: type) -> bool:
    return type.__subclasscheck__(candidate, kind)


def _derives(kind: type, protocol: type) -> bool:
    """Return whether a class has what a protocol asks for; one with data among it answers for instances only."""
    try:
        return issubclass(kind, protocol)
    except TypeError:
        return False


def _attribute(ctx: CaptureContext, value: Value, name: str) -> Value | None:
    """Evaluate `value.name`; None if that raises AttributeError."""
    try:
        return ctx.realize(value.get_attr(ctx, name))
    except Raised as raised:
        if issubclass(raised.value.python_type(), AttributeError):
            return None
        raise


def _has_statically(ctx: CaptureContext, value: Value, name: str, protocol: type) -> bool:
    """Return whether Python 3.12 counts an attribute as there: found without asking a property or `__getattr__`."""
    kind = value.python_type()
    raw = class_lookup(kind, name)[1]
    if raw is MISSING:
        if not isinstance(value, ObjectValue) or "__getattr__" in dir(kind):
            raise Break(UNSUPPORTED_OPERATION, f"isinstance of {value.describe()} and protocol {protocol.__qualname__}")
        attribute = _attribute(ctx, value, name)
        if attribute is None:
            return False
        is_none = attribute.python_type() is type(None)
    else:
        is_none = raw is None
    if not is_none:
        return True
    data = vars(protocol).get("__non_callable_proto_members__")  # since 3.13
    return name in data if data is not None else not callable(getattr(protocol, name, None))


def _has_all_of(ctx: CaptureContext, value: Value, protocol: type) -> bool:
    """Return whether an object has the attributes of a protocol, which it may have itself."""
    if sys.version_info >= (3, 12):
        return all(_has_statically(ctx, value, name, protocol) for name in vars(protocol)["__protocol_attrs__"])
    for name in sorted(vars(typing)["_get_protocol_attrs"](protocol)):
        attribute = _attribute(ctx, value, name)
        if attribute is None:
            return False
        if attribute.python_type() is type(None) and callable(getattr(protocol, name, None)):
            return False
    return True


def _metaclass_answer(ctx: CaptureContext, candidate: type, method: str, subject: Value) -> bool | None:
    """Return what a metaclass written in Python says; None if it has no such method, or asking Python is as good."""
    check = class_lookup(type(candidate), method)[1]
    if not isinstance(check, types.FunctionType) or type(candidate).__module__.partition(".")[0] in _ASKED_AT_ONCE:
        return None
    return ctx.realize(ctx.call(ctx.wrap(check, Injected(check)), [ctx.known(candidate), subject], {})).truth(ctx)


def _tensor_is(value: TensorValue, kind: type) -> bool:
    if issubclass(kind, torch.Tensor):
        return issubclass(value.kind, kind)
    if kind.__module__.startswith("torch") and kind.__name__.endswith("Tensor"):
        return isinstance(value.fake, kind)
    return _is_of(value.kind, kind) if _asks_type(kind) else issubclass(value.kind, kind)


@calls(issubclass)
def _issubclass(ctx: CaptureContext, args: Arguments, kwargs: Keywords) -> Value:
    kind, classes = ctx.realize(args[0]), ctx.realize(args[1])
    if all(value.is_constant() and type(value.constant()).__module__ == "typing" for value in (kind, classes)):
        return fold(ctx, issubclass, kind.constant(), classes.constant())  # `typing.List` answers for `typing.Iterable`
    return Constant(any(_is_subclass(ctx, kind, candidate) for candidate in _classes(ctx, kind, args[1], issubclass)))


def _is_subclass(ctx: CaptureContext, kind: Value, candidate: type) -> bool:
    verdict = _metaclass_answer(ctx, candidate, "__subclasscheck__", kind)
    if verdict is not None:
        return verdict
    if not isinstance(kind, ClassValue) and kind.is_constant():
        return fold(ctx, issubclass, kind.constant(), candidate).truth(ctx)
    if not isinstance(kind, ClassValue):
        _demand_no_class(kind, "issubclass")
        ctx.throw(TypeError, "issubclass() arg 1 must be a class")
    guard_bases(ctx, kind.kind, (candidate,))
    return fold(ctx, issubclass, kind.kind, candidate).truth(ctx)


@calls(callable)
def _callable(ctx: CaptureContext, args: Arguments, kwargs: Keywords) -> Value:
    value = ctx.realize(args[0])
    if value.is_constant():
        return Constant(callable(value.constant()))
    return Constant(class_lookup(value.python_type(), "__call__")[0] is not None)


def _attribute_name(ctx: CaptureContext, value: Value) -> str:
    name = known_argument(ctx, value, "attribute name")
    if not isinstance(name, str):
        ctx.throw(TypeError, f"attribute name must be string, not '{type(name).__name__}'")
    return str.__str__(name)


@calls(getattr)
def _getattr(ctx: CaptureContext, args: Arguments, kwargs: Keywords) -> Value:
    name = _attribute_name(ctx, args[1])
    if len(args) == 2:
        return ctx.realize(attribute_of(ctx, ctx.realize(args[0]), name))
    try:
        return ctx.realize(ctx.realize(args[0]).get_attr(ctx, name))
    except Raised as raised:
        if issubclass(raised.value.python_type(), AttributeError):
            return ctx.realize(args[2])
        raise


@calls(hasattr)
def _hasattr(ctx: CaptureContext, args: Arguments, kwargs: Keywords) -> Value:
    try:
        ctx.realize(args[0]).get_attr(ctx, _attribute_name(ctx, args[1]))
    except Raised as raised:
        if issubclass(raised.value.python_type(), AttributeError):
            return Constant(False)
        raise
    return Constant(True)


@calls(setattr)
def _setattr(ctx: CaptureContext, args: Arguments, kwargs: Keywords) -> Value:
    ctx.realize(args[0]).set_attr(ctx, _attribute_name(ctx, args[1]), args[2])
    return NONE


@calls(delattr)
def _delattr(ctx: CaptureContext, args: Arguments, kwargs: Keywords) -> Value:
    ctx.realize(args[0]).del_attr(ctx, _attribute_name(ctx, args[1]))
    return NONE


@constructs(super)
def _super(ctx: CaptureContext, kind: type, args: Arguments, kwargs: Keywords) -> Value:
    if kwargs or len(args) > 2:
        refuse_arguments(ctx, super, args, kwargs)
    if len(args) == 1:
        raise Break(CONSTRUCTION, "super() that is not bound")
    first, second = (args[0], args[1]) if args else ctx.frames.calling_class_cell()
    start = ctx.realize(first)
    if not isinstance(start, ClassValue):
        raise Break(CONSTRUCTION, "super() of something that is not a class")
    instance = ctx.realize(second)
    is_subtype = isinstance(instance, ClassValue) and issubclass(instance.kind, start.kind)
    if not is_subtype and not issubclass(instance.python_type(), start.kind):
        instance.refuse(ctx, "super()", lambda value: super(start.kind, value))
    return SuperValue(start.kind, instance)


@constructs(types.MethodType)
def _method(ctx: CaptureContext, kind: type, args: Arguments, kwargs: Keywords) -> Value:
    if len(args) != 2 or kwargs:
        raise Break(CONSTRUCTION, "making a method of odd arguments")
    return BoundMethod(ctx.realize(args[0]), ctx.realize(args[1]))


@constructs(object)
def _object(ctx: CaptureContext, kind: type, args: Arguments, kwargs: Keywords) -> Value:
    return ObjectValue(object)


@calls(hash)
def _hash(ctx: CaptureContext, args: Arguments, kwargs: Keywords) -> Value:
    value = ctx.realize(args[0])
    if isinstance(value, ObjectValue):
        method = value.method(ctx, "__hash__")
        if method is not None:
            return value.answered(ctx, "__hash__", ctx.realize(ctx.call(method, [], {})), hash)
        refused = class_lookup(value.kind, "__hash__")[1] is None
        if refused or value.contents is None or value.contents.python_type().__hash__ is None:
            value.refuse(ctx, "hash", hash)
        value = value.contents
    if not value.is_constant():
        value.refuse(ctx, "hash", hash)
    known = known_argument(ctx, value, "hash")
    if _holds_template(known):
        raise Break(IDENTITY_NUMBER, "hash() of a class made while capturing, which each call makes anew")
    return fold(ctx, hash, known)


def _holds_template(known: object) -> bool:
    return any(map(_holds_template, known)) if isinstance(known, tuple | frozenset) else leads_to_template(known)


# --- reductions


def _extreme(name: str, symbol: str) -> Callable[[CaptureContext, Arguments, Keywords], Value]:
    def rule(ctx: CaptureContext, args: Arguments, kwargs: Keywords) -> Value:
        if len(args) != 1 and (not args or "default" in kwargs):
            operands = [ctx.realize(arg).stand_in() for arg in args]
            fold(ctx, {"max": max, "min": min}[name], *operands, **dict.fromkeys(kwargs))
        items = iter(_in_any_order(ctx, args[0], kwargs) if len(args) == 1 else [ctx.realize(arg) for arg in args])
        best = next(items, None)
        if best is None:
            if "default" in kwargs:
                return ctx.realize(kwargs["default"])
            fold(ctx, {"max": max, "min": min}[name], ())
        assert best is not None
        key = ctx.realize(kwargs.get("key", NONE))
        by_key = not (isinstance(key, Constant) and key.value is None)
        best_key = ctx.realize(ctx.call(key, [best], {})) if by_key else best
        for item in items:
            item_key = ctx.realize(ctx.call(key, [item], {})) if by_key else item
            answer = ctx.realize(compare(ctx, symbol, item_key, best_key))
            known = ctx.graph.ask(answer, anywhere=True)
            if known if known is not None else answer.truth(ctx):
                best, best_key = item, item_key
        return best

    return rule


calls(max)(_extreme("max", ">"))
calls(min)(_extreme("min", "<"))


@calls(sum)
def _sum(ctx: CaptureContext, args: Arguments, kwargs: Keywords) -> Value:
    total = ctx.realize(args[1] if len(args) > 1 else kwargs.get("start", Constant(0)))
    if issubclass(total.python_type(), str | bytes | bytearray):
        fold(ctx, sum, (), total.stand_in())
    numbers: list[object] = []  # which Python adds more exactly than one by one
    for item in ctx.realize(args[0]).each(ctx):
        if _is_number(total) and _is_number(item):
            numbers.append(item.constant())
            continue
        total = ctx.realize(binary(ctx, "+", fold(ctx, sum, numbers, total.constant()) if numbers else total, item))
        numbers = []
    return fold(ctx, sum, numbers, total.constant()) if numbers else total


def _is_number(value: Value) -> bool:
    return isinstance(value, Constant) and type(value.value) in (int, float, complex, bool)


@calls(any)
def _any(ctx: CaptureContext, args: Arguments, kwargs: Keywords) -> Value:
    steps = elements_of(ctx, ctx.realize(ctx.realize(args[0]).iterate(ctx)))
    return Constant(any(ctx.realize(item).truth(ctx) for item in steps))


@calls(all)
def _all(ctx: CaptureContext, args: Arguments, kwargs: Keywords) -> Value:
    steps = elements_of(ctx, ctx.realize(ctx.realize(args[0]).iterate(ctx)))
    return Constant(all(ctx.realize(item).truth(ctx) for item in steps))


@calls(vars(collections)["_count_elements"])
def _count_elements(ctx: CaptureContext, args: Arguments, kwargs: Keywords) -> Value:
    mapping = ctx.realize(args[0])
    kind, contents = mapping.python_type(), mapping.contents or mapping
    plain = all(class_lookup(kind, name)[1] is getattr(dict, name) for name in ("get", "__setitem__"))
    if plain and isinstance(contents, DictValue):
        for element in ctx.realize(args[1]).each(ctx):
            key, token = key_among(ctx, contents, element)  # its hash is asked for once, and it is looked up twice
            before = contents.found(ctx, key, token) or Constant(0)
            after = ctx.realize(binary(ctx, "+", before, Constant(1)))
            with contents.looked_up(ctx, token) as token:
                contents.set_by_token(ctx, key, token, after)
        return NONE
    for element in ctx.realize(args[1]).each(ctx):
        before = ctx.call(mapping.get_attr(ctx, "get"), [element, Constant(0)], {})
        mapping.set_item(ctx, element, ctx.realize(binary(ctx, "+", before, Constant(1))))
    return NONE


@calls(len)
def _len(ctx: CaptureContext, args: Arguments, kwargs: Keywords) -> Value:
    return ctx.realize(args[0]).length(ctx)


@calls(sorted)
def _sorted(ctx: CaptureContext, args: Arguments, kwargs: Keywords) -> Value:
    given = ctx.realize(args[0])
    items = given.gathered(ctx) if isinstance(given, ObjectValue) else _in_any_order(ctx, given, kwargs)
    return ListValue(sort_values(ctx, list(items), kwargs))


def _in_any_order(ctx: CaptureContext, value: Value, kwargs: Keywords) -> Iterable[Value]:
    """Give the elements for a rule that gives the same in whatever order they come: known ones have a total order."""
    value = ctx.realize(value)
    if isinstance(value, SetValue) and "key" not in kwargs:
        members = list(value.members.values())
        if all(isinstance(member, Constant) and type(member.value) in (int, str, bool) for member in members):
            return members
    return value.each(ctx)


# --- containers


@constructs(list)
def _list(ctx: CaptureContext, kind: type, args: Arguments, kwargs: Keywords) -> Value:
    return ListValue(ctx.realize(args[0]).gathered(ctx)[:] if args else [])


@constructs(tuple)
def _tuple(ctx: CaptureContext, kind: type, args: Arguments, kwargs: Keywords) -> Value:
    if kind is tuple:
        value = ctx.realize(args[0]) if args else None
        if isinstance(value, TupleValue) and value.kind is tuple:
            return value
        return TupleValue(value.gathered(ctx)[:] if value is not None else [])
    fields: Any = look_up(kind, "_fields")[1]
    maker = class_lookup(kind, "__new__")[1]
    made_by = getattr(getattr(maker, "__func__", maker), "__module__", None) or ""
    if fields is ABSENT or not made_by.startswith("namedtuple_"):
        if kind.__module__ == "torch.return_types":
            return TupleValue(ctx.unpack(args[0]), kind=kind)
        return construct(ctx, kind, args, kwargs)
    return _named_tuple(ctx, kind, tuple(fields), args, kwargs)


def _named_tuple(ctx: CaptureContext, kind: type, fields: tuple[str, ...], args: Arguments, kwargs: Keywords) -> Value:
    demand_plain_reading(kind)
    defaults: Any = look_up(kind, "_field_defaults")[1]
    defaults = {} if defaults is ABSENT else defaults
    bound = dict(zip(fields, args, strict=False))
    twice = any(name in bound for name in kwargs)
    bound |= kwargs
    lacking = [name for name in fields if name not in bound and name not in defaults]
    if len(args) > len(fields) or twice or lacking or not set(kwargs) <= set(fields):
        fold(ctx, kind, *[None] * len(args), **dict.fromkeys(kwargs))  # raises, with Python's own words
    for name in fields:
        if name not in bound:
            bound[name] = ctx.wrap(defaults[name], Injected(defaults[name]))
    return TupleValue([bound[name] for name in fields], kind=kind)


@constructs(dict, collections.OrderedDict)
def _dict(ctx: CaptureContext, kind: type, args: Arguments, kwargs: Keywords) -> Value:
    given = ctx.realize(args[0]) if args else None
    if isinstance(given, DictValue):
        copy = given.copied(ctx, kind)
        copy.factory = None
        copy.call_method(ctx, "update", [], kwargs)
        return copy
    pairs = pairs_of(ctx, given, kind) if given is not None else iter(())
    named = [(Constant(name), value) for name, value in kwargs.items()]
    dictionary = DictValue.of(ctx, [], kind)
    for key, value in itertools.chain(pairs, named):
        dictionary.set_item(ctx, key, value)
    return dictionary


@constructs(collections.defaultdict)
def _defaultdict(ctx: CaptureContext, kind: type, args: Arguments, kwargs: Keywords) -> Value:
    dictionary = _dict(ctx, kind, args[1:], kwargs)
    assert isinstance(dictionary, DictValue)
    dictionary.factory = ctx.realize(args[0]) if args else NONE
    return dictionary


@constructs(collections.deque)
def _deque(ctx: CaptureContext, kind: type, args: Arguments, kwargs: Keywords) -> Value:
    limit = ctx.realize(args[1] if len(args) > 1 else kwargs.get("maxlen", NONE)).constant()
    if not (limit is None or (isinstance(limit, int) and limit >= 0)):
        fold(ctx, collections.deque, (), limit)
    assert limit is None or isinstance(limit, int)
    deque = ListValue(list(ctx.unpack(args[0])) if args else [], kind=collections.deque, maximum=limit)
    deque.trim(left=False)
    return deque


@constructs(set, frozenset)
def _set(ctx: CaptureContext, kind: type, args: Arguments, kwargs: Keywords) -> Value:
    if not args:
        return SetValue(kind)
    value = ctx.realize(args[0])
    if isinstance(value, SetValue):
        return copy_of_set(value, kind)
    if isinstance(value, DictValue) and value.kind is dict:
        return SetValue.of_keys(value.read_all(ctx), kind)
    return SetValue.of(ctx, value.each(ctx), kind)


@constructs(range)
def _range(ctx: CaptureContext, kind: type, args: Arguments, kwargs: Keywords) -> Value:
    return fold(ctx, range, *[known_argument(ctx, arg, "range") for arg in args])


@constructs(slice)
def _slice(ctx: CaptureContext, kind: type, args: Arguments, kwargs: Keywords) -> Value:
    return make_slice(ctx, [NONE, *args, NONE] if len(args) == 1 else [*args, NONE][:3])


def make_slice(ctx: CaptureContext, parts: list[Value]) -> Value:
    """Return a slice of three bounds."""
    parts = [ctx.realize(part) for part in parts]
    if any(isinstance(part, SizeValue) for part in parts):
        return SliceValue(parts)
    if all(isinstance(part, Constant) for part in parts):
        return Constant(slice(*(part.constant() for part in parts)))
    return SliceValue(parts)


@constructs(types.MappingProxyType)
def _read_only(ctx: CaptureContext, kind: type, args: Arguments, kwargs: Keywords) -> Value:
    owner = ctx.realize(args[0])
    if not isinstance(owner, DictValue):
        raise Break(CONSTRUCTION, f"mappingproxy of {owner.describe()}")
    return ProxyValue(owner)


# --- iterators


@calls(iter)
def _iter(ctx: CaptureContext, args: Arguments, kwargs: Keywords) -> Value:
    if len(args) == 2:
        return IteratorValue(type(iter(int, 1)), CalledUntil(ctx, args[0], args[1]), ctx)
    return ctx.realize(args[0]).iterate(ctx)


@calls(next)
def _next(ctx: CaptureContext, args: Arguments, kwargs: Keywords) -> Value:
    if len(args) == 1:
        return ctx.realize(ctx.realize(args[0]).next(ctx))
    try:
        return ctx.realize(ctx.realize(args[0]).next(ctx))
    except Raised as raised:
        if issubclass(raised.value.python_type(), StopIteration):
            return ctx.realize(args[1])
        raise


def _iterators(ctx: CaptureContext, args: Arguments) -> list[Value]:
    return [ctx.realize(ctx.realize(arg).iterate(ctx)) for arg in args]


@constructs(zip)
def _zip(ctx: CaptureContext, kind: type, args: Arguments, kwargs: Keywords) -> Value:
    strict = ctx.realize(kwargs.get("strict", Constant(False))).truth(ctx)
    iterators = _iterators(ctx, args)
    return IteratorValue(
        zip,
        zipped(ctx, iterators, strict),
        ctx,
        parts=tuple(iterators),
        options="strict=True" if strict else "",
    )


@constructs(enumerate)
def _enumerate(ctx: CaptureContext, kind: type, args: Arguments, kwargs: Keywords) -> Value:
    given = known_argument(ctx, args[1] if len(args) > 1 else kwargs.get("start", Constant(0)), "start")
    start = fold(ctx, operator.index, given).constant()  # raises, with Python's own words
    assert isinstance(start, int)
    iterators = _iterators(ctx, args[:1])
    steps = enumerated(ctx, iterators[0], start)
    return IteratorValue(enumerate, steps, ctx, parts=tuple(iterators), count=start)


@constructs(map)
def _map(ctx: CaptureContext, kind: type, args: Arguments, kwargs: Keywords) -> Value:
    function, iterators = ctx.realize(args[0]), _iterators(ctx, args[1:])
    return IteratorValue(map, mapped(ctx, function, iterators), ctx, parts=tuple(iterators), function=function)


@constructs(filter)
def _filter(ctx: CaptureContext, kind: type, args: Arguments, kwargs: Keywords) -> Value:
    function, iterator = ctx.realize(args[0]), _iterators(ctx, args[1:])[0]
    return IteratorValue(filter, filtered(ctx, function, iterator), ctx, parts=(iterator,), function=function)


@constructs(reversed)
def _reversed(ctx: CaptureContext, kind: type, args: Arguments, kwargs: Keywords) -> Value:
    return ctx.realize(args[0]).reversed(ctx)


@calls(tuple.__new__)
def _new_tuple(ctx: CaptureContext, args: Arguments, kwargs: Keywords) -> Value:
    kind = ctx.realize(args[0])
    if not isinstance(kind, ClassValue):
        raise Break(CONSTRUCTION, "tuple.__new__ of something that is not a class")
    return TupleValue(ctx.realize(args[1]).gathered(ctx)[:] if len(args) > 1 else [], kind=kind.kind)


def dictionary_from_keys_rule(function: object) -> CallRule | None:
    """Give `dict.fromkeys`, which is a new object at every look-up."""
    if not isinstance(function, types.BuiltinFunctionType) or function.__name__ != "fromkeys":
        return None
    if function.__self__ not in (dict, collections.OrderedDict):
        return None
    kind = function.__self__

    def rule(ctx: CaptureContext, args: Arguments, kwargs: Keywords) -> Value:
        return MethodOf(DictValue(kind), "fromkeys").call(ctx, args, kwargs)

    return rule


# --- exceptions


@constructs(BaseException)
def _exception(ctx: CaptureContext, kind: type, args: Arguments, kwargs: Keywords) -> Value:
    if issubclass(kind, BaseExceptionGroup) and not isinstance(class_lookup(kind, "__new__")[1], staticmethod):
        group = make_group(ctx, kind, args)
        init = class_lookup(kind, "__init__")[1]
        if isinstance(init, types.FunctionType):
            ctx.call(ctx.wrap(init, Injected(init)), [group, *args], kwargs)
        return group
    return make_exception(ctx, kind, args, kwargs)


# --- effects that must happen now


@calls(print, input, open, breakpoint)
def _effect(ctx: CaptureContext, args: Arguments, kwargs: Keywords) -> Value:
    raise Break(SIDE_EFFECT_CALL, "print(), or other input and output")
