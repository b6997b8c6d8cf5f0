"""Triton kernels run on CPU tensors, by Triton's own interpreter: how their meaning is tested without a GPU.

Four things of the interpreter are replaced while a kernel runs.  libdevice has no meaning there, so its functions are
given by whoever asks (`meanings`).  A cast to bfloat16 truncates there and rounds on a GPU.  Its fused multiply-add
rounds twice.  A reduction or a scan by a function of one's own is a Python loop per element; here it is a tree, which
is also what a GPU does.  What it cannot show: races, layouts, shared memory, registers, and a mask that is missing but
stays inside the allocation.

The interpreter is a private part of Triton (3.9 tried); `available` says in words why it cannot be used.
"""

from __future__ import annotations

import importlib
import importlib.util
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy
import torch

from ..base.errors import InternalError, Unsupported
from ..base.locks import ForkedLock

Meaning = Callable[..., torch.Tensor]
_LOCK = ForkedLock()  # the interpreter patches triton.language for the whole process


def why_unavailable() -> str:
    """Return why kernels cannot be interpreted here, in words; empty where they can."""
    if importlib.util.find_spec("triton") is None:
        return "triton is not installed"
    try:
        interpreter = importlib.import_module("triton.runtime.interpreter")
    except ImportError as error:
        return f"triton cannot be imported: {error}"
    needed = ("_patch_lang", "_implicit_cvt", "interpreter_builder")
    missing = [name for name in needed if not hasattr(interpreter, name)]
    return f"this triton has no {missing[0]} in its interpreter" if missing else ""


@dataclass(frozen=True, slots=True)
class Pointer:
    """The address of an element, as an argument of a kernel."""

    address: int
    dtype: torch.dtype

    def data_ptr(self) -> int:
        """Return the address; Triton asks tensors by this name."""
        return self.address


class InterpretedKernels:
    """Runs the texts of kernels; meanings: of the functions of libdevice and of `fma`, on torch tensors by name."""

    def __init__(self, meanings: Mapping[str, Meaning]) -> None:
        """Import triton; raises Unsupported where it cannot be used."""
        if reason := why_unavailable():
            raise Unsupported(reason, hint="install triton to run kernels in its interpreter")
        self._language: Any = importlib.import_module("triton.language")
        self._interpreter: Any = importlib.import_module("triton.runtime.interpreter")
        self._meanings = meanings
        self._functions = lru_cache(maxsize=512)(self._function)

    def run(self, text: str, arguments: Sequence[Pointer | int], programs: int) -> None:
        """Run so many programs of a kernel, one after the other; text: library functions and a function `kernel`."""
        function = self._functions(text)
        builder = self._interpreter.interpreter_builder
        with _LOCK, self._patched(function), numpy.errstate(all="ignore"):
            given = [self._interpreter._implicit_cvt(each) for each in arguments]
            builder.set_grid_dim(programs, 1, 1)
            for program in range(programs):
                builder.set_grid_idx(program, 0, 0)
                function(*given)

    def _function(self, text: str) -> types.FunctionType:
        scope: dict[str, Any] = {
            "triton": types.SimpleNamespace(jit=lambda function: function),
            "tl": self._language,
            "libdevice": _Libdevice(self, self._meanings),
        }
        exec(compile(text, "<triton kernel>", "exec"), scope)
        kernel = scope["kernel"]
        if not isinstance(kernel, types.FunctionType):
            raise InternalError("the text defines no kernel", hint="report the graph")
        return kernel

    @contextmanager
    def _patched(self, function: types.FunctionType) -> Iterator[None]:
        builder = self._interpreter.interpreter_builder
        scope = self._interpreter._patch_lang(function)
        options = builder.options
        own = {"cast_impl": self._cast, "create_fp_to_fp": self._convert, "create_fma": self._fused}
        try:
            for name, replacement in own.items():
                setattr(builder, name, replacement)
            # a number is an array of one element there, which NumPy of 2.5 converts by this call alone
            scope.set_attr(self._language.tensor, "__index__", lambda number: int(number.handle.data.item()))
            scope.set_attr(self._language, "reduce", self._reduce)
            scope.set_attr(self._language, "associative_scan", self._scan)
            builder.options = replace(options, sanitize_overflow=False)  # whole numbers wrap, as compiled
            yield
        finally:
            for name in own:
                delattr(builder, name)
            builder.options = options
            scope.restore()

    # -- what is replaced ----------------------------------------------------------------------------------------------

    def tensor_of(self, data: numpy.ndarray[Any, Any], dtype: Any) -> Any:
        """Return an array as a value of the interpreter."""
        handle = self._interpreter.TensorHandle(data, dtype)
        return self._language.tensor(handle, self._language.block_type(dtype, list(data.shape)))

    def _cast(self, source: Any, target: Any) -> Any:
        kind = target.scalar
        values = _to_torch(source.data, source.dtype.scalar.name).to(_TORCH[kind.name])
        return self._interpreter.TensorHandle(_to_numpy(values), kind)

    def _convert(self, source: Any, target: Any, rounding: object) -> Any:
        del rounding  # to nearest even, as everywhere
        return self._cast(source, target)

    def _fused(self, *handles: Any) -> Any:
        kind = handles[0].dtype.scalar
        values = [_to_torch(handle.data, kind.name) for handle in handles]
        return self._interpreter.TensorHandle(_to_numpy(self._meanings["fma"](*values)), kind)

    def _reduce(self, values: Any, axis: int, combine: Callable[..., Any], keep_dims: bool = False) -> Any:
        """Combine the halves of an axis, whose length is a power of two, until one place is left."""
        single = not isinstance(values, tuple)
        tiles = (values,) if single else values
        kinds = [tile.dtype for tile in tiles]
        data = [tile.handle.data for tile in tiles]
        while data[0].shape[axis] > 1:
            halves = [numpy.split(each, 2, axis) for each in data]
            first = [self.tensor_of(half[0], kind) for half, kind in zip(halves, kinds, strict=True)]
            second = [self.tensor_of(half[1], kind) for half, kind in zip(halves, kinds, strict=True)]
            combined = combine(*first, *second)
            data = [each.handle.data for each in ((combined,) if single else combined)]
        results = [
            self.tensor_of(each if keep_dims else each.squeeze(axis), kind)
            for each, kind in zip(data, kinds, strict=True)
        ]
        return results[0] if single else tuple(results)

    def _scan(self, values: Any, axis: int, combine: Callable[..., Any]) -> Any:
        """Combine each place with those a power of two before it, until every place has all before it."""
        kind, data, step = values.dtype, values.handle.data, 1
        places = numpy.arange(data.shape[axis]).reshape([-1 if n == axis else 1 for n in range(data.ndim)])
        while step < data.shape[axis]:
            before = numpy.roll(data, step, axis)
            combined = combine(self.tensor_of(before, kind), self.tensor_of(data, kind)).handle.data
            data, step = numpy.where(places < step, data, combined), 2 * step
        return self.tensor_of(data, kind)


