"""Calls that eager refuses for their dtypes or sizes although the shape rule of fake tensors lets them pass.

`mask.mul_(3)` and `counts.hypot(counts)` are of that kind. Of elementwise operators the kernel itself is asked, with
one element, once per combination of dtypes and numbers; of some others with the few elements that `_PROBES` says. What
operators demand of sizes is a table, `_DEMANDS`.  The error then stands where the program made the call.
"""

import math
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from functools import cache, lru_cache
from typing import Any

import torch

from ...base.torch_facts import FakeTensor, OpOverload, without_dispatch_modes
from ..facts import is_elementwise, op_facts
from .filling_numbers import demand_fitting_numbers, puts_numbers

_Key = tuple[object, ...]
_UNTAGGED = frozenset({"aten::floor_divide_"})  # elementwise, and no overload is tagged so
_NOT_ASKED = frozenset({"aten::addcdiv", "aten::addcdiv_"})  # divides truth values, which ends the process


@cache
def has_kernels_to_ask(operator: OpOverload) -> bool:
    """Return whether `demand_kernel` has an answer: the operator is elementwise, also in place, or in the table."""
    name = operator._schema.name
    if name in _DEMANDS or name in _PROBES or puts_numbers(operator):
        return True
    return _has_kernels(operator) or _is_pointwise_in_place(operator)


@cache
def _has_kernels(operator: OpOverload) -> bool:
    return is_elementwise(operator) and operator._schema.name not in _NOT_ASKED


def demand_kernel(operator: OpOverload, args: tuple[object, ...], kwargs: dict[str, object]) -> None:
    """Raise what eager raises if it has no kernel on CPU for arguments like these, as far as this is asked here."""
    demand = _DEMANDS.get(operator._schema.name)
    if demand is not None:
        demand(*args, **kwargs)
    elif _is_pointwise_in_place(operator):
        _demand_fit(*args)
    if puts_numbers(operator):
        demand_fitting_numbers(operator, args, kwargs)
        return
    if _has_kernels(operator) or _is_pointwise_in_place(operator):
        error = _refusal_of_numbers(operator, args, kwargs)
    elif operator._schema.name in _PROBES:
        error = _refusal_of_dtypes(operator, tuple(map(_dtype_on_cpu, args)))
    else:
        return
    if error is not None:
        raise type(error)(*error.args)


def _refusal_of_numbers(
    operator: OpOverload, args: tuple[object, ...], kwargs: dict[str, object]
) -> RuntimeError | None:
    keys = tuple([key for value in args if (key := _key(value)) is not None])
    named = tuple([(name, key) for name, value in kwargs.items() if (key := _key(value)) is not None]) if kwargs else ()
    if len(keys) < len(args) or len(named) < len(kwargs):
        return None
    for place, value in enumerate(args):
        if isinstance(value, torch.SymInt | torch.SymFloat):
            low, high = _numbers_taken(operator, keys, named, place)
            if low is not None and value < low:  # asked, it is a guard of the graph
                keys = _replaced(keys, place, 2 * low - 1)
            elif high is not None and value > high:
                keys = _replaced(keys, place, 2 * high + 1)
    return _refusal(operator, keys, named)


@lru_cache(maxsize=1024)
def _numbers_taken(
    operator: OpOverload, keys: tuple[_Key, ...], named: tuple[tuple[str, _Key], ...], place: int
) -> tuple[float | None, float | None]:
    """Return the least and the greatest number that a kernel takes in a place; None where it takes any.

    `masked_fill` takes none beyond the range of its tensor's dtype; most others compute with any number.
    """
    kind = int if keys[place][1] is int else float
    ladder = sorted({kind(limit) for limit in _LIMITS if kind is float or limit < 2**63})
    taken = [[n for n in ladder if not _refusal(operator, _replaced(keys, place, sign * n), named)] for sign in (-1, 1)]
    if not all(taken):
        return None, None  # it refuses such numbers whatever they are
    low, high = (None if len(some) == len(ladder) else max(some) for some in taken)
    return None if low is None else -low, high


def _replaced(keys: tuple[_Key, ...], place: int, number: float) -> tuple[_Key, ...]:
    return (*keys[:place], ("constant", type(number), number), *keys[place + 1 :])


