"""Calls and subscripts that keep symbolic numbers symbolic; what is not here fixes them to what they are now."""

import math
import operator
from collections.abc import Callable
from typing import Any

import torch

from ...base.symbol_facts import size_expression
from ..constant import Constant
from ..scalar import SizeValue, calculate, divides_wholly
from ..value import Arguments, CaptureContext, Value
from .containers.sequences import SequenceValue, SliceValue
from .containers.tuples import TupleValue


def _quotient_and_rest(left: Any, right: Any) -> tuple[Any, Any]:
    return left // right, left % right


# Functions that torch's symbols answer themselves; int() of a symbol would fix it, math.trunc says the same.
_KEPT: dict[Callable[..., object], Callable[..., object]] = {
    abs: abs,
    math.floor: math.floor,
    math.ceil: math.ceil,
    math.trunc: math.trunc,
    round: round,
    int: math.trunc,
    divmod: _quotient_and_rest,
}


_OF_MATH = tuple(vars(math)[name] for name in dir(math) if callable(vars(math)[name]) and not name.startswith("_"))


def size_call(ctx: CaptureContext, function: Callable[..., object], args: Arguments) -> Value | None:
    """Return a pure function of symbolic numbers as a symbolic number, None where it has no such form."""
    values = [ctx.realize(arg) for arg in args]
    if not any(isinstance(value, SizeValue) for value in values):
        return None
    if any(isinstance(value, SizeValue) and value.kind is bool for value in values):
        return None
    operands = [_operand(value) for value in values]
    if any(operand is None for operand in operands):
        return None
    twin = _KEPT.get(function)
    if twin is None:
        return ctx.graph.computed_number(function, operands) if function in _OF_MATH else None
    if function is round and len(values) != 1:
        return ctx.graph.computed_number(function, operands)
    if function is divmod and not divides_wholly(*operands):
        parts = [ctx.graph.computed_number(one, operands) for one in (operator.floordiv, operator.mod)]
        return TupleValue([part for part in parts if part is not None]) if None not in parts else None
    return calculate(ctx, twin, *operands, plain=function)


def _operand(value: Value) -> Any:
    if isinstance(value, SizeValue):
        return value.operand()
    return value.value if isinstance(value, Constant) and type(value.value) in (int, float) else None


def select_item(ctx: CaptureContext, tensor: Value, rank: int, key: Value) -> tuple[Value, Value] | None:
    """Return what is left of a subscript of a tensor after its symbolic positions were selected: (tensor, key).

    None without symbolic positions, or beside index tensors and masks.
    """
    key = ctx.realize(key)
    parts = key.elements(ctx) if isinstance(key, TupleValue) else [key]
    parts = [ctx.realize(part) for part in parts]
    if not any(_is_position(part) for part in parts) or not all(_is_plain(part) for part in parts):
        return None
    consuming = [part for part in parts if not (isinstance(part, Constant) and part.value in (None, Ellipsis))]
    rest: list[Value] = []
    selections: list[tuple[int, Value]] = []
    dimension = 0
    for part in parts:
        if isinstance(part, Constant) and part.value is Ellipsis:
            dimension += rank - len(consuming)
        elif _is_position(part):
            selections.append((dimension, part))
            dimension += 1
            continue
        elif not (isinstance(part, Constant) and part.value is None):
            dimension += 1
        rest.append(part)
    selection = tensor
    for place, part in reversed(selections):
        selection = ctx.graph.call("call_function", torch.select, [selection, Constant(place), part], {})
    return selection, TupleValue(rest) if rest else Constant(Ellipsis)


def _is_position(part: Value) -> bool:
    return isinstance(part, SizeValue) and part.kind is int


def _is_plain(part: Value) -> bool:
    if isinstance(part, SizeValue | SliceValue):
        return True
    return isinstance(part, Constant) and (part.value in (None, Ellipsis) or type(part.value) in (int, slice))


def tensor_of_size(ctx: CaptureContext, value: SizeValue, kwargs: dict[str, Value]) -> Value:
    """Return `torch.tensor(n)` of a symbolic number: one element that the graph fills."""
    kind = torch.int64 if value.kind is int else torch.bool if value.kind is bool else torch.get_default_dtype()
    dtype = kwargs.get("dtype")
    dtype_value = ctx.known(kind) if dtype is None or ctx.realize(dtype).constant() is None else dtype
    return ctx.graph.call("call_function", torch.full, [TupleValue([]), value], {**kwargs, "dtype": dtype_value})


def flattens_first(fake: torch.Tensor, args: Arguments, ctx: CaptureContext) -> bool:
    """Return whether a view or reshape with dynamic sizes had better go by way of one dimension.

    From (n, m) to (m, n), say: torch compares the sizes and would keep which divides which as a guard. Through one
    dimension it has nothing to compare, and a contiguous tensor is seen in the same way.
    """
    if fake.dim() < 2 or not any(isinstance(size, torch.SymInt) for size in fake.shape) or not fake.is_contiguous():
        return False
    sizes = [ctx.realize(arg) for arg in args]
    if len(sizes) == 1 and isinstance(sizes[0], SequenceValue):
        sizes = [ctx.realize(part) for part in sizes[0].elements(ctx)]
    if len(sizes) < 2:
        return False
    ends = ((sizes[0], fake.shape[0]), (sizes[-1], fake.shape[-1]))
    return not any(_is_size(value, size) for value, size in ends)


def _is_size(value: Value, size: Any) -> bool:
    if isinstance(value, SizeValue):
        return isinstance(size, torch.SymInt) and bool(size_expression(value.symbol) == size_expression(size))
    return not isinstance(value, Constant) or value.value == -1 or (type(size) is int and value.value == size)
