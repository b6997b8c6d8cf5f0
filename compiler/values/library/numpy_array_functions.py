"""NumPy functions of whole arrays that are traced: choices, matrices, and those that only move elements."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy
import torch

from ..constant import Constant
from ..python.containers.sequences import SequenceValue
from ..python.containers.tuples import TupleValue
from ..reasons import NUMPY, Break
from ..torch.tensor import TensorValue
from ..value import CaptureContext, Keywords, Value
from .numpy_arrays import TensorArray, TensorNumber, fresh
from .numpy_operations import (
    call,
    cast,
    dtype_or_kind,
    elementwise,
    finite_only,
    matrix_product,
    tensor_of,
    torch_dtype,
)
from .numpy_values import FLOATS, OverTensor, demand_quiet_errors, dtype_of

Rule = Callable[[CaptureContext, list[Value], Keywords], Value]


def _refuse(what: str) -> Break:
    return Break(NUMPY, f"{what} with settings of its own")


def _number(value: Value) -> Any:
    """Return a number of Python's that a value is; None for anything else."""
    return value.value if isinstance(value, Constant) and type(value.value) in (bool, int, float) else None


def _operand_dtype(value: Value) -> Any:
    number = _number(value)
    return number if type(number) in (int, float) else dtype_or_kind(value)


def _where(ctx: CaptureContext, values: list[Value], kwargs: Keywords) -> Value:
    if len(values) != 3 or kwargs:
        raise _refuse("where")
    condition, *choices = values
    asked: Value = tensor_of(ctx, condition)
    if _made(asked).fake.dtype != torch.bool:
        asked = call(ctx, torch.ne, asked, Constant(0))
    dtype = numpy.result_type(*map(_operand_dtype, choices))
    parts = [_in_dtype(ctx, choice, dtype) for choice in choices]
    result = call(ctx, torch.where, asked, *parts)
    assert isinstance(result, TensorValue)
    return TensorArray(result)  # an array, without dimensions too


def _in_dtype(ctx: CaptureContext, value: Value, dtype: Any) -> Value:
    number = _number(value)
    if number is None:
        return cast(ctx, tensor_of(ctx, value), dtype)
    try:
        held = numpy.asarray(number, dtype).item()
    except OverflowError as error:
        raise Break(NUMPY, f"OverflowError: {error}") from None
    return call(ctx, torch.tensor, Constant(held), dtype=torch_dtype(dtype))


def _clip(ctx: CaptureContext, values: list[Value], kwargs: Keywords) -> Value:
    """Evaluate clip between numbers: NumPy takes a bound only where the element is beyond it, the upper one last."""
    if len(values) != 3 or kwargs or not isinstance(values[0], OverTensor):
        raise _refuse("clip")
    tensor: Value = values[0].tensor
    dtype = dtype_of(values[0].tensor.fake.dtype)
    for beyond, bound in ((torch.lt, values[1]), (torch.gt, values[2])):
        if isinstance(bound, Constant) and bound.value is None:
            continue
        number = _number(bound)
        if type(number) not in (int, float) or number != number or numpy.result_type(dtype, number) != dtype:
            raise _refuse("clip")
        limit = _in_dtype(ctx, bound, dtype)
        tensor = call(ctx, torch.where, call(ctx, beyond, tensor, limit), limit, tensor)
    if tensor is values[0].tensor or dtype.kind == "b":
        raise _refuse("clip")
    torch_dtype(dtype)
    return fresh(tensor)


def _product(function: Any) -> Rule:
    def rule(ctx: CaptureContext, values: list[Value], kwargs: Keywords) -> Value:
        if len(values) != 2 or kwargs:
            raise _refuse("a product")
        return fresh(matrix_product(ctx, values[0], values[1], function))

    return rule


