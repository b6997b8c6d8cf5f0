"""Calls into NumPy on known values, which are run now, and the ways between arrays and tensors."""

import functools
from collections.abc import Sequence
from typing import Any

import numpy
import torch

from ...base.errors import UserError
from ..constant import Constant
from ..python.containers.sequences import SequenceValue
from ..python.containers.tuples import TupleValue
from ..python.objects.classes import constructs
from ..python.size_calls import tensor_of_size
from ..reasons import NUMPY, Break
from ..rule_tables import CallRule, calls
from ..scalar import SizeValue
from ..torch.tensor import TensorValue, tensor_method
from ..value import Arguments, CaptureContext, Keywords, Value
from .numpy_array_functions import ARRAY_FUNCTIONS
from .numpy_arrays import TensorArray, TensorNumber, fresh
from .numpy_operations import elementwise, fold
from .numpy_rows import ELEMENTS, FOLDS
from .numpy_values import (
    SCALARS,
    KnownArray,
    NumpyScalar,
    OverTensor,
    dtype_of,
    fold_known,
)

# Functions whose result depends on their arguments alone and that leave these as they are.
_PURE = """
all allclose any arange argmax argmin argsort array array_equal asarray ascontiguousarray atleast_1d atleast_2d
average bincount broadcast_shapes broadcast_to ceil clip column_stack concatenate corrcoef cov cross cumprod cumsum
deg2rad diag diff dot einsum expand_dims eye fix flip floor full full_like geomspace hanning hamming histogram hstack
identity inner interp isclose isin isscalar kron linspace log1p logspace matmul max mean median meshgrid min moveaxis
nan_to_num nanmax nanmean nanmin nansum ndim nonzero ones ones_like outer pad percentile polyfit polyval prod ptp
quantile rad2deg ravel repeat reshape result_type roll rot90 round searchsorted setdiff1d shape sinc size sort split
squeeze stack std sum swapaxes take tensordot tile trace transpose trapezoid tri tril triu unique vander var vstack
where zeros zeros_like
""".split()


def _pure_functions() -> dict[int, object]:
    functions = [getattr(numpy, name) for name in _PURE if hasattr(numpy, name)]
    functions += [*ARRAY_FUNCTIONS, *FOLDS]
    functions += [value for value in vars(numpy).values() if isinstance(value, numpy.ufunc)]
    return {id(function): function for function in functions}


_FUNCTIONS = _pure_functions()


def numpy_function_rule(function: object) -> CallRule | None:
    """Give the rule of NumPy's pure functions and of its ufuncs."""
    if id(function) not in _FUNCTIONS:
        return None

    def rule(ctx: CaptureContext, args: Arguments, kwargs: Keywords) -> Value:
        values = [ctx.realize(arg) for arg in args]
        if function is numpy.asarray and len(values) == 1 and not kwargs and isinstance(values[0], TensorValue):
            return array_of(ctx, values[0])
        if any(isinstance(value, OverTensor) for value in _flat(ctx, values)):
            found = _on_arrays(ctx, function, values, kwargs)
            if found is not None:
                return found
        if kwargs.keys() & {"out", "where", "casting", "order", "subok"}:
            raise Break(NUMPY, f"{getattr(function, '__name__', '')} with settings of its own")
        return fold_known(ctx, function, values, kwargs)

    return rule


def _flat(ctx: CaptureContext, values: list[Value]) -> list[Value]:
    """Return values and what lists among them hold."""
    parts = [v.elements(ctx) if isinstance(v, SequenceValue) else [v] for v in values]
    return [ctx.realize(value) for part in parts for value in part]


def _on_arrays(ctx: CaptureContext, function: Any, values: list[Value], kwargs: Keywords) -> Value | None:
    """Evaluate a function of which an argument is over a tensor; None where it has no row."""
    if function in ELEMENTS and not kwargs:
        return fresh(elementwise(ctx, function, values))
    first = values[0]
    if function in FOLDS and isinstance(first, TensorArray) and not isinstance(first, TensorNumber):
        return fresh(fold(ctx, function, first, values[1:], kwargs))
    rule = ARRAY_FUNCTIONS.get(function)
    return None if rule is None else rule(ctx, values, kwargs)


@constructs(*SCALARS, numpy.finfo, numpy.iinfo)
def _make_scalar(ctx: CaptureContext, kind: type, args: Arguments, kwargs: Keywords) -> Value:
    return fold_known(ctx, kind, args, kwargs)


def array_of(ctx: CaptureContext, tensor: TensorValue) -> Value:
    """Return the array over a tensor's memory; Break where eager refuses or copies."""
    fake = tensor.fake
    if fake.requires_grad or fake.is_conj() or fake.is_neg() or fake.device.type != "cpu":
        raise Break(NUMPY, f"the array of {tensor.describe()}")
    dtype_of(fake.dtype)
    return TensorArray(tensor)


