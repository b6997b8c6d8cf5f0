"""Operations on arrays that lie over tensors, traced by the tables of `numpy_rows`: dtypes and refusals are NumPy's."""

import operator
from collections.abc import Mapping, Sequence
from typing import Any

import numpy
import torch

from ..constant import Constant
from ..reasons import NUMPY, Break
from ..value import Arguments, CaptureContext, Keywords, Value
from .numpy_rows import ELEMENTS, FOLDS, KEEPING, FoldRow
from .numpy_values import (
    DTYPES,
    KnownArray,
    NumpyScalar,
    OverTensor,
    demand_quiet_errors,
    dtype_of,
    known_constant,
)
from .numpy_warnings import FloatWarnings

UFUNC_OF: Mapping[Any, Any] = {
    operator.add: numpy.add,
    operator.sub: numpy.subtract,
    operator.mul: numpy.multiply,
    operator.truediv: numpy.divide,
    operator.floordiv: numpy.floor_divide,
    operator.mod: numpy.remainder,
    operator.pow: numpy.power,
    operator.and_: numpy.bitwise_and,
    operator.or_: numpy.bitwise_or,
    operator.xor: numpy.bitwise_xor,
    operator.matmul: numpy.matmul,
    operator.lt: numpy.less,
    operator.le: numpy.less_equal,
    operator.gt: numpy.greater,
    operator.ge: numpy.greater_equal,
    operator.eq: numpy.equal,
    operator.ne: numpy.not_equal,
    operator.neg: numpy.negative,
    operator.pos: numpy.positive,
    operator.invert: numpy.invert,
    operator.abs: numpy.absolute,
    abs: numpy.absolute,
}
TORCH = {numpy_dtype: dtype for dtype, numpy_dtype in DTYPES.items()}
_LARGEST = 4096  # elements of a known array that stands in a graph
_CLOSE = (torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.float32, torch.float64)


def torch_dtype(dtype: Any) -> torch.dtype:
    """Return torch's name of a dtype that rows are held to; Break for any other."""
    found = TORCH.get(numpy.dtype(dtype))
    if found not in _CLOSE:
        raise Break(NUMPY, f"an operation in {dtype}")
    return found


def call(ctx: CaptureContext, function: Any, *args: Value, **kwargs: Any) -> Value:
    """Add a call to the graph; settings are known objects."""
    return ctx.graph.call("call_function", function, list(args), {k: ctx.known(v) for k, v in kwargs.items()})


def elementwise(ctx: CaptureContext, ufunc: Any, operands: Sequence[Value]) -> Value:
    """Evaluate a ufunc of elements."""
    row = ELEMENTS.get(ufunc)
    if row is None or len(operands) != ufunc.nin:
        raise Break(NUMPY, f"{ufunc.__name__} of arrays")
    demand_quiet_errors(ctx)
    special = _power(ctx, operands) if ufunc is numpy.power else None
    if special is not None:
        return special
    *taken, given = _loop(ufunc, operands)
    if not all(numpy.dtype(dtype).kind in row.kinds for dtype in taken):
        raise Break(NUMPY, f"{ufunc.__name__} in {taken[0]}")
    ready = [_operand(ctx, value, dtype) for value, dtype in zip(operands, taken, strict=True)]
    floats = row.warns and numpy.dtype(given).kind == "f"
    counted = [value for value in ready if not _is_whole(value)]
    warnings = FloatWarnings(ctx, counted, keeps=ufunc in KEEPING) if floats else None
    if row.divides:
        _demand_divisor(ctx, ready[1])
    if row.divides or row.tensors:
        ready = [_as_tensor(ctx, value, dtype) for value, dtype in zip(ready, taken, strict=True)]
    result = call(ctx, row.run, *ready)
    if warnings is not None:
        warnings.demand_none(result)
    return cast(ctx, result, given)


def _power(ctx: CaptureContext, operands: Sequence[Value]) -> Value | None:
    """Evaluate powers by 2, which NumPy computes as products."""
    base, exponent = operands
    squares = isinstance(exponent, Constant) and type(exponent.value) is int and exponent.value == 2
    if not squares or not isinstance(base, OverTensor) or base.tensor.fake.dtype in (torch.bool, torch.float16):
        return None
    return elementwise(ctx, numpy.multiply, [base, base])


