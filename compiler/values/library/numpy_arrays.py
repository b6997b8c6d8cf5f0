"""Arrays and numbers of NumPy's over tensors of the graph: what Python does with them."""

import math
from dataclasses import dataclass
from typing import Any

import numpy
import torch

from ..constant import Constant
from ..guard import GuardKind
from ..operator_table import Unary
from ..python.containers.sequences import SequenceValue
from ..python.containers.tuples import TupleValue
from ..python.objects.instances import OpaqueValue
from ..reasons import NUMPY
from ..rule_tables import wraps_type
from ..source import Inject, Injected, Source
from ..torch.tensor import TensorValue
from ..type_attributes import type_attribute
from ..value import Arguments, CaptureContext, Keywords, Rebuilder, Value
from .numpy_operations import UFUNC_OF, cast, elementwise, fold, matrix_product
from .numpy_rows import METHODS
from .numpy_values import (
    DTYPES,
    FLOATS,
    INDEX_DTYPES,
    ArrayValue,
    KnownArray,
    NumpyScalar,
    OverTensor,
    demand_quiet_errors,
    dtype_of,
    known_value,
)
from .numpy_warnings import FloatWarnings


def memory_of(array: Any) -> torch.Tensor:
    """Return the tensor over the memory of an array; raises ValueError for one that torch would warn of."""
    if not array.flags.writeable:
        raise ValueError("a read-only array")
    return torch.from_numpy(array)


@dataclass(frozen=True, slots=True)
class ArrayMemory(Source):
    """The tensor over the memory of an array: `memory_of(of)`."""

    of: Source

    def base(self) -> Source:
        """Return the array."""
        return self.of

    def text(self, base: str, inject: Inject) -> str:
        """Return `memory_of(base)`."""
        return f"{inject(memory_of)}({base})"