@cache
def _is_pointwise_in_place(operator: OpOverload) -> bool:
    """Return whether a call changes its first argument elementwise; `lt_` itself has no tag that says so, `lt` has.

    Overloads of the two differ in name: that of `pow_.Tensor` is `pow.Tensor_Tensor`.
    """
    name = operator._schema.name
    packet = getattr(torch.ops.aten, name.removeprefix("aten::")[:-1], None)
    if op_facts(operator).mutates != (0,) or packet is None:
        return False
    overloads = [getattr(packet, overload) for overload in packet.overloads()]
    return name in _UNTAGGED or any(map(is_elementwise, overloads))


def _demand_elements(x: torch.Tensor, *_: object, **_named: object) -> None:
    """Raise what eager raises for statistics of a tensor without elements.

    The functional kernel that graphs call divides by zero, which ends the process.
    """
    if 0 in x.shape:
        raise RuntimeError(f"input tensor must have at least one element, but got {list(x.shape)}")


def _demand_elements_in_training(*args: Any, **named: object) -> None:
    args[0].size(1)  # the channels: torch raises where there is no such dimension
    if any(value is True for value in (*args, *named.values())):
        _demand_elements(*args)


def _demand_dense(x: torch.Tensor, *_: object, **_named: object) -> None:
    """Raise what eager raises for memory in no order that its kernel reads."""
    orders = [torch.contiguous_format]
    orders += [order for order, rank in ((torch.channels_last, 4), (torch.channels_last_3d, 5)) if rank == x.dim()]
    if not any(x.is_contiguous(memory_format=order) for order in orders):
        raise RuntimeError("Expected X.is_contiguous(memory_format) to be true, but got false")


def _demand_product(x: torch.Tensor, first: torch.Tensor, second: torch.Tensor, **_: object) -> None:
    """Raise what eager raises if an outer product is added in place to a tensor that has not its sizes."""
    product = (*first.shape, *second.shape)
    if tuple(x.shape) != product:
        raise RuntimeError(f"The input tensor must be a matrix with size {product}, but got {list(x.shape)}")


def _demand_inside_storage(
    x: torch.Tensor, size: Sequence[int], stride: Sequence[int], storage_offset: int | None = None, **_: object
) -> None:
    """Raise eager's error if a view would reach behind its storage, which sizes that vary decide; a fake one grows."""
    start = x.storage_offset() if storage_offset is None else storage_offset
    held = x.untyped_storage().nbytes()
    if any(n == 0 for n in size):
        return
    needed = (start + 1 + sum((n - 1) * step for n, step in zip(size, stride, strict=True))) * x.element_size()
    if needed > held:
        raise RuntimeError(f"as_strided requires a storage size of {needed}, out of bounds for storage of size {held}")


def _demand_a_size(x: object, normalized_shape: Sequence[int], *_: object, **_named: object) -> None:
    """Raise what eager raises for a norm over no dimension."""
    if not normalized_shape:
        what = "at least 1-dimensional, i.e., containing at least one element, but got normalized_shape = []"
        raise RuntimeError(f"Expected normalized_shape to be {what}")


def _demand_fit(*args: object) -> None:
    """Raise what eager raises if arguments do not broadcast to the tensor that the call changes."""
    shapes = [value.shape for value in args if isinstance(value, torch.Tensor)]
    for shape in shapes[1:]:
        pairs = zip(reversed(shapes[0]), reversed(shape), strict=False)
        if len(shape) > len(shapes[0]) or any(size != 1 and size != mine for mine, size in pairs):
            raise RuntimeError(f"output with shape {list(shapes[0])} doesn't match the broadcast shape")


def _demand_second_fits(x: object, second: object = None, *_: object, **_named: object) -> None:
    _demand_fit(x, second)


def _demand_dimension(x: torch.Tensor, dim: int = -1, *_: object, **_named: object) -> None:
    """Raise what eager raises for a dimension that is not there, which is not looked at before the kernel."""
    rank = max(x.dim(), 1)
    if not -rank <= dim < rank:
        reason = f"expected to be in range of [{-rank}, {rank - 1}], but got {dim}"
        raise IndexError(f"Dimension out of range ({reason})")


def _demand_dimensions_once(x: torch.Tensor, dim: int | Sequence[int] = (), **_: object) -> None:
    """Raise what eager raises for a dimension that is named twice; with open sizes they are looked at one by one."""
    rank = max(x.dim(), 1)
    named = [place % rank for place in dim if -rank <= place < rank] if isinstance(dim, Sequence) else []
    for place in named:
        if named.count(place) > 1:
            raise RuntimeError(f"dim {place} appears multiple times in the list of dims")


