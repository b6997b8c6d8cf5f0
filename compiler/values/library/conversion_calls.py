"""Numbers and text: conversions, rounding, `math`, `str` and `repr`."""

import math
import operator
from collections.abc import Callable

import torch

from ..constant import Constant, fold
from ..python.containers.mapping_views import DictView
from ..python.containers.sequences import ElementIterator
from ..python.objects.attributes import MISSING, class_lookup
from ..python.objects.classes import constructs
from ..python.objects.functions import BoundMethod, FunctionValue
from ..python.objects.instances import ObjectValue
from ..python.objects.partials import PartialValue
from ..python.operators import binary
from ..python.size_calls import size_call
from ..python.texts import number_of
from ..reasons import ARGUMENT_NOT_KNOWN, DATA_DEPENDENT_VALUE, Break
from ..rule_tables import calls
from ..scalar import SizeValue, calculate
from ..torch.numbers.deferred_numbers import DeferredNumber, deferred
from ..torch.tensor import TensorValue
from ..value import Arguments, CaptureContext, Keywords, Value


def known_argument(ctx: CaptureContext, value: Value, what: str) -> object:
    """Return the real object of an argument; Break if it is not known. what: the call, for messages."""
    value = ctx.realize(value)
    if isinstance(value, TensorValue):
        raise Break(DATA_DEPENDENT_VALUE, f"{what} of {value.describe()}")
    if isinstance(value, ObjectValue):
        return number_of(ctx, value)
    if not value.is_constant():
        try:
            return value.stand_in() if isinstance(value, _NEVER_NUMBERS) else value.constant()
        except Break:
            raise Break(ARGUMENT_NOT_KNOWN, f"{what} of {value.describe()}") from None
    return value.constant()


_NEVER_NUMBERS = (FunctionValue, BoundMethod, PartialValue, DictView, ElementIterator)  # refused for their type alone


def _fold_rule(function: Callable[..., object]) -> Callable[[CaptureContext, Arguments, Keywords], Value]:
    name = getattr(function, "__name__", str(function))

    def rule(ctx: CaptureContext, args: Arguments, kwargs: Keywords) -> Value:
        symbolic = size_call(ctx, function, args)
        if symbolic is not None:
            return symbolic
        given = [_filled(ctx, arg, name) for arg in args] if name in _OF_ITERABLES else args
        return folded(ctx, function, given, kwargs)

    return rule


_OF_ITERABLES = ("fsum", "dist", "sumprod")


def _filled(ctx: CaptureContext, value: Value, what: str) -> Value:
    """Return a list of what a function takes out of an iterable."""
    value = ctx.realize(value)
    if value.is_constant() or not isinstance(value, _NEVER_NUMBERS):
        return value
    return Constant([known_argument(ctx, element, what) for element in value.each(ctx)])


def folded(ctx: CaptureContext, function: Callable[..., object], args: Arguments, kwargs: Keywords) -> Value:
    """Run a pure function on arguments that have to be known; what is refused for its type alone may be anything."""
    name = getattr(function, "__name__", str(function))
    known = [known_argument(ctx, arg, name) for arg in args]
    result = fold(ctx, function, *known, **{key: known_argument(ctx, value, name) for key, value in kwargs.items()})
    for value in (*args, *kwargs.values()):
        real = ctx.realize(value)
        if isinstance(real, _NEVER_NUMBERS) and not real.is_constant():
            raise Break(ARGUMENT_NOT_KNOWN, f"{name} of {real.describe()}")  # it was not refused
    return result


_MATH = [getattr(math, name) for name in dir(math) if callable(getattr(math, name)) and not name.startswith("_")]


@calls(math.sqrt)
def _square_root(ctx: CaptureContext, args: Arguments, kwargs: Keywords) -> Value:
    value = ctx.realize(args[0])
    if isinstance(value, SizeValue):
        return calculate(ctx, torch.sym_sqrt, value.symbol, plain=math.sqrt)
    return fold(ctx, math.sqrt, known_argument(ctx, value, "sqrt"))


@calls(math.prod)
def _product(ctx: CaptureContext, args: Arguments, kwargs: Keywords) -> Value:
    result = ctx.realize(kwargs.get("start", Constant(1)))
    for item in ctx.realize(args[0]).each(ctx):
        result = ctx.realize(binary(ctx, "*", result, item))
    return result


_MATH.remove(math.sqrt)
_MATH.remove(math.prod)
for _pure in (*_MATH, ord, chr, hex, oct, bin, operator.index):
    calls(_pure)(_fold_rule(_pure))


