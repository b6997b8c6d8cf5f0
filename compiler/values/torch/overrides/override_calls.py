"""Operations that modes and subclasses are asked about: `__torch_function__` is evaluated in torch's order."""

import functools
import types
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch

from ...constant import Constant
from ...python.containers.sequences import SequenceValue
from ...python.objects.attributes import bind_raw, class_lookup
from ...reasons import UNSUPPORTED_TENSOR, Break
from ...rule_tables import CallRule, calls
from ...value import Arguments, CaptureContext, Keywords, Value
from .override_facts import plain_override, unwrapped_functions
from .recorded_calls import OverridableCall, recorded_call
from .subclass_values import SubclassValue, convert, override_of, own_again


def asked_first(
    ctx: CaptureContext, kind: str, target: object, args: Arguments, kwargs: Keywords
) -> tuple[Value | None, list[SubclassValue]]:
    """Return (answer, tensors of subclasses) of an operation; the answer is None where torch goes on as usual.

    kind, target: as in a graph. The tensors of subclasses among the arguments are given by their plain tensors then.
    """
    state = ctx.modes.overrides
    owners = list(_subclass_values(ctx, [*args, *kwargs.values()])) if state.subclasses else []
    if not state.modes and not any(owner.is_asked(ctx) for owner in owners):
        return None, owners
    operation: Any = _method_of(str(target)) if kind == "call_method" else target
    return answered(ctx, recorded_call(ctx, operation, args, kwargs), owners), owners


def _method_of(name: str) -> Callable[..., object]:
    return lambda owner, *args, **kwargs: getattr(owner, name)(*args, **kwargs)


def answered(ctx: CaptureContext, call: OverridableCall, owners: list[SubclassValue]) -> Value:
    """Return what the innermost mode makes of a call; without modes, what the classes do."""
    state = ctx.modes.overrides
    if state.modes:
        mode = state.modes.pop()
        try:
            place, raw = class_lookup(mode.python_type(), "__torch_function__")
            if place is None:
                raise Break(UNSUPPORTED_TENSOR, f"{mode.describe()} as a mode")
            override = bind_raw(ctx, raw, place, "__torch_function__", mode, mode.python_type())
            return _given(ctx, ctx.call(override, call.arguments(ctx), {}))
        finally:
            state.modes.append(mode)
    for kind in call.types:
        owner = next((owner for owner in owners if owner.kind is kind), None)
        place, raw = override_of(kind)
        if owner is None or place is None:
            raise Break(UNSUPPORTED_TENSOR, f"an operation that {kind.__name__} has a say in")
        if raw is plain_override:
            answer = by_default(ctx, kind, call.function, call.types, call.args, call.kwargs or {})
        else:
            override = bind_raw(ctx, raw, place, "__torch_function__", owner, kind)
            answer = ctx.realize(ctx.call(override, call.arguments(ctx), {}))
        if not (isinstance(answer, Constant) and answer.value is NotImplemented):
            return answer
    raise Break(UNSUPPORTED_TENSOR, "an operation that every class declines")


def _given(ctx: CaptureContext, answer: Value) -> Value:
    answer = ctx.realize(answer)
    if isinstance(answer, Constant) and answer.value is NotImplemented:
        raise Break(UNSUPPORTED_TENSOR, "an operation that a mode declines")
    return answer


@contextmanager
def subclasses_off(ctx: CaptureContext) -> Iterator[None]:
    """Evaluate a block in which subclasses have no say."""
    ctx.modes.overrides.off += 1
    try:
        yield
    finally:
        ctx.modes.overrides.off -= 1