class TensorArray(OverTensor):
    """An array over the memory of a tensor of the graph: an argument, or what NumPy made."""

    precedes_methods = True

    def __init__(self, tensor: TensorValue, source: Source | None = None, real: Any = None) -> None:
        self.tensor = tensor
        self.source = source
        self.real = real

    def python_type(self) -> type:
        """Return the array class."""
        return numpy.ndarray

    def describe(self) -> str:
        """Return dtype and shape."""
        dtype = str(self.tensor.fake.dtype).removeprefix("torch.")
        return f"array({dtype}{list(self.tensor.fake.shape)})"

    def identity(self) -> object:
        """Return the array if it comes from outside."""
        return self if self.real is None else self.real

    def operate(self, ctx: CaptureContext, function: Any, left: Value, right: Value, *, inplace: bool) -> Value:
        """Evaluate an operator by the tables of NumPy's functions."""
        left, right = ctx.realize(left), ctx.realize(right)
        ufunc = UFUNC_OF.get(function)
        if ufunc is None or not _are_numpys(left, right):
            self.unsupported("an operator", NUMPY)
        changes = inplace and type(left) is TensorArray
        if inplace and not changes and not isinstance(left, TensorNumber):
            self.unsupported("an operator", NUMPY)
        if ufunc is numpy.matmul:
            if changes:
                self.unsupported("an operator", NUMPY)
            return fresh(matrix_product(ctx, left, right))
        result = elementwise(ctx, ufunc, [left, right])
        if not changes:
            return fresh(result)
        assert isinstance(left, TensorArray)
        assert isinstance(result, TensorValue)
        old, new = left.tensor.fake, result.fake
        if old.dtype != new.dtype or tuple(old.shape) != tuple(new.shape):
            self.unsupported("an operator", NUMPY)
        ctx.graph.call("call_method", "copy_", [left.tensor, result], {})
        return left

    def unary(self, ctx: CaptureContext, record: Unary) -> Value | None:
        """Evaluate a unary operator."""
        ufunc = UFUNC_OF.get(record.function)
        return None if ufunc is None else fresh(elementwise(ctx, ufunc, [self]))

    def length(self, ctx: CaptureContext) -> Value:
        """Return the first size."""
        if not self.tensor.fake.dim():
            ctx.throw(TypeError, "len() of unsized object")
        return self.tensor.length(ctx)

    def index_tensor(self, ctx: CaptureContext, *, alone: bool) -> Value:
        """Return the tensor: torch reads positions as int64, and copies what it reads."""
        fake = self.tensor.fake
        if fake.dtype not in INDEX_DTYPES or not fake.dim() or (alone and fake.dim() > 1):
            return self
        if fake.dtype in (torch.bool, torch.int64):
            return self.tensor
        return ctx.graph.call("call_method", "to", [self.tensor, ctx.known(torch.int64)], {})

    def get_item(self, ctx: CaptureContext, key: Value) -> Value:
        """Give the view of a row or a range; one element is a number, rows by a list are a copy."""
        key = ctx.realize(key)
        if not _is_basic(key):
            return TensorArray(self._rows(ctx, key))
        found = self.tensor.get_item(ctx, key)
        if isinstance(found, TensorValue) and found.fake.dim() == 0 and not _has_dots(key):
            return TensorNumber(_tensor(ctx.graph.call("call_method", "clone", [found], {})))
        return self.over(found)

    def _rows(self, ctx: CaptureContext, key: Value) -> TensorValue:
        """Return the rows that a list of known numbers names."""
        size = self.tensor.fake.shape[0] if self.tensor.fake.dim() else 0
        numbers: list[int] = []
        if isinstance(key, KnownArray) and key.array.ndim == 1 and key.array.dtype.kind in "iu":
            numbers = key.array.tolist()
        elif isinstance(key, SequenceValue) and not isinstance(key, TupleValue):
            items = [ctx.realize(item) for item in key.elements(ctx)]
            numbers = [v.value for v in items if isinstance(v, Constant) and type(v.value) is int]
            numbers = numbers if len(numbers) == len(items) else []
        if not numbers or type(size) is not int or not all(-size <= number < size for number in numbers):
            self.unsupported("subscript", NUMPY)
        index = ctx.graph.call("call_function", torch.tensor, [ctx.known([number % size for number in numbers])], {})
        return _tensor(ctx.graph.call("call_function", torch.index_select, [self.tensor, Constant(0), index], {}))

    def set_item(self, ctx: CaptureContext, key: Value, value: Value) -> None:
        """Write a number, or an array of the same dtype, into floating-point rows."""
        value = ctx.realize(value)
        dtype = self.tensor.fake.dtype
        number = isinstance(value, Constant) and type(value.value) in (int, float)
        alike = isinstance(value, TensorArray) and value.tensor.fake.dtype == dtype
        if not _is_basic(key) or not (number or alike) or dtype not in FLOATS:
            self.unsupported("item assignment", NUMPY)
        self.tensor.set_item(ctx, key, value.tensor if isinstance(value, TensorArray) else value)

    def get_attr(self, ctx: CaptureContext, name: str) -> Value:
        """Give what can be said without the elements."""
        fake = self.tensor.fake
        if name == "shape":
            return ctx.known(tuple(fake.shape))
        if name in ("ndim", "size", "itemsize", "nbytes"):
            size = math.prod(fake.shape)  # which may be open
            amount = {"ndim": fake.dim(), "size": size, "itemsize": fake.itemsize, "nbytes": size * fake.itemsize}
            return ctx.known(amount[name])
        if name == "dtype":
            return ctx.known(dtype_of(fake.dtype))
        if name == "T":
            return self.viewed(ctx, "permute", *map(ctx.known, reversed(range(fake.dim()))))
        return type_attribute(ctx, self, name)

    def over(self, value: Value) -> "TensorArray":
        """Return the array over another tensor, without dimensions too."""
        return TensorArray(_tensor(value))

    def viewed(self, ctx: CaptureContext, method: str, *args: Value) -> "TensorArray":
        """Return the array over a view of the tensor."""
        return self.over(ctx.graph.call("call_method", method, [self.tensor, *args], {}))

    def call_method(self, ctx: CaptureContext, name: str, args: Arguments, kwargs: Keywords) -> Value:
        """Evaluate methods that have a row, and those that only move elements."""
        if name in METHODS and not isinstance(self, TensorNumber):
            return fresh(fold(ctx, METHODS[name], self, args, kwargs))
        if name == "astype" and not kwargs and len(args) == 1:
            return self._as_type(ctx, ctx.realize(args[0]))
        if name in ("copy", "flatten") and not args and not kwargs and self.tensor.fake.is_contiguous():
            copied = TensorArray(_tensor(ctx.graph.call("call_method", "clone", [self.tensor], {})))
            return copied if name == "copy" else copied.viewed(ctx, "reshape", Constant(-1))
        if name in ("reshape", "ravel") and not kwargs and self.tensor.fake.is_contiguous():
            return self.viewed(ctx, "reshape", *(args if name == "reshape" else [Constant(-1)]))
        if name in ("transpose", "swapaxes") and not kwargs:
            return self.moved(ctx, name, [ctx.realize(arg) for arg in args])
        if name == "dot" and len(args) == 1 and not kwargs:
            return fresh(matrix_product(ctx, self, ctx.realize(args[0])))
        self.unsupported(f"method {name!r}", NUMPY)

    def moved(self, ctx: CaptureContext, name: str, args: list[Value]) -> "TensorArray":
        """Return the array with its axes in another order."""
        count = self.tensor.fake.dim()
        if len(args) == 1 and isinstance(args[0], TupleValue):
            args = [ctx.realize(item) for item in args[0].items]
        numbers = [arg.value for arg in args if isinstance(arg, Constant) and type(arg.value) is int]
        if len(numbers) != len(args) or len(numbers) != (2 if name == "swapaxes" else len(numbers) and count):
            self.unsupported(f"method {name!r}", NUMPY)
        if name == "swapaxes":
            return self.viewed(ctx, "transpose", *args)
        return self.viewed(ctx, "permute", *map(ctx.known, numbers or reversed(range(count))))

    def _as_type(self, ctx: CaptureContext, wanted: Value) -> "TensorArray":
        """Return a copy in another dtype; of floating-point numbers only in another such: others may not fit."""
        try:
            dtype = _dtype_named(wanted)
        except TypeError:
            self.unsupported("astype", NUMPY)
        source = dtype_of(self.tensor.fake.dtype)
        narrows = source.kind == "f" and (dtype.kind not in "fb" or dtype.itemsize < source.itemsize)
        if dtype.kind not in "fiub" or (narrows and dtype.kind != "f"):
            self.unsupported("astype", NUMPY)
        if narrows:
            demand_quiet_errors(ctx)
        warnings = FloatWarnings(ctx, [self.tensor]) if narrows else None
        same = source == dtype
        result = ctx.graph.call("call_method", "clone", [self.tensor], {}) if same else cast(ctx, self.tensor, dtype)
        if warnings is not None:
            warnings.demand_none(result)
        kind = TensorNumber if isinstance(self, TensorNumber) else TensorArray
        return kind(_tensor(result))

    def rebuild(self, out: Rebuilder) -> str:
        """Give the array over the tensor's memory; not where that would lose the tensor's history."""
        if self.tensor.fake.requires_grad and self.source is None:
            self.unsupported("leaving the graph, which would lose its gradients,", NUMPY)
        name = out.fresh()
        out.line(f"{name} = {out.value(self.tensor)}.detach().numpy()")
        return name