def _demand_kept_dimensions(x: torch.Tensor, dim: Sequence[int], keepdim: bool = False, **_: object) -> None:
    """Raise what eager raises for the logarithm of a sum over no dimension in particular: its parts differ in rank."""
    if not dim and x.dim() and not keepdim:
        raise RuntimeError(f"output with shape [] doesn't match the broadcast shape {[1] * x.dim()}")


def _demand_length(x: object, dimension: object, size: int, *_: object, **_named: object) -> None:
    """Raise what eager raises for windows of less than no elements."""
    if size < 0:
        raise RuntimeError(f"size is {size} but must be >= 0")


def _demand_boundaries(boundaries: torch.Tensor, values: object, *_: object, **_named: object) -> None:
    """Raise what eager raises for a search in one number, or for one number in rows of several dimensions."""
    if boundaries.dim() == 0:
        raise RuntimeError(
            "torch.searchsorted(): boundaries tensor should have positive dimension, but got 0 dimension"
        )
    alone = values.dim() == 0 if isinstance(values, torch.Tensor) else True
    if alone and boundaries.dim() != 1:
        raise RuntimeError("torch.searchsorted(): input value can be a scalar only when boundaries have one dimension")


def _demand_row_of_boundaries(values: object, boundaries: torch.Tensor, *_: object, **_named: object) -> None:
    if boundaries.dim() != 1:
        raise RuntimeError(f"boundaries tensor must be 1 dimension, but got dim({boundaries.dim()})")


def _demand_distance(_x: object, _target: object, _reduction: int = 1, beta: float = 1.0) -> None:
    if beta < 0:
        raise RuntimeError("smooth_l1_loss does not support negative values for beta.")


def _demand_a_counting_alpha(x: torch.Tensor, _other: object, alpha: float = 1) -> None:
    if type(alpha) is bool and x.dtype != torch.bool:  # which is refused for its dtype
        raise RuntimeError("Boolean alpha only supported for Boolean results.")


_DEMANDS: Mapping[str, Callable[..., None]] = {  # what an operator asks of its arguments, given as they are
    "aten::native_batch_norm": _demand_elements_in_training,
    "aten::_native_batch_norm_legit": _demand_elements_in_training,
    "aten::_batch_norm_with_update": _demand_elements,
    "aten::_batch_norm_with_update_functional": _demand_elements,
    "aten::native_group_norm": _demand_dense,
    "aten::native_layer_norm": _demand_a_size,
    "aten::addr_": _demand_product,
    "aten::as_strided": _demand_inside_storage,
    "aten::masked_scatter_": _demand_second_fits,
    "aten::bernoulli_": _demand_second_fits,
    "aten::_softmax": _demand_dimension,
    "aten::_log_softmax": _demand_dimension,
    "aten::sort": _demand_dimension,
    "aten::squeeze": _demand_dimensions_once,
    "aten::squeeze_": _demand_dimensions_once,
    "aten::logsumexp": _demand_kept_dimensions,
    "aten::unfold": _demand_length,
    "aten::searchsorted": _demand_boundaries,
    "aten::bucketize": _demand_row_of_boundaries,
    "aten::smooth_l1_loss": _demand_distance,
    "aten::rsub": _demand_a_counting_alpha,
}