@calls(divmod)
def _divmod(ctx: CaptureContext, args: Arguments, kwargs: Keywords) -> Value:
    left, right = ctx.realize(args[0]), ctx.realize(args[1])
    for owner, name, other in ((left, "__divmod__", right), (right, "__rdivmod__", left)):
        method = owner.method(ctx, name) if isinstance(owner, ObjectValue) else None
        if method is not None:
            answer = ctx.realize(ctx.call(method, [other], {}))
            if not (isinstance(answer, Constant) and answer.value is NotImplemented):
                return answer
    symbolic = size_call(ctx, divmod, args)
    return symbolic or fold(ctx, divmod, known_argument(ctx, left, "divmod"), known_argument(ctx, right, "divmod"))


def _number(ctx: CaptureContext, kind: type, args: Arguments, kwargs: Keywords) -> Value:
    values = [ctx.realize(arg) for arg in args]
    if len(values) == 1 and isinstance(values[0], TensorValue) and kind in (int, float):
        number = _of_tensor(ctx, kind, values[0])
        values = values if number is None else [number]
    if len(values) == 1 and isinstance(values[0], DeferredNumber) and values[0].kind is kind:
        return values[0]
    if len(values) == 1 and isinstance(values[0], SizeValue):
        if values[0].kind is kind:
            return values[0]
        if kind is float and values[0].kind is int:
            return calculate(ctx, torch.sym_float, values[0].symbol, plain=float)
        symbolic = size_call(ctx, kind, args)
        if symbolic is not None:
            return symbolic
    return folded(ctx, kind, values, kwargs)


def _of_tensor(ctx: CaptureContext, kind: type, tensor: TensorValue) -> Value | None:
    """Return the number of a tensor that `int` and `float` convert, where it is kept; None where it has to be read."""
    if tensor.replaced(ctx, f"__{kind.__name__}__") is not None:
        return None
    return deferred(ctx, tensor, tensor.fake)


constructs(int, float, complex)(_number)


@constructs(bytes)
def _bytes(ctx: CaptureContext, kind: type, args: Arguments, kwargs: Keywords) -> Value:
    value = ctx.realize(args[0]) if len(args) == 1 and not kwargs else None
    if isinstance(value, ObjectValue) and not isinstance(value.contents, Constant):
        names = [name for name in _OF_BYTES if class_lookup(value.kind, name)[1] not in (None, MISSING)]
        if names and names[0] in ("__iter__", "__getitem__"):
            return fold(ctx, bytes, [known_argument(ctx, element, "bytes") for element in value.gathered(ctx)])
    if value is not None:
        return _number(ctx, kind, [_filled(ctx, value, "bytes")], kwargs)
    return _number(ctx, kind, args, kwargs)


_OF_BYTES = ("__bytes__", "__index__", "__iter__", "__getitem__")  # in the order in which Python looks for them


@constructs(bool)
def _bool(ctx: CaptureContext, kind: type, args: Arguments, kwargs: Keywords) -> Value:
    value = ctx.realize(args[0]) if args else Constant(False)
    awaited = ctx.frames.awaited_truth() if isinstance(value, TensorValue) else None
    if awaited is not None and ctx.graph.assume(value, awaited):
        return Constant(awaited)
    return Constant(value.truth(ctx))


@calls(abs)
def _abs(ctx: CaptureContext, args: Arguments, kwargs: Keywords) -> Value:
    value = ctx.realize(args[0])
    if isinstance(value, TensorValue):
        method = value.replaced(ctx, "__abs__")
        return ctx.graph.call("call_function", abs, [value], {}) if method is None else ctx.call(method, [], {})
    if isinstance(value, ObjectValue):
        method = value.method(ctx, "__abs__")
        if method is not None:
            return ctx.call(method, [], {})
    return size_call(ctx, abs, args) or fold(ctx, abs, known_argument(ctx, value, "abs"))


@calls(round)
def _round(ctx: CaptureContext, args: Arguments, kwargs: Keywords) -> Value:
    value = ctx.realize(args[0])
    if isinstance(value, TensorValue) and not hasattr(value.kind, "__round__"):
        ctx.throw(TypeError, f"type {value.kind.__name__} doesn't define __round__ method")
    if isinstance(value, TensorValue):
        return value.call_method(ctx, "round", [], {} if len(args) == 1 else {"decimals": args[1]})
    if isinstance(value, ObjectValue):
        method = value.method(ctx, "__round__")
        if method is not None:
            return ctx.call(method, args[1:], {})
    symbolic = size_call(ctx, round, args)
    return symbolic or fold(ctx, round, *[known_argument(ctx, arg, "round") for arg in args])


@calls(pow, math.pow) if id(math.pow) not in {id(f) for f in _MATH} else calls(pow)
def _pow(ctx: CaptureContext, args: Arguments, kwargs: Keywords) -> Value:
    if len(args) == 2:
        return binary(ctx, "**", args[0], args[1])
    base = ctx.realize(args[0])
    if isinstance(base, ObjectValue) and base.method(ctx, "__pow__") is not None:
        return ctx.call(base.get_attr(ctx, "__pow__"), args[1:], {})
    return fold(ctx, pow, *[known_argument(ctx, arg, "pow") for arg in args])
