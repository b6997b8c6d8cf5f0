"""Calls that put one number into tensors: eager refuses a number that the dtype does not hold, fake tensors take it.

`torch.full((2,), 70000, dtype=torch.float16)` raises; an infinity would be another answer. The kernels themselves are
asked, once per number, dtype and count: one element of half precision is filled by another one, which refuses nothing.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache

import torch

from ...base.torch_facts import OpOverload, without_dispatch_modes

_Number = int | float | complex
_Ask = Callable[[int, torch.dtype, _Number], object]  # elements (two stand for more), dtype and number


def _scatter(count: int, dtype: torch.dtype, number: _Number) -> object:
    return torch.zeros(2, dtype=dtype, device="cpu").scatter_(0, torch.tensor([0], device="cpu"), number)


def _fill(count: int, dtype: torch.dtype, number: _Number) -> object:
    return torch.empty(count, dtype=dtype, device="cpu").fill_(number)


_NUMBERS: Mapping[str, tuple[str, _Ask]] = {  # the argument that is the number, and what asks the kernel
    "aten::full": ("fill_value", _fill),
    "aten::full_like": ("fill_value", _fill),
    "aten::new_full": ("fill_value", _fill),
    "aten::scalar_tensor": ("s", _fill),
    "aten::fill": ("value", _fill),
    "aten::fill_": ("value", _fill),
    "aten::constant_pad_nd": ("value", _fill),
    "aten::scatter": ("value", _scatter),
    "aten::scatter_": ("value", _scatter),
}
_RANGES = frozenset({"aten::linspace", "aten::logspace", "aten::arange"})  # for their dtypes; and `end` must fit


@lru_cache(maxsize=1024)
def puts_numbers(operator: OpOverload) -> bool:
    """Return whether `demand_fitting_numbers` has an answer."""
    name = operator._schema.name
    number = _NUMBERS.get(name)
    return name in _RANGES or (number is not None and _number_type(operator, number[0]))


def demand_fitting_numbers(operator: OpOverload, args: Sequence[object], kwargs: Mapping[str, object]) -> None:
    """Raise what eager raises for a number that a dtype does not hold; one that varies is compared with its limits."""
    named = dict(zip((argument.name for argument in operator._schema.arguments), args, strict=False)) | dict(kwargs)
    name, dtype = operator._schema.name, _dtype_of(named)
    if _is_meta(named):
        return
    if name in _RANGES:
        dtype = dtype or torch.get_default_dtype()
        ends = [_known(named.get(end, 0), dtype, name) for end in ("start", "end")]
        error = _refusal_of_range(name.removeprefix("aten::"), dtype, *ends)
    else:
        argument, ask = _NUMBERS[name]
        number = named.get(argument, 0)
        dtype = dtype or _inferred(number)
        number = _beyond_limits(number, dtype)
        error = None
        if isinstance(number, int | float | complex):
            error = _refusal(ask, _count(name, named), dtype, str(type(number)), number)
    if error is not None:
        raise type(error)(*error.args)


def _number_type(operator: OpOverload, name: str) -> bool:
    return any(item.name == name and "number" in str(item.type).lower() for item in operator._schema.arguments)


def _dtype_of(named: Mapping[str, object]) -> torch.dtype | None:
    dtype, tensor = named.get("dtype"), named.get("self")
    if isinstance(dtype, torch.dtype):
        return dtype
    return tensor.dtype if isinstance(tensor, torch.Tensor) else None


def _is_meta(named: Mapping[str, object]) -> bool:
    """Return whether there is no kernel: tensors that a program makes on the device `meta`."""
    device, tensor = named.get("device"), named.get("self")
    if device is None and isinstance(tensor, torch.Tensor):
        device = tensor.device
    return isinstance(device, torch.device) and device.type == "meta"


def _inferred(number: object) -> torch.dtype:
    """Return the dtype that eager gives a new tensor of a number."""
    if isinstance(number, bool):
        return torch.bool
    if isinstance(number, int | torch.SymInt):
        return torch.int64
    return torch.get_default_dtype().to_complex() if isinstance(number, complex) else torch.get_default_dtype()


def _count(name: str, named: Mapping[str, object]) -> int:
    """Return how many elements are filled, two for more."""
    tensor, sizes = named.get("self"), named.get("size")
    if name == "aten::scalar_tensor":
        return 1
    if not isinstance(sizes, Sequence):
        sizes = tensor.shape if isinstance(tensor, torch.Tensor) and name != "aten::constant_pad_nd" else (2,)
    if any(isinstance(size, int) and size == 0 for size in sizes):
        return 0
    return 1 if all(isinstance(size, int) and size == 1 for size in sizes) else 2


def _known(number: object, dtype: torch.dtype, name: str) -> _Number:
    """Return a number that stands for one of a range's ends; `arange` takes any, and tensors are not looked at."""
    number = 1 if name == "aten::arange" else _beyond_limits(number, dtype)
    return number if isinstance(number, int | float | complex) else 1


def _beyond_limits(number: object, dtype: torch.dtype) -> object:
    """Return for a number that varies one beyond the limits of a dtype if it is, else None; others as they are.

    Which of the two it is becomes a guard of the graph.
    """
    if not isinstance(number, torch.SymInt | torch.SymFloat):
        return number
    if dtype.is_complex or dtype == torch.bool:
        return None
    high = torch.finfo(dtype).max if dtype.is_floating_point else torch.iinfo(dtype).max
    low = -high if dtype.is_floating_point or dtype == torch.uint8 else torch.iinfo(dtype).min
    if dtype in (torch.float64, torch.int64) or low <= number <= high:
        return None
    return 2 * low if number < low else 2 * high


@lru_cache(maxsize=1024)
def _refusal(ask: _Ask, count: int, dtype: torch.dtype, kind: str, number: _Number) -> Exception | None:
    del kind  # 1 and True are one key without it
    with without_dispatch_modes(), torch.no_grad():
        try:
            ask(count, dtype, number)
        except (RuntimeError, TypeError) as error:
            return error.with_traceback(None)
    return None


@lru_cache(maxsize=1024)
def _refusal_of_range(name: str, dtype: torch.dtype, start: _Number, end: _Number) -> Exception | None:
    """Ask with two elements, for the dtype and for both ends; `arange` computes its own ones."""
    make: Callable[..., object] = getattr(torch, name)
    ends = (0, 1) if name == "arange" else (start, end, 2)
    with without_dispatch_modes(), torch.no_grad():
        try:
            make(*ends, dtype=dtype, device="cpu")
        except RuntimeError as error:
            return error.with_traceback(None)
    return None