_Make = Callable[..., torch.Tensor | None]  # position and sizes -> ones of the dtype that stands there
_PROBES: Mapping[str, Callable[[_Make], tuple[object, ...]]] = {  # arguments that a kernel takes for each of its dtypes
    "aten::binary_cross_entropy_with_logits": lambda ones: (ones(0, 1), ones(1, 1), ones(2, 1), ones(3, 1), 0),
    "aten::cumprod_": lambda ones: (ones(0, 2), 0),
    "aten::cumsum_": lambda ones: (ones(0, 2), 0),
    "aten::glu": lambda ones: (ones(0, 2), 0),
    "aten::huber_loss": lambda ones: (ones(0, 1), ones(1, 1)),
    "aten::im2col": lambda ones: (ones(0, 1, 2, 2), [1, 1], [1, 1], [0, 0], [1, 1]),
    "aten::mse_loss": lambda ones: (ones(0, 1), ones(1, 1)),
    "aten::native_group_norm": lambda ones: (ones(0, 1, 1, 2), ones(1, 1), ones(2, 1), 1, 1, 2, 1, 0.1),
    "aten::native_layer_norm": lambda ones: (ones(0, 2, 2), [2], ones(2, 2), ones(3, 2), 0.1),
    "aten::nll_loss2d_forward": lambda ones: (ones(0, 1, 2, 1, 1), ones(1, 1, 1, 1), ones(2, 2), 1, -100),
    "aten::nll_loss_forward": lambda ones: (ones(0, 1, 2), ones(1, 1), ones(2, 2), 1, -100),
    "aten::rsub": lambda ones: (ones(0, 1), ones(1, 1)),
    "aten::smooth_l1_loss": lambda ones: (ones(0, 1), ones(1, 1)),
    "aten::trace": lambda ones: (ones(0, 1, 1),),
}
_PLAIN = (torch.float32, torch.float64)


def _dtype_on_cpu(value: object) -> torch.dtype | None:
    if isinstance(value, FakeTensor) and value.fake_device.type == "cpu" and value.layout is torch.strided:
        return value.dtype
    return None


@lru_cache(maxsize=1024)
def _refusal_of_dtypes(operator: OpOverload, dtypes: tuple[torch.dtype | None, ...]) -> RuntimeError | None:
    if dtypes[0] is None or any(set(dtypes) <= {plain, None} for plain in _PLAIN):
        return None

    def ones(position: int, *sizes: int) -> torch.Tensor | None:
        dtype = dtypes[position] if position < len(dtypes) else None
        return None if dtype is None else torch.ones(sizes, dtype=dtype, device="cpu")

    with without_dispatch_modes(), torch.no_grad():
        try:
            operator(*_PROBES[operator._schema.name](ones))
        except RuntimeError as error:
            return error.with_traceback(None)
    return None


def _key(value: object) -> _Key | None:
    """Return what the kernel may ask of an argument beside elements and sizes; None if it is not asked."""
    if isinstance(value, FakeTensor):
        plain = value.fake_device.type == "cpu" and value.layout is torch.strided and not value.is_conj()
        return ("tensor", value.dtype, value.dim() == 0) if plain else None
    if isinstance(value, torch.SymInt | torch.SymFloat):  # its kind decides; what it is differs from call to call
        return ("constant", float, 1.5) if isinstance(value, torch.SymFloat) else ("constant", int, 1)
    if type(value) in (int, float) and math.isfinite(value):  # type: ignore[arg-type]  # a number
        return ("constant", type(value), _like(value))  # type: ignore[arg-type]  # as above
    if isinstance(value, bool | int | float | complex | str | None | torch.dtype | torch.memory_format):
        return ("constant", type(value), value)
    return None


_WHOLE = (0, 1, 2, 127, 128, 129, 255, 256, 32767, 32768, 32769, 65504, 65505)
_FLOAT_LIMITS = [torch.finfo(dtype).max for dtype in (torch.float16, torch.bfloat16, torch.float32)]
_LIMITS = sorted(  # of the ranges of dtypes; and one below 1, which is not zero: negative ones may be refused
    {*_WHOLE, 1e-30, 2**31 - 1, 2**31, 2**31 + 1, 2**63 - 1, 2**63, *_FLOAT_LIMITS}
    | {math.nextafter(limit, math.inf) for limit in _FLOAT_LIMITS}
)


def _like(number: float) -> float:
    """Return a number that every kernel takes if it takes this one: of its type and sign, within the same limits."""
    limit = _LIMITS[bisect_right(_LIMITS, abs(number)) - 1]
    return type(number)(-limit if number < 0 else limit)


@lru_cache(maxsize=4096)
def _refusal(operator: OpOverload, args: tuple[_Key, ...], kwargs: tuple[tuple[str, _Key], ...]) -> RuntimeError | None:
    with without_dispatch_modes(), torch.no_grad():
        try:
            operator(*map(_probe, args), **{name: _probe(key) for name, key in kwargs})
        except RuntimeError as error:
            return error.with_traceback(None)
    return None


def _probe(key: _Key) -> object:
    kind, what, detail = key
    if kind == "constant":
        return detail
    assert isinstance(what, torch.dtype)
    return torch.ones(() if detail else (1,), dtype=what, device="cpu")