def _is_whole(value: Value) -> bool:
    return isinstance(value, Constant) and isinstance(value.value, int)


def _demand_divisor(ctx: CaptureContext, divisor: Value) -> None:
    """Assume that no divisor is 0, of which NumPy warns."""
    if isinstance(divisor, Constant):
        if divisor.value == 0:
            raise Break(NUMPY, "a division by zero")
    elif not ctx.graph.assume_no_warning(call(ctx, torch.ne, divisor, Constant(0))):
        raise Break(NUMPY, "a division that may warn")


def _loop(ufunc: Any, operands: Sequence[Value]) -> Sequence[Any]:
    """Return the dtypes that NumPy computes in and gives; Break where it refuses, so that it says so."""
    try:
        found: Sequence[Any] = ufunc.resolve_dtypes((*map(dtype_or_kind, operands), None))
    except TypeError as error:
        raise Break(NUMPY, f"TypeError: {error}") from None
    return found


def dtype_or_kind(value: Value) -> Any:
    """Return the dtype of an array; of a number of Python's its class, which has a say only in its kind."""
    if isinstance(value, OverTensor):
        return dtype_of(value.tensor.fake.dtype)
    if isinstance(value, KnownArray):
        return value.array.dtype
    if isinstance(value, NumpyScalar):
        return value.value.dtype
    if isinstance(value, Constant) and type(value.value) in (int, float):
        return type(value.value)
    if isinstance(value, Constant) and type(value.value) is bool:
        return numpy.dtype(bool)
    raise Break(NUMPY, f"an operation on {value.describe()}")


def _operand(ctx: CaptureContext, value: Value, dtype: Any) -> Value:
    """Return an operand in a dtype: a tensor, or a number of Python's that the dtype holds."""
    if isinstance(value, OverTensor):
        return cast(ctx, value.tensor, dtype)
    if isinstance(value, KnownArray):
        return constant_tensor(ctx, value.array.astype(dtype))
    number = known_constant(value)
    try:
        held = numpy.asarray(number, dtype=dtype)
    except OverflowError as error:
        raise Break(NUMPY, f"OverflowError: {error}") from None
    return Constant(held.item())


def _as_tensor(ctx: CaptureContext, value: Value, dtype: Any) -> Value:
    return constant_tensor(ctx, numpy.asarray(known_constant(value), dtype)) if isinstance(value, Constant) else value


def constant_tensor(ctx: CaptureContext, array: Any) -> Value:
    """Return a tensor with the elements of a known array."""
    if array.size > _LARGEST or not array.size:
        raise Break(NUMPY, f"an array of {array.size} elements beside others")
    return call(ctx, torch.tensor, ctx.known(array.tolist()), dtype=torch_dtype(array.dtype))


def tensor_of(ctx: CaptureContext, value: Value) -> Value:
    """Return the tensor of an array."""
    if isinstance(value, OverTensor):
        return value.tensor
    if isinstance(value, KnownArray):
        return constant_tensor(ctx, value.array)
    raise Break(NUMPY, f"an operation on {value.describe()}")


def matrix_product(ctx: CaptureContext, left: Value, right: Value, function: Any = torch.matmul) -> Value:
    """Evaluate a product of arrays of one or two dimensions."""
    demand_quiet_errors(ctx)
    dtype = numpy.result_type(*(numpy.dtype(dtype_or_kind(value)) for value in (left, right)))
    if dtype.kind != "f":
        raise Break(NUMPY, f"a matrix product in {dtype}")
    operands = [cast(ctx, tensor_of(ctx, value), dtype) for value in (left, right)]
    fakes: list[Any] = [value.fake for value in operands]  # type: ignore[attr-defined]  # tensors of the graph
    shapes = [tuple(fake.shape) for fake in fakes]
    if not all(1 <= len(shape) <= 2 and all(type(size) is int and size > 0 for size in shape) for shape in shapes):
        raise Break(NUMPY, "a matrix product of such shapes")
    if function is torch.matmul and shapes[0][-1] != shapes[1][0]:
        raise Break(NUMPY, "a matrix product of sizes that do not match")
    return finite_only(ctx, call(ctx, function, *operands))


def finite_only(ctx: CaptureContext, result: Value) -> Value:
    """Assume that a result is finite: where it is not, NumPy may warn of it."""
    if not ctx.graph.assume_no_warning(call(ctx, torch.isfinite, result)):
        raise Break(NUMPY, "a result that NumPy may warn of")
    return result