@tensor_method("numpy")
def _numpy(ctx: CaptureContext, tensor: TensorValue, args: Arguments, kwargs: Keywords) -> Value | None:
    return None if args or kwargs else array_of(ctx, tensor)


def array_of_tensor(tensor: torch.Tensor) -> Any:
    """Return the elements of a tensor as an array; raises UserError where gradients would be lost.

    In captured code it is the tensor itself, seen as an array: it stays where it is and keeps its history.
    """
    if tensor.requires_grad and torch.is_grad_enabled():
        hint = "compile it, with fullgraph=True: between two graphs NumPy runs, which knows no gradients"
        raise UserError("a function of NumPy arrays is asked for gradients while NumPy runs it", hint=hint)
    return tensor.detach().cpu().numpy()


@calls(array_of_tensor)
def _seen_as_array(ctx: CaptureContext, args: Arguments, kwargs: Keywords) -> Value:
    tensor = ctx.realize(args[0])
    if kwargs or not isinstance(tensor, TensorValue):
        raise Break(NUMPY, "a tensor that is not known")
    dtype_of(tensor.fake.dtype)
    return TensorArray(tensor)


def tensor_of_array(value: Any, device: torch.device | None) -> torch.Tensor:
    """Return a tensor with the elements of an array or number, on a device."""
    return torch.as_tensor(value, device=device)


@calls(tensor_of_array)
def _seen_as_tensor(ctx: CaptureContext, args: Arguments, kwargs: Keywords) -> Value:
    value = ctx.realize(args[0])
    if isinstance(value, OverTensor):
        return value.tensor
    return ctx.graph.call("call_function", torch.as_tensor, [value], {"device": args[1]}) if not kwargs else value


@calls(torch.from_numpy)
def _from_numpy(ctx: CaptureContext, args: Arguments, kwargs: Keywords) -> Value:
    return _shared(ctx, ctx.realize(args[0]))


def _shared(ctx: CaptureContext, value: Value) -> Value:
    """Return a new tensor over the memory of an array."""
    if isinstance(value, TensorArray):
        return ctx.graph.call("call_method", "detach", [value.tensor], {})
    if isinstance(value, KnownArray):
        return _constant_tensor(ctx, value, shared=True)
    raise Break(NUMPY, f"a tensor over {value.describe()}")


def _constant_tensor(ctx: CaptureContext, value: KnownArray, *, shared: bool) -> Value:
    """Make the tensor of a known array from its numbers. shared: in eager the array lies over the same memory."""
    array: Any = value.array
    dtype = _tensor_dtype(array.dtype)
    if not 0 < array.size <= 4096 or not array.flags.c_contiguous:
        raise Break(NUMPY, f"a tensor of {value.describe()}")
    if shared:
        value.memory.has_tensor = True
    numbers = ctx.known(array.tolist())
    return ctx.graph.call("call_function", torch.tensor, [numbers], {"dtype": ctx.known(dtype)})


_TENSOR_DTYPES = (
    torch.float32,
    torch.float64,
    torch.int64,
    torch.int32,
    torch.int16,
    torch.int8,
    torch.uint8,
    torch.bool,
    torch.float16,
    torch.complex64,
    torch.complex128,
)


def _making(function: object) -> CallRule:
    def rule(ctx: CaptureContext, args: Arguments, kwargs: Keywords) -> Value:
        if len(args) != 1:
            return ctx.graph.call("call_function", function, args, kwargs)
        return _tensor_from(ctx.realize(args[0]), ctx, function, kwargs)

    return rule


@functools.singledispatch
def _tensor_from(value: Value, ctx: CaptureContext, function: object, kwargs: Keywords) -> Value:
    """Evaluate `torch.tensor(value)` and the like, by the kind of value."""
    if "dtype" not in kwargs and _holds_numpy(ctx, value):
        raise Break(NUMPY, "a tensor of a list with NumPy numbers")
    return ctx.graph.call("call_function", function, [value], kwargs)


@_tensor_from.register(KnownArray)
@_tensor_from.register(TensorArray)
def _(value: KnownArray | TensorArray, ctx: CaptureContext, function: object, kwargs: Keywords) -> Value:
    return _from_array(ctx, value, kwargs, shared=function is torch.as_tensor)


@_tensor_from.register
def _(value: SizeValue, ctx: CaptureContext, function: object, kwargs: Keywords) -> Value:
    del function
    return tensor_of_size(ctx, value, kwargs)


@_tensor_from.register
def _(value: NumpyScalar, ctx: CaptureContext, function: object, kwargs: Keywords) -> Value:
    dtype = {} if "dtype" in kwargs else {"dtype": ctx.known(_tensor_dtype(value.value.dtype))}
    return ctx.graph.call("call_function", function, [value], {**kwargs, **dtype})