def by_default(
    ctx: CaptureContext, kind: type, function: Value, types: tuple[type, ...], args: Arguments, kwargs: Keywords
) -> Value:
    """Evaluate `torch.Tensor.__torch_function__` of a class: plain tensors that come out become tensors of it."""
    if not all(issubclass(kind, one) for one in types):
        return Constant(NotImplemented)
    with subclasses_off(ctx):
        answer = ctx.realize(ctx.call(function, args, kwargs))
    answer = own_again(answer, list(_subclass_values(ctx, [*args, *kwargs.values()])))
    if function.is_constant() and function.constant() in unwrapped_functions():
        return answer
    return convert(ctx, answer, kind)


@calls(plain_override.__func__)
def _default_rule(ctx: CaptureContext, args: Arguments, kwargs: Keywords) -> Value:
    """Evaluate `super().__torch_function__(func, types, args, kwargs)`."""
    given: dict[str, Value] = dict(zip(("cls", "func", "types", "args", "kwargs"), args, strict=False)) | kwargs
    kind = ctx.realize(given["cls"]).constant()
    asked = [ctx.realize(one).constant() for one in ctx.unpack(given["types"])]  # of a generator, in pypose
    classes = tuple(one for one in asked if isinstance(one, type))
    positional = ctx.unpack(given["args"]) if "args" in given else []
    keywords = ctx.realize(given.get("kwargs", Constant(None)))
    named: dict[str, Value] = {}
    if not (isinstance(keywords, Constant) and keywords.value is None):
        for key in ctx.unpack(keywords):
            named[str(ctx.realize(key).constant())] = ctx.realize(keywords.get_item(ctx, key))
    if not isinstance(kind, type) or len(classes) < len(asked):
        raise Break(UNSUPPORTED_TENSOR, "Tensor.__torch_function__ with arguments that are not known")
    return by_default(ctx, kind, ctx.realize(given["func"]), classes, positional, named)


def is_asked_about(ctx: CaptureContext, values: Arguments) -> bool:
    """Return whether a mode, or the class of a tensor among values, has a say."""
    if ctx.modes.overrides.is_idle():
        return False
    return bool(ctx.modes.overrides.modes) or any(owner.is_asked(ctx) for owner in _subclass_values(ctx, values))


@calls(torch.overrides.handle_torch_function)
def _handle(ctx: CaptureContext, args: Arguments, kwargs: Keywords) -> Value:
    """Evaluate what functions of torch in Python do when somebody has a say: ask, with the function itself."""
    if len(args) < 2:
        raise Break(UNSUPPORTED_TENSOR, "handle_torch_function by keywords")
    function: Any = ctx.realize(args[0]).constant()
    given = [ctx.realize(arg) for arg in args[2:]]
    answer, _ = asked_first(ctx, "call_function", function, given, kwargs)
    if answer is None:
        raise Break(UNSUPPORTED_TENSOR, "handle_torch_function where nobody has a say")
    return answer


def _subclass_values(ctx: CaptureContext, values: Arguments) -> Iterator[SubclassValue]:
    """Give the tensors of subclasses among arguments, and in sequences of them."""
    for value in map(ctx.realize, values):
        if isinstance(value, SubclassValue):
            yield value
        elif isinstance(value, SequenceValue):
            yield from _subclass_values(ctx, value.items)


def mode_rule(ctx: CaptureContext, function: object) -> CallRule | None:
    """Return the rule of a function that a mode is asked about; None where there is no mode, or it is not asked."""
    if not ctx.modes.overrides.modes or not _is_overridable(function):
        return None

    def rule(ctx: CaptureContext, args: Arguments, kwargs: Keywords) -> Value:
        answer, _ = asked_first(ctx, "call_function", function, args, kwargs)
        assert answer is not None
        return answer

    return rule


@functools.cache
def _overridable() -> frozenset[int]:
    return frozenset(map(id, torch.overrides.get_testing_overrides()))


def _is_overridable(function: object) -> bool:
    kinds = (types.FunctionType, types.BuiltinFunctionType, types.MethodDescriptorType, types.WrapperDescriptorType)
    return isinstance(function, kinds) and id(function) in _overridable()