def cast(ctx: CaptureContext, tensor: Value, dtype: Any) -> Value:
    """Return a tensor in NumPy's dtype; the same where it has it."""
    wanted = torch_dtype(dtype)
    fake: Any = tensor.fake  # type: ignore[attr-defined]  # a tensor of the graph
    return tensor if fake.dtype == wanted else ctx.graph.call("call_method", "to", [tensor, ctx.known(wanted)], {})


def fold(ctx: CaptureContext, function: Any, array: OverTensor, args: Arguments, kwargs: Keywords) -> Value:
    """Evaluate a function that folds axes: args: behind the array."""
    row = FOLDS[function]
    settings = settings_of(ctx, args, kwargs)
    axis, keepdims, ddof = (settings.pop(name) for name in ("axis", "keepdims", "ddof"))
    fake = array.tensor.fake
    if settings or not all(type(size) is int and size > 0 for size in fake.shape):
        raise Break(NUMPY, f"{function.__name__} with settings of its own")
    demand_quiet_errors(ctx)
    axes = _axes(axis, fake.dim())
    dtype, given = _fold_dtypes(function, dtype_of(fake.dtype))
    if numpy.dtype(dtype).kind not in row.kinds:
        raise Break(NUMPY, f"{function.__name__} in {dtype}")
    operand = cast(ctx, array.tensor, dtype)
    if row.one_axis:
        return _along_one(ctx, row, operand, axis, given, keepdims=bool(keepdims))
    floats, sums = row.warns and numpy.dtype(dtype).kind == "f", function in (numpy.sum, numpy.mean)
    warnings = FloatWarnings(ctx, [operand], axes, keeps=sums) if floats else None
    extra = {"ddof": ddof} if function in (numpy.var, numpy.std) and ddof else {}
    if ddof and not extra:
        raise Break(NUMPY, f"{function.__name__} with settings of its own")
    result = call(ctx, row.run, operand, ctx.known(axes), Constant(bool(keepdims)), **extra)
    if warnings is not None:
        warnings.demand_none(result, keepdims=bool(keepdims))
    return cast(ctx, result, given)


def _along_one(ctx: CaptureContext, row: FoldRow, operand: Value, axis: object, given: Any, *, keepdims: bool) -> Value:
    if axis is None:
        operand, axis = ctx.graph.call("call_method", "reshape", [operand, Constant(-1)], {}), 0
        if keepdims:
            raise Break(NUMPY, "keepdims without an axis")
    warnings = FloatWarnings(ctx, [operand], ()) if row.warns and numpy.dtype(given).kind == "f" else None
    result = call(ctx, row.run, operand, ctx.known(axis), Constant(keepdims))
    if warnings is not None:
        warnings.demand_none(result)
    return cast(ctx, result, given)


def settings_of(ctx: CaptureContext, args: Arguments, kwargs: Keywords) -> dict[str, Any]:
    """Return the settings of a fold by name; args: the axis, if anything."""
    if len(args) > 1:
        raise Break(NUMPY, "settings by position")
    found: dict[str, Any] = {"axis": None, "keepdims": False, "ddof": 0}
    for name, value in (*(("axis", arg) for arg in args), *kwargs.items()):
        known = ctx.realize(value)
        if not known.is_constant():
            raise Break(NUMPY, f"{name} that is not known")
        found[name] = known.constant()
    return found


def _axes(axis: object, count: int) -> tuple[int, ...]:
    axes = tuple(range(count)) if axis is None else axis if isinstance(axis, tuple) else (axis,)
    numbers = [number for number in axes if type(number) is int and -count <= number < count]
    if len(numbers) != len(axes) or len({number % count for number in numbers}) != len(axes):
        raise Break(NUMPY, f"axis {axis}")
    return tuple(number % count for number in numbers)


def _fold_dtypes(function: Any, dtype: Any) -> tuple[Any, Any]:
    """Return the dtype that a fold computes in, and what it gives: NumPy's own, asked of one element."""
    given = function(numpy.ones(1, dtype)).dtype
    of_floats = dtype.kind == "f" or function not in (numpy.mean, numpy.var, numpy.std)
    if function in (numpy.sum, numpy.prod, numpy.cumsum, numpy.cumprod) or not of_floats:
        return given, given
    return dtype, given