@_tensor_from.register
def _(value: SequenceValue, ctx: CaptureContext, function: object, kwargs: Keywords) -> Value:
    if "dtype" not in kwargs and _holds_numpy(ctx, value):
        raise Break(NUMPY, "a tensor of a list with NumPy numbers")
    if not kwargs and _are_numbers(ctx, value):
        parts = [ctx.graph.call("call_method", "detach", [part], {}) for part in value.elements(ctx)]
        return ctx.graph.call("call_function", torch.stack, [TupleValue(parts)], {})
    numbers = _plain_numbers(ctx, value) if kwargs.keys() <= {"dtype"} else None
    if numbers is not None and any(isinstance(number, SizeValue) for number in numbers):
        return _stacked(ctx, value, {"dtype": _dtype_of_numbers(ctx, numbers), **kwargs})
    return ctx.graph.call("call_function", function, [value], kwargs)


def _plain_numbers(ctx: CaptureContext, value: Value) -> list[SizeValue | Constant] | None:
    """Return the numbers of a nested list; None if it holds anything else, complex ones too, or is ragged or empty."""
    value = ctx.realize(value)
    if isinstance(value, SizeValue):
        return [value]
    if isinstance(value, Constant):
        return [value] if type(value.value) in (int, float, bool) else None
    items = value.elements(ctx) if isinstance(value, SequenceValue) else []
    if len({_shape_of_list(ctx, item) for item in items}) != 1:
        return None
    rows = [_plain_numbers(ctx, item) for item in items]
    return None if None in rows else [number for row in rows for number in row or ()]


def _shape_of_list(ctx: CaptureContext, value: Value) -> tuple[int, ...]:
    value = ctx.realize(value)
    items = value.elements(ctx) if isinstance(value, SequenceValue) else None
    return () if items is None else (len(items), *(_shape_of_list(ctx, items[0]) if items else ()))


def _dtype_of_numbers(ctx: CaptureContext, numbers: Sequence[SizeValue | Constant]) -> Value:
    kinds = {number.kind if isinstance(number, SizeValue) else type(number.value) for number in numbers}
    return ctx.known(torch.get_default_dtype() if float in kinds else torch.int64 if int in kinds else torch.bool)


def _stacked(ctx: CaptureContext, value: Value, kwargs: Keywords) -> Value:
    """Return the tensor of a nested list of numbers that vary: `torch.tensor` itself would fix each of them."""
    value = ctx.realize(value)
    if isinstance(value, SequenceValue):
        parts = [_stacked(ctx, item, kwargs) for item in value.elements(ctx)]
        return ctx.graph.call("call_function", torch.stack, [TupleValue(parts)], {})
    return ctx.graph.call("call_function", torch.full, [TupleValue([]), value], dict(kwargs))


calls(torch.tensor)(_making(torch.tensor))
calls(torch.as_tensor)(_making(torch.as_tensor))


def _from_array(ctx: CaptureContext, value: Value, kwargs: Keywords, *, shared: bool) -> Value:
    device = ctx.realize(kwargs.get("device", Constant(None)))
    if kwargs.keys() - {"dtype", "device"} or str(device.constant()) not in ("None", "cpu"):
        raise Break(NUMPY, f"a tensor of {value.describe()} with settings of its own")
    if isinstance(value, KnownArray):
        tensor = _constant_tensor(ctx, value, shared=shared and "dtype" not in kwargs)
    else:
        tensor = _shared(ctx, value)
        if not shared:
            tensor = ctx.graph.call("call_method", "clone", [tensor], {})
    return ctx.graph.call("call_method", "to", [tensor, kwargs["dtype"]], {}) if "dtype" in kwargs else tensor


def _tensor_dtype(dtype: Any) -> torch.dtype:
    tensor_dtype = next((ours for ours in _TENSOR_DTYPES if dtype_of(ours) == dtype), None)
    if tensor_dtype is None:
        raise Break(NUMPY, f"a tensor of {dtype}")
    return tensor_dtype


def _holds_numpy(ctx: CaptureContext, value: Value) -> bool:
    """Return whether a nested list holds NumPy objects, by which torch chooses the dtype."""
    if isinstance(value, SequenceValue):
        return any(_holds_numpy(ctx, item) for item in value.elements(ctx))
    return isinstance(value, NumpyScalar | KnownArray | TensorArray)


def _are_numbers(ctx: CaptureContext, value: SequenceValue) -> bool:
    """Return whether a list holds tensors of one number each, alike in dtype, on the CPU."""
    items = value.elements(ctx)
    fakes = [item.fake for item in items if isinstance(item, TensorValue)]
    looks = {(fake.dtype, fake.device.type, fake.dim()) for fake in fakes}
    return len(fakes) == len(items) > 0 and len(looks) == 1 and all(look[1:] == ("cpu", 0) for look in looks)


@tensor_method("new_tensor")
def _new_tensor(ctx: CaptureContext, tensor: TensorValue, args: Arguments, kwargs: Keywords) -> Value | None:
    if any(_holds_numpy(ctx, ctx.realize(arg)) for arg in args):
        raise Break(NUMPY, "new_tensor of NumPy objects")
    return None
