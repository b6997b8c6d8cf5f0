"""`__torch_function__` of classes that are no tensors: torch hands them the calls that they are arguments of."""

import types

from ...constant import Constant
from ...python.containers.lists import ListValue
from ...python.containers.tuples import TupleValue
from ...python.objects.attributes import bind_raw, class_lookup
from ...python.objects.instances import ObjectValue
from ...reasons import UNSUPPORTED_TENSOR, Break
from ...value import Arguments, CaptureContext, Keywords, Value


def overridden(ctx: CaptureContext, function: object, args: Arguments, kwargs: Keywords) -> Value | None:
    """Return what an argument's class makes of a call of one of torch's functions in C; None if none has a say.

    Raises Break where several classes have one, or the one declines: the order of their answers is torch's business.
    """
    owners = _overriding(ctx, [*args, *kwargs.values()])
    if not owners:
        return None
    owner = owners[0]
    kind = owner.python_type()
    place, raw = class_lookup(kind, "__torch_function__")
    plain = isinstance(raw, classmethod) and isinstance(raw.__func__, types.FunctionType)
    if any(other.python_type() is not kind for other in owners) or not plain or place is None:
        raise Break(UNSUPPORTED_TENSOR, f"{owner.describe()} as an argument of an operation")
    if not isinstance(function, types.BuiltinFunctionType):  # one in Python hands on all its parameters, by name
        raise Break(UNSUPPORTED_TENSOR, f"{owner.describe()} as an argument of a function of torch in Python")
    override = bind_raw(ctx, raw, place, "__torch_function__", None, kind)
    given = [ctx.known(function), TupleValue([ctx.known(kind)]), TupleValue([ctx.realize(arg) for arg in args])]
    if kwargs:
        given.append(ctx.call(ctx.known(dict), [], kwargs))
    answer = ctx.realize(ctx.call(override, given, {}))
    if isinstance(answer, Constant) and answer.value is NotImplemented:
        raise Break(UNSUPPORTED_TENSOR, f"{owner.describe()}, which declines an operation")
    return answer


def _overriding(ctx: CaptureContext, values: list[Value]) -> list[ObjectValue]:
    """Return the objects among arguments, and in lists of them, whose class has a `__torch_function__`."""
    found: list[ObjectValue] = []
    for value in map(ctx.realize, values):
        if isinstance(value, ObjectValue):
            if class_lookup(value.kind, "__torch_function__")[0] is not None:
                found.append(value)
        elif isinstance(value, ListValue | TupleValue):
            found += _overriding(ctx, list(value.items))
    return found
