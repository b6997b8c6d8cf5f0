"""Questions of a program to itself and to its environment: signatures, variables, frames."""

import builtins
import inspect
import operator
import os
import sys
import traceback
import types
import warnings
from collections.abc import Callable
from dataclasses import dataclass

from ..constant import Constant, fold
from ..guard import Answer, GuardKind
from ..python.containers.lists import ListValue, sort_values
from ..python.containers.namespaces import GlobalsValue
from ..python.containers.own_attributes import OwnAttributes
from ..python.containers.tuples import TupleValue
from ..python.objects.attributes import CAPTURED_CLASSES, class_lookup, may_change
from ..python.objects.exceptions import TracebackValue
from ..python.objects.functions import BoundMethod, FunctionValue
from ..python.objects.instances import ObjectValue
from ..reasons import ARGUMENT_NOT_KNOWN, ATTRIBUTE, SIDE_EFFECT_CALL, Break
from ..refused_arguments import refuse_arguments
from ..rule_tables import CallRule, calls
from ..source import Injected
from ..value import Arguments, CaptureContext, Keywords, Raised, Value
from .conversion_calls import known_argument
from .environment import EnvironmentValue

_TELLING = frozenset({"__signature__", "__text_signature__", "_partialmethod", "__partialmethod__"})
_FURTHEST = 1000  # frames that a warning is looked for in


@calls(inspect.signature)
def _signature(ctx: CaptureContext, args: Arguments, kwargs: Keywords) -> Value:
    target = ctx.realize(args[0])
    function = target.function if isinstance(target, BoundMethod) else target
    told = isinstance(function, FunctionValue) and not _TELLING.isdisjoint(function.attributes)
    if len(args) != 1 or kwargs or told:
        raise Break(ARGUMENT_NOT_KNOWN, f"signature of {target.describe()}, which says what it is, or by options")
    if isinstance(target, BoundMethod) and isinstance(target.function, FunctionValue) and target.function.real:
        return fold(ctx, inspect.signature, types.MethodType(target.function.real, object()))
    if isinstance(target, FunctionValue) and target.real is not None:
        return fold(ctx, inspect.signature, target.real)
    if isinstance(target, FunctionValue):
        if "__wrapped__" in target.attributes:
            return _signature(ctx, [target.attributes["__wrapped__"]], kwargs)
        return fold(ctx, inspect.signature, _plain_copy(target))
    if not target.is_constant():
        raise Break(ARGUMENT_NOT_KNOWN, f"signature of {target.describe()}")
    return fold(ctx, inspect.signature, target.constant())


@calls(inspect.getmro)
def _getmro(ctx: CaptureContext, args: Arguments, kwargs: Keywords) -> Value:
    if len(args) != 1 or kwargs:
        refuse_arguments(ctx, inspect.getmro, args, kwargs)
        raise Break(ARGUMENT_NOT_KNOWN, "inspect.getmro by keyword")
    return ctx.realize(args[0]).get_attr(ctx, "__mro__")


def _plain_copy(function: FunctionValue) -> types.FunctionType:
    """Return a real function with the parameters of one made while capturing; Break if a default is not known."""
    defaults = tuple(value.constant() for value in function.defaults)
    cells = tuple(types.CellType() for _ in function.cells)
    copy = types.FunctionType(function.code, function.namespace, function.name, defaults or None, cells)
    if function.keyword_defaults:
        copy.__kwdefaults__ = {name: value.constant() for name, value in function.keyword_defaults.items()}
    annotations = function.attributes.get("__annotations__")
    if annotations is not None:
        copy.__annotations__ = annotations.constant()  # type: ignore[assignment]  # a dictionary
    return copy


@calls(os.getenv)
def _getenv(ctx: CaptureContext, args: Arguments, kwargs: Keywords) -> Value:
    return EnvironmentValue().call_method(ctx, "get", args, kwargs)


