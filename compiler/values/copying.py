"""copy.copy and copy.deepcopy of values: containers and plain objects; tensors and odd classes break."""

import copy
import types

from .attributes import class_lookup
from .classes import ClassValue
from .constant import Constant, Known, calls
from .exceptions import ExceptionValue
from .functions import FunctionValue
from .mappings import DictValue, Entry
from .modules import ModuleValue
from .objects import ObjectValue
from .reasons import UNKNOWN_CALLEE, Break
from .sequences import ListValue, TupleValue
from .sets import SetValue
from .value import Arguments, CaptureContext, Keywords, Value

_HOOKS = ("__copy__", "__deepcopy__", "__reduce__", "__reduce_ex__", "__getstate__", "__setstate__", "__getnewargs__")


def _require_plain(value: ObjectValue) -> None:
    own = any(class_lookup(value.kind, name)[0] not in (object, None) for name in _HOOKS)
    if own or value.slots or value.contents is not None or isinstance(value, ModuleValue | ExceptionValue):
        raise Break(UNKNOWN_CALLEE, f"copy of {value.describe()}")


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
        _require_plain(value)
        made = ObjectValue(value.kind)
        made.namespace.entries = {
            token: Entry(entry.key, entry.value) for token, entry in value.namespace.read_all(ctx).items()
        }
        return made
    raise Break(UNKNOWN_CALLEE, f"copy of {value.describe()}")


@calls(copy.deepcopy)
def _deepcopy(ctx: CaptureContext, args: Arguments, kwargs: Keywords) -> Value:
    if len(args) > 1 or kwargs:
        raise Break(UNKNOWN_CALLEE, "deepcopy with a memo")
    return _deep(ctx, args[0], {})


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
    if isinstance(value, ListValue) and value.kind is list:
        made = ListValue([])
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
        _require_plain(value)
        instance = ObjectValue(value.kind)
        memo[id(value)] = instance
        for token, entry in value.namespace.read_all(ctx).items():
            instance.namespace.entries[token] = Entry(entry.key, _deep(ctx, entry.value, memo))
        return instance
    raise Break(UNKNOWN_CALLEE, f"deepcopy of {value.describe()}")

