"""Elementwise calls that eager refuses for their dtypes although the shape rule of fake tensors lets them pass.

`mask.mul_(3)` and `counts.hypot(counts)` are of that kind. The kernel itself is asked, with one element, once per
combination of dtypes and numbers; its error then stands where the program made the call.
"""

import math
from bisect import bisect_right
from functools import cache, lru_cache

import torch

from ...base.torch_facts import FakeTensor, OpOverload, without_dispatch_modes
from ..facts import op_facts

_Key = tuple[object, ...]
# Eager refuses to normalise nothing; the functional kernel that graphs call divides by zero, which ends the process.
_BATCH_NORMS = frozenset({"aten::native_batch_norm", "aten::_native_batch_norm_legit"})
_NOT_ASKED = frozenset({"aten::addcdiv", "aten::addcdiv_"})  # divides truth values, which ends the process


@cache
def has_kernels_to_ask(operator: OpOverload) -> bool:
    """Return whether `demand_kernel` has an answer: the operator is elementwise, or changes a tensor elementwise."""
    return _has_kernels(operator) or _is_pointwise_in_place(operator)


@cache
def _has_kernels(operator: OpOverload) -> bool:
    return torch.Tag.pointwise in operator.tags and operator._schema.name not in _NOT_ASKED


def demand_kernel(operator: OpOverload, args: tuple[object, ...], kwargs: dict[str, object]) -> None:
    """Raise what eager raises if it has no elementwise kernel on CPU for arguments like these."""
    if operator._schema.name in _BATCH_NORMS:
        _demand_elements(args)
    if _is_pointwise_in_place(operator):
        _demand_fit(args)
    if not _has_kernels(operator):
        return
    keys = tuple([_key(value) for value in args])
    named = tuple([(name, _key(value)) for name, value in kwargs.items()]) if kwargs else ()
    if None in keys or any(key is None for _, key in named):
        return
    error = _refusal(operator, keys, named)
    if error is not None:
        raise type(error)(*error.args)


@cache
def _is_pointwise_in_place(operator: OpOverload) -> bool:
    """Return whether a call changes its first argument elementwise; `lt_` itself has no tag that says so, `lt` has."""
    packet = getattr(torch.ops.aten, operator._schema.name.removeprefix("aten::")[:-1], None)
    twin = getattr(packet, operator._schema.overload_name or "default", None)
    return op_facts(operator).mutates == (0,) and twin is not None and torch.Tag.pointwise in twin.tags


def _demand_elements(args: tuple[object, ...]) -> None:
    """Raise what eager raises for statistics, in training, of a tensor without elements."""
    if isinstance(args[0], torch.Tensor) and 0 in args[0].shape and any(value is True for value in args):
        raise RuntimeError(f"input tensor must have at least one element, but got {list(args[0].shape)}")


def _demand_fit(args: tuple[object, ...]) -> None:
    """Raise what eager raises if arguments do not broadcast to the tensor that the call changes."""
    shapes = [value.shape for value in args if isinstance(value, torch.Tensor)]
    for shape in shapes[1:]:
        pairs = zip(reversed(shapes[0]), reversed(shape), strict=False)
        if len(shape) > len(shapes[0]) or any(size != 1 and size != mine for mine, size in pairs):
            raise RuntimeError(f"output with shape {list(shapes[0])} doesn't match the broadcast shape")


def _key(value: object) -> _Key | None:
    """Return what the kernel may ask of an argument beside elements and sizes; None if it is not asked."""
    if isinstance(value, FakeTensor):
        plain = value.fake_device.type == "cpu" and value.layout is torch.strided and not value.is_conj()
        return ("tensor", value.dtype, value.dim() == 0) if plain else None
    if type(value) in (int, float) and math.isfinite(value):  # type: ignore[arg-type]  # a number
        return ("constant", type(value), _like(value))  # type: ignore[arg-type]  # as above
    if isinstance(value, bool | int | float | complex | str | None | torch.dtype | torch.memory_format):
        return ("constant", type(value), value)
    return None


_WHOLE = (0, 1, 2, 127, 128, 129, 255, 256, 32767, 32768, 32769, 65504, 65505)
_LIMITS = (*_WHOLE, 2**31 - 1, 2**31, 2**31 + 1, 2**63 - 1, 2**63)  # of the ranges of dtypes


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