class FrameView(Value):
    """What `sys._getframe()` gives: code, line and globals of a frame that is evaluated here."""

    always_true = True

    def __init__(self, ctx: CaptureContext, depth: int) -> None:
        self.code, _, self.frame = ctx.frames.calling_frame(depth)

    def python_type(self) -> type:
        """Return the frame type."""
        return types.FrameType

    def get_attr(self, ctx: CaptureContext, name: str) -> Value:
        """Give code, line, globals and the frame further out."""
        if name == "f_code":
            return ctx.known(self.code)
        depth = ctx.frames.depth_of(self.frame)
        if depth is None:
            ctx.frames.needs_own_frame("a frame that has ended", _FURTHEST)
        if name == "f_lineno" and not depth:
            return Constant(ctx.frames.calling_frame(0)[1])
        if name == "f_globals" and not depth:
            return GlobalsValue(ctx.frames.calling_namespace())
        if name == "f_back":
            return FrameView(ctx, depth + 1)
        ctx.frames.needs_own_frame(f"attribute {name!r} of a frame", depth)


def demand_frames(ctx: CaptureContext, level: Value | None) -> None:
    """Demand the original frames that a message is about; level: what is given for `stacklevel`."""
    known = Constant(1) if level is None else ctx.realize(level)
    number = known.constant() if known.is_constant() else _FURTHEST
    if isinstance(number, int) and number > 1:
        ctx.frames.needs_own_frame("a message about a line further out", min(number - 1, _FURTHEST))


@calls(warnings.warn)
def _warn(ctx: CaptureContext, args: Arguments, kwargs: Keywords) -> Value:
    demand_frames(ctx, args[2] if len(args) > 2 else kwargs.get("stacklevel"))
    raise Break(SIDE_EFFECT_CALL, "warnings.warn")


@calls(inspect.stack, traceback.extract_stack, traceback.format_stack, traceback.print_stack)
def _whole_stack(ctx: CaptureContext, args: Arguments, kwargs: Keywords) -> Value:
    ctx.frames.needs_own_frame("the stack of all frames", _FURTHEST)


@calls(builtins.globals)
def _globals(ctx: CaptureContext, args: Arguments, kwargs: Keywords) -> Value:
    return GlobalsValue(ctx.frames.calling_namespace())


@calls(builtins.locals)
def _locals(ctx: CaptureContext, args: Arguments, kwargs: Keywords) -> Value:
    return ctx.frames.locals_given()


@calls(vars)
def _vars(ctx: CaptureContext, args: Arguments, kwargs: Keywords) -> Value:
    if not args:
        return _locals(ctx, args, kwargs)
    value = ctx.realize(args[0])
    try:
        return value.get_attr(ctx, "__dict__")
    except Raised as raised:
        if issubclass(raised.value.python_type(), AttributeError):
            ctx.throw(TypeError, "vars() argument must have __dict__ attribute")
        raise


@calls(builtins.dir)
def _dir(ctx: CaptureContext, args: Arguments, kwargs: Keywords) -> Value:
    if not args:
        return ListValue([Constant(name) for name in sorted(ctx.frames.calling_locals())])
    value = ctx.realize(args[0])
    if isinstance(value, ObjectValue):
        method = value.method(ctx, "__dir__")
        if method is not None:
            return ListValue(sort_values(ctx, ctx.unpack(ctx.call(method, [], {})), {}))
        if class_lookup(value.kind, "__dir__")[0] is not object:
            value.unsupported("dir", ATTRIBUTE)
        return ListValue(sort_values(ctx, ctx.unpack(_names_of_object(ctx, [value], {})), {}))
    if isinstance(value, OwnAttributes):
        value.demand_no_attributes(ctx, "dir")
    function = value.function if isinstance(value, BoundMethod) else value
    if isinstance(function, FunctionValue) and function.has_attributes():
        value.unsupported("dir of a function with attributes", ATTRIBUTE)
    if value.is_constant() and not isinstance(value.constant(), list | dict | set):
        return ctx.known(_names_of(ctx, value.constant()))
    return ctx.known(dir(value.python_type()))


