"""How a CPU kernel lays out its result in memory, where torch's shape rules say another order of dimensions.

Kernels have repaired strides before they read them, but a program sees `stride()`, and lowered operations are laid out
by what the rule says. tests/meaning/test_shape_rules.py holds the table against the kernels.
"""

from collections.abc import Callable, Mapping, Sequence

import torch

from ..dynamic_sizes import is_symbolic

aten = torch.ops.aten
Layout = Callable[[torch.Tensor, Sequence[object]], torch.Tensor]  # result by torch's rule, arguments -> with strides


def _as_compared(result: torch.Tensor, args: Sequence[object]) -> torch.Tensor:
    """Follow both arguments as rules in C++ do; those in Python miss the order where dimensions are broadcast."""
    compared = aten.ne.Tensor(args[0], args[1])
    return torch.empty_like(compared, dtype=result.dtype) if compared.dim() == result.dim() else result


def _as_scaled(result: torch.Tensor, args: Sequence[object]) -> torch.Tensor:
    """The first argument meets a power of the second, which is row-major."""
    assert isinstance(args[1], torch.Tensor)
    return _as_compared(result, (args[0], _row_major(args[1], ())))


def _row_major(result: torch.Tensor, args: Sequence[object]) -> torch.Tensor:
    del args
    return torch.empty_like(result, memory_format=torch.contiguous_format)


def _as_first(result: torch.Tensor, args: Sequence[object]) -> torch.Tensor:
    assert isinstance(args[0], torch.Tensor)
    return torch.empty_like(args[0], dtype=result.dtype)


def _channels_last_or_row_major(result: torch.Tensor, args: Sequence[object]) -> torch.Tensor:
    """Follow the first argument where its channels are last; any other order is lost."""
    first = args[0]
    if not isinstance(first, torch.Tensor) or result.dim() != first.dim() or any(map(is_symbolic, first.stride())):
        return result
    order = {4: torch.channels_last, 5: torch.channels_last_3d}.get(first.dim())
    if order is None or not _has_channels_last(first.shape, first.stride()):
        order = torch.contiguous_format
    return torch.empty_like(result, memory_format=order)


def _has_channels_last(shape: Sequence[int], strides: Sequence[int]) -> bool:
    """Return whether strides grow from the channels to the batch, as ATen decides: also where a size is 1."""
    if strides[1] == 0:
        return False
    least = 0
    for dimension in (1, *range(len(shape) - 1, 1, -1), 0):
        size, stride = shape[dimension], strides[dimension]
        if size == 0 or stride < least or (dimension == 0 and least == strides[1]):
            return False
        least = stride * max(size, 1)
    return True


LAYOUTS: Mapping[object, Layout] = {
    aten._batch_norm_no_update.default: _channels_last_or_row_major,
    aten._batch_norm_with_update.default: _channels_last_or_row_major,
    aten._batch_norm_with_update_functional.default: _channels_last_or_row_major,
    aten._native_batch_norm_legit.default: _channels_last_or_row_major,
    aten._native_batch_norm_legit.no_stats: _channels_last_or_row_major,
    aten._native_batch_norm_legit_functional.default: _channels_last_or_row_major,
    aten.native_batch_norm.default: _channels_last_or_row_major,
    aten.binary_cross_entropy.default: _as_compared,
    aten.channel_shuffle.default: _channels_last_or_row_major,
    aten.copysign.Tensor: _as_compared,
    aten.div.Tensor_mode: _as_compared,
    aten.floor_divide.default: _as_compared,
    aten.heaviside.default: _as_compared,
    aten.ldexp.Tensor: _as_scaled,
    aten.log_sigmoid_forward.default: _row_major,
    aten.logaddexp.default: _as_compared,
    aten.logaddexp2.default: _as_compared,
    aten.logical_and.default: _as_compared,
    aten.logical_or.default: _as_compared,
    aten.logical_xor.default: _as_compared,
    aten.max_unpool2d.default: _channels_last_or_row_major,
    aten.native_dropout_backward.default: _as_first,
    aten.normal.Tensor_Tensor: _row_major,
    aten.pow.Scalar: _row_major,
    aten.reflection_pad3d.default: _channels_last_or_row_major,
    aten.replication_pad3d.default: _channels_last_or_row_major,
    aten.special_xlog1py.default: _as_compared,
    aten.xlogy.Tensor: _as_compared,
}


def in_kernel_order(target: object, args: Sequence[object], result: object) -> object:
    """Return what a shape rule gave with the strides that the kernel gives; call it where fake tensors are made."""
    layout = LAYOUTS.get(target)
    if layout is None:
        return result
    if isinstance(result, tuple):
        return tuple(_laid_out(layout, part, args) for part in result)
    return _laid_out(layout, result, args)


def _laid_out(layout: Layout, result: object, args: Sequence[object]) -> object:
    if not isinstance(result, torch.Tensor) or result.device.type != "cpu":
        return result
    return layout(result, args)