class TensorNumber(TensorArray):
    """A NumPy number over a tensor without dimensions: immutable, and a float where it is a float64."""

    def python_type(self) -> type:
        """Return the number's class."""
        kind: type = dtype_of(self.tensor.fake.dtype).type
        return kind

    def describe(self) -> str:
        """Return its class."""
        return f"{self.python_type().__name__} that is not known"

    def truth(self, ctx: CaptureContext) -> bool:
        """Evaluate bool: what the tensor says."""
        return self.tensor.truth(ctx)

    def get_item(self, ctx: CaptureContext, key: Value) -> Value:
        """Leave it to NumPy."""
        self.unsupported("subscript", NUMPY)

    def set_item(self, ctx: CaptureContext, key: Value, value: Value) -> None:
        """Leave it to NumPy, which refuses."""
        self.unsupported("item assignment", NUMPY)

    def rebuild(self, out: Rebuilder) -> str:
        """Give the number; not where that would lose the tensor's history."""
        if self.tensor.fake.requires_grad:
            self.unsupported("leaving the graph, which would lose its gradients,", NUMPY)
        name = out.fresh()
        out.line(f"{name} = {out.value(self.tensor)}.detach().numpy()[()]")
        return name


def fresh(tensor: Value) -> TensorArray:
    """Return what NumPy gives for a new tensor: without dimensions a number."""
    value = _tensor(tensor)
    return TensorArray(value) if value.fake.dim() else TensorNumber(value)


def _tensor(value: Value) -> TensorValue:
    assert isinstance(value, TensorValue)
    return value


def _dtype_named(wanted: Value) -> Any:
    name: Any = wanted.constant() if wanted.is_constant() else ""
    return numpy.dtype(name)


def _are_numpys(*operands: Value) -> bool:
    return all(isinstance(value, ArrayValue | NumpyScalar | Constant) for value in operands)


def _has_dots(key: Value) -> bool:
    items = key.items if isinstance(key, TupleValue) else [key]
    return any(isinstance(item, Constant) and item.value is Ellipsis for item in items)


def _is_basic(key: Value) -> bool:
    """Return whether an index is made of known numbers and forward slices: then it is a view in both worlds."""
    if isinstance(key, TupleValue):
        return all(map(_is_basic, key.items))
    if not isinstance(key, Constant):
        return False
    index = key.value
    is_range = isinstance(index, slice) and (index.step is None or (type(index.step) is int and index.step > 0))
    return type(index) is int or index is Ellipsis or index is None or is_range


@wraps_type(numpy.ndarray)
def _array(ctx: CaptureContext, value: object, source: Source) -> Value:
    """Take an argument as a tensor over its memory, where torch can have one."""
    assert isinstance(value, numpy.ndarray)
    if isinstance(source, Injected):
        return known_value(ctx, value)
    ctx.guards.add(source, GuardKind.TYPE, numpy.ndarray)
    fits = ctx.options.trace_numpy and value.dtype in DTYPES.values() and value.flags.writeable and value.dtype.isnative
    if not fits or any(step < 0 or step % value.itemsize for step in value.strides):
        return OpaqueValue(value, source)
    tensor = ctx.realize(ctx.wrap(memory_of(value), ArrayMemory(source)))
    assert isinstance(tensor, TensorValue)
    return TensorArray(tensor, source, value)