@calls(object.__dir__)
def _names_of_object(ctx: CaptureContext, args: Arguments, kwargs: Keywords) -> Value:
    """Return the names in Python's order: the object's own, those of its class, those of each base in turn."""
    value = ctx.realize(args[0])
    if not isinstance(value, ObjectValue):
        value.unsupported("object.__dir__", ATTRIBUTE)
    names = dict.fromkeys(str(entry.key.constant()) for entry in value.namespace.read_all(ctx).values())
    _names_of(ctx, value.kind)  # for the guard
    _merge_names(names, value.kind)
    return ctx.known(list(names))


def _merge_names(names: dict[str, None], kind: type) -> None:
    names.update(dict.fromkeys(vars(kind)))
    for base in kind.__bases__:
        _merge_names(names, base)


def _names_of(ctx: CaptureContext, owner: object) -> list[str]:
    """Return the names of a class, a module or a literal, which are asked for again at every entry."""
    if isinstance(owner, type) and not ctx.effects.class_changes.keys().isdisjoint(owner.__mro__):
        raise Break(ATTRIBUTE, f"dir of {owner.__qualname__}, to which the call has given attributes")
    names = dir(owner)
    if isinstance(owner, types.ModuleType) or (isinstance(owner, type) and may_change(owner)):
        text = repr(names).replace("{", "{{").replace("}", "}}")
        ctx.guards.add(Injected(owner), GuardKind.EXPRESSION, f"dir({{0}}) == {text}")
    if isinstance(owner, types.ModuleType):
        changed = ctx.effects.changed_names(vars(owner))
        names = sorted({*names, *changed} - {name for name, assigned in changed.items() if not assigned})
    return names


@calls(inspect.currentframe)
def _current_frame(ctx: CaptureContext, args: Arguments, kwargs: Keywords) -> Value:
    refuse_arguments(ctx, inspect.currentframe, args, kwargs)
    return FrameView(ctx, 0)


@calls(sys._getframe)
def _frame(ctx: CaptureContext, args: Arguments, kwargs: Keywords) -> Value:
    depth = known_argument(ctx, args[0], "_getframe") if args else 0
    assert isinstance(depth, int)
    return FrameView(ctx, depth)


@calls(builtins.eval, builtins.exec)
def _evaluation(ctx: CaptureContext, args: Arguments, kwargs: Keywords) -> Value:
    ctx.frames.needs_own_frame("eval() and exec() look at the frame that calls them")


@calls(sys.exc_info)
def _exception_info(ctx: CaptureContext, args: Arguments, kwargs: Keywords) -> Value:
    handled = ctx.frames.handled_exception()
    if handled is None:
        return TupleValue([Constant(None), Constant(None), Constant(None)])
    return TupleValue([ctx.known(handled.python_type()), handled, TracebackValue(handled)])


@calls(sys.exception)
def _current_exception(ctx: CaptureContext, args: Arguments, kwargs: Keywords) -> Value:
    return ctx.frames.handled_exception() or Constant(None)


@dataclass(frozen=True, eq=False)
class Subclasses(Answer):
    """The classes that derive from one, in the order they were made."""

    def still_given(self, function: Callable[..., object]) -> bool:
        """Return whether they are the same classes."""
        now, before = self.found(function), self.given
        assert isinstance(now, list)
        assert isinstance(before, list)
        return len(now) == len(before) and all(map(operator.is_, now, before))


def subclasses_rule(function: object) -> CallRule | None:
    """Give `C.__subclasses__`, a new object at every look-up; a guard asks again."""
    owner = getattr(function, "__self__", None)
    bound = isinstance(function, types.BuiltinMethodType) and function.__name__ == "__subclasses__"
    if not (bound and isinstance(owner, type)):
        return None

    def rule(ctx: CaptureContext, args: Arguments, kwargs: Keywords) -> Value:
        kind = owner
        assert isinstance(kind, type)
        refuse_arguments(ctx, function, args, kwargs)
        found: list[type] = type.__subclasses__(kind)
        if any(one in CAPTURED_CLASSES for one in (kind, *found)):
            raise Break(ATTRIBUTE, f"subclasses of {kind.__qualname__}, some of which are made while capturing")
        ctx.guards.add(Injected(type.__subclasses__), GuardKind.ANSWER, Subclasses((kind,), {}, found))
        return ListValue([ctx.known(one) for one in found])

    return rule