def _outer(left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
    return torch.outer(left.reshape(-1), right.reshape(-1))


def _joined(function: Any, axis: int | None) -> Rule:
    """Return the rule of joining arrays of one dtype; axis: where none is given, None where none may be."""

    def rule(ctx: CaptureContext, values: list[Value], kwargs: Keywords) -> Value:
        if not 1 <= len(values) <= 2 or kwargs.keys() - {"axis"} or not isinstance(values[0], SequenceValue):
            raise _refuse("joining")
        parts = [ctx.realize(part) for part in values[0].elements(ctx)]
        given = ctx.realize(kwargs.get("axis", values[1] if len(values) == 2 else Constant(axis)))
        if not isinstance(given, Constant) or type(given.value) is not type(axis):
            raise _refuse("joining")
        dtype = numpy.result_type(*map(dtype_or_kind, parts))
        tensors = [cast(ctx, tensor_of(ctx, part), dtype) for part in parts]
        if any(isinstance(part, TensorNumber) for part in parts):
            raise Break(NUMPY, "joining numbers")
        settings: dict[str, Value] = {} if axis is None else {"dim": given}
        return fresh(ctx.graph.call("call_function", function, [TupleValue(tensors)], settings))

    return rule


def _as_method(name: str) -> Rule:
    def rule(ctx: CaptureContext, values: list[Value], kwargs: Keywords) -> Value:
        array, *rest = values
        if not isinstance(array, TensorArray):
            raise _refuse(name)
        return array.call_method(ctx, name, rest, kwargs)

    return rule


def _viewed(name: str, count: int) -> Rule:
    """Return the rule of a view that torch has by a method; count: of its known numbers."""

    def rule(ctx: CaptureContext, values: list[Value], kwargs: Keywords) -> Value:
        array, *rest = values
        if not isinstance(array, TensorArray) or kwargs or len(rest) != count:
            raise _refuse(name)
        if not all(isinstance(value, Constant) and type(value.value) is int for value in rest):
            raise _refuse(name)
        return array.viewed(ctx, name, *rest)

    return rule


def _made_like(function: Any) -> Rule:
    def rule(ctx: CaptureContext, values: list[Value], kwargs: Keywords) -> Value:
        (array, *rest) = values
        if kwargs or rest or not isinstance(array, TensorArray) or not array.tensor.fake.is_contiguous():
            raise _refuse("a new array")
        torch_dtype(dtype_of(array.tensor.fake.dtype))
        return TensorArray(_made(call(ctx, function, array.tensor)))

    return rule


def _made(value: Value) -> TensorValue:
    assert isinstance(value, TensorValue)
    return value


def _plain(function: Any, counts: tuple[int, ...], kinds: str = "biuf") -> Rule:
    """Return the rule of a function that torch has with the same arguments; counts: how many known numbers follow."""

    def rule(ctx: CaptureContext, values: list[Value], kwargs: Keywords) -> Value:
        array, *rest = values
        if not isinstance(array, TensorArray) or kwargs or len(rest) not in counts or not array.tensor.fake.numel():
            raise _refuse("a function")
        if dtype_of(array.tensor.fake.dtype).kind not in kinds or any(type(_number(v)) is not int for v in rest):
            raise _refuse("a function")
        return fresh(call(ctx, function, array.tensor, *rest))

    return rule


def _matrix_only(rule: Rule) -> Rule:
    def checked(ctx: CaptureContext, values: list[Value], kwargs: Keywords) -> Value:
        if not isinstance(values[0], TensorArray) or values[0].tensor.fake.dim() != 2:
            raise _refuse("a function of matrices")
        return rule(ctx, values, kwargs)

    return checked


def _einsum(ctx: CaptureContext, values: list[Value], kwargs: Keywords) -> Value:
    pattern, *operands = values
    if not isinstance(pattern, Constant) or not isinstance(pattern.value, str) or kwargs or len(operands) not in (1, 2):
        raise _refuse("einsum")
    demand_quiet_errors(ctx)
    dtype = numpy.result_type(*map(dtype_or_kind, operands))
    if dtype.kind != "f" or "." in pattern.value:
        raise _refuse("einsum")
    tensors = [cast(ctx, tensor_of(ctx, operand), dtype) for operand in operands]
    return fresh(finite_only(ctx, ctx.graph.call("call_function", torch.einsum, [pattern, *tensors], {})))


def _of_matrices(function: Any, count: int, norm: bool = False) -> Rule:
    """Return the rule of a function of torch.linalg; it raises what NumPy does where a matrix has no result."""

    def rule(ctx: CaptureContext, values: list[Value], kwargs: Keywords) -> Value:
        arrays = [value for value in values if isinstance(value, TensorArray)]
        floats = all(value.tensor.fake.dtype in FLOATS and value.tensor.fake.numel() for value in arrays)
        if len(arrays) != count or len(values) != count or kwargs or not floats:
            raise _refuse("linear algebra")
        dimensions = [value.tensor.fake.dim() for value in arrays]
        if not norm and (dimensions[0] != 2 or not all(1 <= count <= 2 for count in dimensions)):
            raise _refuse("linear algebra")
        if len({value.tensor.fake.dtype for value in arrays}) != 1:
            raise _refuse("linear algebra")
        demand_quiet_errors(ctx)
        tensors: list[Value] = [value.tensor for value in arrays]
        result = ctx.graph.call("call_function", function, tensors, {})
        return fresh(finite_only(ctx, result))

    return rule


def _along(function: Any, *, keeps: bool) -> Rule:
    """Return the rule of a function along one axis, the last where none is given."""

    def rule(ctx: CaptureContext, values: list[Value], kwargs: Keywords) -> Value:
        axis = ctx.realize(kwargs["axis"]) if kwargs.keys() == {"axis"} else Constant(-1)
        array = values[0]
        if kwargs.keys() - {"axis"} or len(values) != (1 if keeps else 2) or not isinstance(array, TensorArray):
            raise _refuse("a function along an axis")
        if type(_number(axis)) is not int or any(type(_number(value)) is not int for value in values[1:]):
            raise _refuse("a function along an axis")
        if not -array.tensor.fake.dim() <= _number(axis) < array.tensor.fake.dim():
            raise _refuse("a function along an axis")
        return fresh(call(ctx, function, array.tensor, *values[1:], axis))

    return rule


def _tiled(x: torch.Tensor, times: int) -> torch.Tensor:
    return torch.tile(x, (times,))


def _sorted(x: torch.Tensor, axis: int) -> torch.Tensor:
    return torch.sort(x, dim=axis).values


def _fix(ctx: CaptureContext, values: list[Value], kwargs: Keywords) -> Value:
    if kwargs or len(values) != 1:
        raise _refuse("fix")
    return fresh(elementwise(ctx, numpy.trunc, values))


ARRAY_FUNCTIONS: Mapping[Any, Rule] = {
    numpy.fix: _fix,
    numpy.where: _where,
    numpy.clip: _clip,
    numpy.matmul: _product(torch.matmul),
    numpy.dot: _product(torch.matmul),
    numpy.outer: _product(_outer),
    numpy.concatenate: _joined(torch.cat, 0),
    numpy.stack: _joined(torch.stack, 0),
    numpy.vstack: _joined(torch.vstack, None),
    numpy.hstack: _joined(torch.hstack, None),
    numpy.column_stack: _joined(torch.column_stack, None),
    numpy.reshape: _as_method("reshape"),
    numpy.ravel: _as_method("ravel"),
    numpy.transpose: _as_method("transpose"),
    numpy.swapaxes: _as_method("swapaxes"),
    numpy.copy: _as_method("copy"),
    numpy.expand_dims: _viewed("unsqueeze", 1),
    numpy.moveaxis: _viewed("movedim", 2),
    numpy.zeros_like: _made_like(torch.zeros_like),
    numpy.ones_like: _made_like(torch.ones_like),
    numpy.einsum: _einsum,
    numpy.sort: _along(_sorted, keeps=True),
    numpy.tile: _plain(_tiled, (1,)),
    numpy.trace: _matrix_only(_plain(torch.trace, (0,), "f")),
    numpy.diagonal: _matrix_only(_viewed("diagonal", 0)),
    numpy.linalg.norm: _of_matrices(torch.linalg.norm, 1, norm=True),
    numpy.linalg.inv: _of_matrices(torch.linalg.inv, 1),
    numpy.linalg.det: _of_matrices(torch.linalg.det, 1),
    numpy.linalg.solve: _of_matrices(torch.linalg.solve, 2),
    numpy.triu: _matrix_only(_plain(torch.triu, (0, 1))),
    numpy.tril: _matrix_only(_plain(torch.tril, (0, 1))),
}