class _Libdevice:
    """Stands for the module `libdevice` in the text of a kernel."""

    def __init__(self, kernels: InterpretedKernels, meanings: Mapping[str, Meaning]) -> None:
        self._kernels = kernels
        self._meanings = meanings

    def __getattr__(self, name: str) -> Callable[..., Any]:
        meaning = self._meanings[name]

        def call(*tiles: Any) -> Any:
            kind = tiles[0].dtype
            arrays = numpy.broadcast_arrays(*(tile.handle.data for tile in tiles))
            result = meaning(*(_to_torch(array, kind.name) for array in arrays))
            return self._kernels.tensor_of(_to_numpy(result), kind)

        return call


_TORCH: dict[str, torch.dtype] = {
    "fp64": torch.float64,
    "fp32": torch.float32,
    "fp16": torch.float16,
    "bf16": torch.bfloat16,
    "int64": torch.int64,
    "int32": torch.int32,
    "int16": torch.int16,
    "int8": torch.int8,
    "uint8": torch.uint8,
    "int1": torch.bool,
}


def _to_torch(data: numpy.ndarray[Any, Any], kind: str) -> torch.Tensor:
    """Return an array of the interpreter as a tensor; it keeps bfloat16 as bit patterns."""
    array = numpy.ascontiguousarray(data).reshape(data.shape)
    if not array.flags.writeable:
        array = array.copy()
    if kind == "bf16":
        return torch.from_numpy(array.view(numpy.int16)).view(torch.bfloat16)
    return torch.from_numpy(array)


def _to_numpy(values: torch.Tensor) -> numpy.ndarray[Any, Any]:
    values = values.contiguous()
    if values.dtype == torch.bfloat16:
        array: numpy.ndarray[Any, Any] = values.view(torch.int16).numpy().view(numpy.uint16)
        return array
    return values.numpy()
