"""copy.copy and copy.deepcopy of values: containers and plain objects; tensors and odd classes break."""

import collections
import copy
import types

from ..constant import Constant, Known
from ..python.containers.mappings import DictValue, Entry
from ..python.containers.sequences import ListValue, TupleValue
from ..python.containers.sets import SetValue
from ..python.objects.attributes import class_lookup, is_native
from ..python.objects.classes import ClassValue, new_object
from ..python.objects.exceptions import ExceptionValue
from ..python.objects.functions import FunctionValue
from ..python.objects.instances import ObjectValue
from ..reasons import UNKNOWN_CALLEE, Break
from ..rule_tables import calls
from ..torch.modules import ModuleValue
from ..value import Arguments, CaptureContext, Keywords, Value

_HOOKS = ("__reduce__", "__reduce_ex__", "__getstate__", "__setstate__", "__getnewargs__", "__getnewargs_ex__")
_FILLING = ("append", "extend", "__setitem__", "__new__", "__setattr__")  # what copying a subclass instance calls


def _require_plain(value: ObjectValue) -> None:
    """Raise Break unless copying makes a new instance with the same state, and calls nothing of the class's own."""
    own = any(class_lookup(value.kind, name)[0] not in (object, None, types.SimpleNamespace) for name in _HOOKS)
    held = value.contents is None or type(value.contents) in (ListValue, DictValue)
    python = any(isinstance(class_lookup(value.kind, name)[1], types.FunctionType | staticmethod) for name in _FILLING)
    filled = python and (value.contents is not None or bool(value.slots))
    if own or filled or not held or isinstance(value, ModuleValue | ExceptionValue):
        raise Break(UNKNOWN_CALLEE, f"copy of {value.describe()}")


def _slots(ctx: CaptureContext, value: ObjectValue) -> dict[str, Value]:
    """Return the filled slots."""
    found: dict[str, Value] = {}
    for kind in value.kind.__mro__:
        for name, raw in vars(kind).items():
            if isinstance(raw, types.MemberDescriptorType) and not is_native(kind):
                content = value.generic_attr(ctx, name)
                if content is not None:
                    found[name] = content
    return found


@calls(copy.copy)
def _copy(ctx: CaptureContext, args: Arguments, kwargs: Keywords) -> Value:
    value = ctx.real(args[0])
    if isinstance(value, Constant | Known | TupleValue | ClassValue | FunctionValue):
        return value
    if isinstance(value, ListValue | DictValue | SetValue):
        return value.call_method(ctx, "copy", [], {})
    if isinstance(value, ObjectValue):
        hook = value.method(ctx, "__copy__")
        if hook is not None:
            return ctx.call(hook, [], {})
        slots = _slots(ctx, value)
        _require_plain(value)
        made = new_object(value.kind)
        made.slots = dict(slots)
        if value.contents is not None and made.contents is not None:
            made.contents.call_method(ctx, "__init__", [value.contents], {})
        made.namespace.entries = {
            token: Entry(entry.key, entry.value) for token, entry in value.namespace.read_all(ctx).items()
        }
        return made
    raise Break(UNKNOWN_CALLEE, f"copy of {value.describe()}")


@calls(copy.deepcopy)
def _deepcopy(ctx: CaptureContext, args: Arguments, kwargs: Keywords) -> Value:
    if len(args) > 1 or kwargs:
        raise Break(UNKNOWN_CALLEE, "deepcopy with a memo")
    return _deep(ctx, args[0], {0: DictValue()})


def _deep(ctx: CaptureContext, value: Value, memo: dict[int, Value]) -> Value:
    value = ctx.real(value)
    if id(value) in memo:
        return memo[id(value)]
    if isinstance(value, Constant | ClassValue | FunctionValue):
        return value
    if isinstance(value, Known):
        if isinstance(value.value, types.ModuleType):
            raise Break(UNKNOWN_CALLEE, "deepcopy of a module")
        return value
    if isinstance(value, TupleValue):
        return TupleValue([_deep(ctx, item, memo) for item in value.elements(ctx)], kind=value.kind)
    if isinstance(value, ListValue) and value.kind in (list, collections.deque):
        made = ListValue([], kind=value.kind, maximum=value.maximum)
        memo[id(value)] = made
        made.items += [_deep(ctx, item, memo) for item in value.elements(ctx)]
        return made
    if isinstance(value, DictValue):
        copied = DictValue(value.kind, factory=value.factory)
        memo[id(value)] = copied
        for token, entry in value.read_all(ctx).items():
            copied.entries[token] = Entry(_deep(ctx, entry.key, memo), _deep(ctx, entry.value, memo))
        return copied
    if isinstance(value, SetValue):
        return SetValue.of(ctx, [_deep(ctx, item, memo) for item in value.members.values()], value.kind)
    if isinstance(value, ObjectValue):
        hook = value.method(ctx, "__deepcopy__")
        if hook is not None:
            memo[id(value)] = ctx.real(ctx.call(hook, [memo[0]], {}))
            return memo[id(value)]
        slots = _slots(ctx, value)
        _require_plain(value)
        instance = new_object(value.kind)
        memo[id(value)] = instance
        instance.slots = {name: _deep(ctx, item, memo) for name, item in slots.items()}
        if value.contents is not None and instance.contents is not None:
            inside = _deep(ctx, value.contents, memo)
            instance.contents.call_method(ctx, "__init__", [inside], {})
        for token, entry in value.namespace.read_all(ctx).items():
            instance.namespace.entries[token] = Entry(entry.key, _deep(ctx, entry.value, memo))
        return instance
    raise Break(UNKNOWN_CALLEE, f"deepcopy of {value.describe()}")
