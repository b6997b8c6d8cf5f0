"""How a CPU kernel lays out its result in memory, where torch's shape rules say another order of dimensions.

Kernels have repaired strides before they read them, but a program sees `stride()`, and lowered operations are laid out
by what the rule says. tests/meaning/test_stride_rules.py holds the table against the kernels.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import reduce

import torch

from ...base import dense_order
from ..dynamic_sizes import is_symbolic, same_number
from .fourier_layout import lying_as_complex, lying_as_half, lying_as_whole
from .indexed_layout import dense_strides

aten = torch.ops.aten
_CHANNELS_LAST = {4: torch.channels_last, 5: torch.channels_last_3d}
_HALF = frozenset({torch.float16, torch.bfloat16})
Layout = Callable[[torch.Tensor, Sequence[object]], torch.Tensor]  # result by torch's rule, arguments -> with strides


def _as_operands(result: torch.Tensor, args: Sequence[object]) -> torch.Tensor:
    """Follow the operands as TensorIterator does; a number is an operand without dimensions."""
    numbers = any(isinstance(value, int | float | complex) for value in args)
    return _as_iterated(result, [value for value in args if isinstance(value, torch.Tensor)], numbers)


def _as_tensors(result: torch.Tensor, args: Sequence[object]) -> torch.Tensor:
    """Follow the operands, of which numbers are none; a call that reduces them says itself how its result lies."""
    return _as_iterated(result, [value for value in args if isinstance(value, torch.Tensor)], numbers=False)


def _as_iterated(result: torch.Tensor, tensors: Sequence[torch.Tensor], numbers: bool) -> torch.Tensor:
    shape = result.shape
    if any(tensor.dim() > len(shape) for tensor in tensors) or not shape:
        return result
    if _have_symbols((result, *tensors)):
        return _as_their_sum(result, tensors)
    if not result.numel():
        return result
    laid = [_converted(tensor, _common_dtype(result, tensors)) for tensor in tensors]
    alike = all(tensor.shape == shape for tensor in laid) and not numbers
    strides = _of_one_shape(shape, laid) if alike else None
    if strides is None:
        strides = dense_strides(tuple(shape), [_broadcast(tensor, shape) for tensor in laid])
    if strides == result.stride():
        return result
    return torch.empty_strided(shape, strides, dtype=result.dtype, device=result.device)


def _of_one_shape(shape: torch.Size, tensors: Sequence[torch.Tensor]) -> tuple[int, ...] | None:
    """Return the strides by the short way of TensorIterator for operands of one shape, None where it is not taken."""
    if all(tensor.is_contiguous() for tensor in tensors):
        return dense_order.dense_strides(shape, range(len(shape)))
    order = _CHANNELS_LAST.get(len(shape))
    if order is not None and all(tensor.is_contiguous(memory_format=order) for tensor in tensors):
        return dense_order.dense_strides(shape, (0, *range(2, len(shape)), 1))
    first = tensors[0].stride()
    return first if _is_dense(shape, first) and all(tensor.stride() == first for tensor in tensors) else None


def _is_dense(shape: Sequence[int], strides: Sequence[int]) -> bool:
    step = 1
    for stride, size in sorted((stride, size) for size, stride in zip(shape, strides, strict=True) if size > 1):
        if stride != step:
            return False
        step *= size
    return True


def _common_dtype(result: torch.Tensor, tensors: Sequence[torch.Tensor]) -> torch.dtype:
    """Return the dtype that operands are converted to: theirs together, or that of a result that is always a float."""
    common = reduce(torch.promote_types, (tensor.dtype for tensor in tensors))
    floats = result.dtype.is_floating_point or result.dtype.is_complex
    return result.dtype if floats and not common.is_floating_point and not common.is_complex else common


def _converted(tensor: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """Return a tensor that lies as an operand does when it is converted: kernels convert before they look."""
    return tensor if tensor.dtype == dtype else torch.empty_like(tensor, dtype=dtype)


def _have_symbols(tensors: Sequence[torch.Tensor]) -> bool:
    return any(is_symbolic(number) for tensor in tensors for number in (*tensor.shape, *tensor.stride()))


def _as_their_sum(result: torch.Tensor, tensors: Sequence[torch.Tensor]) -> torch.Tensor:
    """Follow two operands whose sizes are expressions: torch's rule for a sum of singles compares strides rightly."""
    if len(tensors) != 2:
        return result
    first, second = (
        torch.empty_strided(tensor.shape, tensor.stride(), dtype=torch.float32, device=tensor.device)
        for tensor in tensors
    )
    strides = torch.add(first, second).stride()
    return torch.empty_strided(result.shape, strides, dtype=result.dtype, device=result.device)


def _as_swapped_operands(result: torch.Tensor, args: Sequence[object]) -> torch.Tensor:
    return _as_operands(result, (args[1], args[0]))


def _into_one_like_the_first(result: torch.Tensor, args: Sequence[object]) -> torch.Tensor:
    """The kernel is given a result that lies like the first operand, if that has the right sizes."""
    first = args[0]
    assert isinstance(first, torch.Tensor)
    if first.shape != result.shape or _have_symbols((first,)) or not _is_dense(first.shape, first.stride()):
        return _as_first(result, args) if first.shape == result.shape else _as_tensors(result, args)
    return torch.empty_strided(first.shape, first.stride(), dtype=result.dtype, device=result.device)


def _broadcast(tensor: torch.Tensor, shape: Sequence[int]) -> tuple[int, ...]:
    """Return the strides of an operand over the dimensions of the result, 0 where it does not move."""
    missing = len(shape) - tensor.dim()
    own = zip(tensor.shape, tensor.stride(), shape[missing:], strict=True)
    return (*[0] * missing, *(0 if size == 1 and whole != 1 else stride for size, stride, whole in own))


def _as_scaled(result: torch.Tensor, args: Sequence[object]) -> torch.Tensor:
    """The first argument meets a power of the second, which is row-major except in half precision."""
    assert isinstance(args[1], torch.Tensor)
    return _as_operands(result, (args[0], args[1] if args[1].dtype in _HALF else _row_major(args[1], ())))


def _row_major(result: torch.Tensor, args: Sequence[object]) -> torch.Tensor:
    del args
    return torch.empty_like(result, memory_format=torch.contiguous_format)


def _row_major_of_complex(result: torch.Tensor, args: Sequence[object]) -> torch.Tensor:
    """The angles of complex numbers are made anew, those of real ones in the order of the operand."""
    assert isinstance(args[0], torch.Tensor)
    return _row_major(result, args) if args[0].is_complex() else result


def _as_first(result: torch.Tensor, args: Sequence[object]) -> torch.Tensor:
    assert isinstance(args[0], torch.Tensor)
    return torch.empty_like(args[0], dtype=result.dtype)


def _as_first_in_memory(result: torch.Tensor, args: Sequence[object]) -> torch.Tensor:
    """Take the strides of a first argument whose elements fill their memory, also those of dimensions of one place.

    torch's rules order dimensions and lose these; what they give tells whether the others leave no gaps.
    """
    first = args[0]
    if not isinstance(first, torch.Tensor) or first.dim() != result.dim():
        return result
    parts = list(zip(result.shape, first.shape, first.stride(), result.stride(), strict=True))
    if not all(same_number(size, own) for size, own, _, _ in parts):
        return result
    empty = any(_is_number(size, 0) for size in result.shape)
    if not empty and not all(same_number(own, given) for size, _, own, given in parts if not _is_number(size, 1)):
        return result
    return torch.empty_strided(result.shape, first.stride(), dtype=result.dtype, device=result.device)


def _is_number(size: object, number: int) -> bool:
    """Return whether a size is known to be this one; a symbol is not asked."""
    return type(size) is int and size == number


def _as_copied_first(result: torch.Tensor, args: Sequence[object]) -> torch.Tensor:
    """The kernel copies the first argument, in its order, and writes into the copy."""
    return _as_first_in_memory(_as_first(result, args), args)


def _dense_if_repeated(result: torch.Tensor, args: Sequence[object]) -> torch.Tensor:
    """A copy that a part is written into has the strides of the first argument, unless these repeat an element."""
    first = args[0]
    assert isinstance(first, torch.Tensor)
    pairs = zip(first.shape, first.stride(), strict=True)
    repeated = any(_is_number(step, 0) and not _is_number(size, 1) for size, step in pairs)
    return _as_first(result, args) if repeated else result


def _row_major_if_empty(result: torch.Tensor, args: Sequence[object]) -> torch.Tensor:
    """Kernels of reductions make a row-major tensor where there is nothing to reduce to."""
    return _row_major(result, args) if any(_is_number(size, 0) for size in result.shape) else result


def _channels_last_or_row_major(result: torch.Tensor, args: Sequence[object]) -> torch.Tensor:
    """Follow the first argument where its channels are last; any other order is lost."""
    first = args[0]
    if not isinstance(first, torch.Tensor) or result.dim() != first.dim() or any(map(is_symbolic, first.stride())):
        return result
    order = _CHANNELS_LAST.get(first.dim())
    if order is None or not _has_channels_last(first.shape, first.stride()):
        order = torch.contiguous_format
    return torch.empty_like(result, memory_format=order)


def _of_batch_norm(result: torch.Tensor, args: Sequence[object]) -> torch.Tensor:
    """Follow the first argument where its channels lie last, whatever the stride of a single image."""
    first = args[0]
    if isinstance(first, torch.Tensor) and not any(map(is_symbolic, (*first.shape, *first.stride()))):
        order = _CHANNELS_LAST.get(first.dim()) if result.dim() == first.dim() else None
        if order is not None and not first.is_contiguous() and first.is_contiguous(memory_format=order):
            return torch.empty_like(result, memory_format=order)
    return _channels_last_or_row_major(result, args)


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
    aten._batch_norm_no_update.default: _of_batch_norm,
    aten._batch_norm_with_update.default: _of_batch_norm,
    aten._batch_norm_with_update_functional.default: _of_batch_norm,
    aten._fft_c2c.default: lying_as_complex,
    aten._fft_c2r.default: lying_as_whole,
    aten._fft_r2c.default: lying_as_half,
    aten._native_batch_norm_legit.default: _of_batch_norm,
    aten._native_batch_norm_legit.no_stats: _of_batch_norm,
    aten._native_batch_norm_legit_functional.default: _of_batch_norm,
    aten.native_batch_norm.default: _of_batch_norm,
    aten.angle.default: _row_major_of_complex,
    aten.binary_cross_entropy.default: _into_one_like_the_first,
    aten.index_fill.int_Scalar: _as_copied_first,
    aten.index_fill.int_Tensor: _as_copied_first,
    aten.channel_shuffle.default: _channels_last_or_row_major,
    aten.complex.default: _as_operands,
    aten.copysign.Tensor: _as_operands,
    aten.diagonal_scatter.default: _dense_if_repeated,
    aten.div.Tensor_mode: _as_operands,
    aten.floor_divide.default: _as_operands,
    aten.fmod.Tensor: _as_operands,
    aten.heaviside.default: _as_operands,
    aten.huber_loss.default: _into_one_like_the_first,
    aten.isclose.default: _as_tensors,
    aten.isin.Tensor_Tensor: _row_major,
    aten.ldexp.Tensor: _as_scaled,
    aten.log_sigmoid_forward.default: _row_major,
    aten.logaddexp.default: _as_operands,
    aten.logaddexp2.default: _as_operands,
    aten.logical_and.default: _as_operands,
    aten.logical_or.default: _as_operands,
    aten.logical_xor.default: _as_operands,
    aten.max_unpool2d.default: _channels_last_or_row_major,
    aten.mse_loss.default: _as_tensors,
    aten.native_dropout_backward.default: _as_first,
    aten.nll_loss2d_forward.default: _row_major,
    aten.normal.Tensor_Tensor: _row_major,
    aten.polar.default: _as_operands,
    aten.pow.Scalar: _row_major,
    aten.reflection_pad2d.default: _channels_last_or_row_major,
    aten.reflection_pad3d.default: _channels_last_or_row_major,
    aten.replication_pad2d.default: _channels_last_or_row_major,
    aten.replication_pad3d.default: _channels_last_or_row_major,
    aten.remainder.Scalar_Tensor: _as_operands,
    aten.remainder.Tensor: _as_operands,
    aten.rrelu_with_noise.default: _row_major,
    aten.rsub.Tensor: _as_swapped_operands,
    aten.select_scatter.default: _dense_if_repeated,
    aten.sigmoid_backward.default: _as_operands,
    aten.slice_scatter.default: _dense_if_repeated,
    aten.smooth_l1_loss.default: _as_tensors,
    aten.special_xlog1py.default: _as_operands,
    aten.tanh_backward.default: _as_operands,
    aten.threshold_backward.default: _as_swapped_operands,
    aten.xlogy.Tensor: _as_operands,
}


# Where nothing else is asked for, their kernels keep the strides of a dense operand, whatever they are.
_KEEPING = frozenset(
    {getattr(aten, f"{name}_like").default for name in "empty zeros ones full rand randn randint".split()}
    | {getattr(aten, name).default for name in "clone flip hardtanh nan_to_num _prelu_kernel _to_copy sort".split()}
    | {getattr(aten, name).default for name in "index_put put".split()}
    | {aten.fill.Scalar, aten.fill.Tensor, aten.sort.stable, aten.randint_like.low_dtype, aten.frexp.Tensor}
)

_REDUCTIONS = frozenset(
    {getattr(aten, name).default for name in "amax amin logsumexp aminmax nansum".split()}
    | {getattr(aten, name).correction for name in "var std var_mean std_mean".split()}
    | {aten.sum.dim_IntList, aten.mean.dim, aten.prod.dim_int}
)

_BINARY = "add sub mul div eq ne lt le gt ge fmod remainder"
# Rules in Python convert halves first, which loses how an expanded operand lies.
_CONVERTED = frozenset(
    {getattr(aten, name).Tensor for name in _BINARY.split()}
    | {aten.pow.Tensor_Tensor}
    | {getattr(aten, name).default for name in "maximum minimum fmax fmin atan2 hypot igamma igammac".split()}
)

# Fake tensors take a shorter way, on which the stride of a dimension of size 1 is lost beside a number.
_SHORTENED = frozenset(getattr(aten, name).Tensor for name in ("add", "sub", "mul", "div"))


def layout_of(target: object, args: Sequence[object], kwargs: Mapping[str, object]) -> Layout | None:
    """Return how a kernel lays out its result, None where torch's shape rule says so."""
    if target in _KEEPING:
        return _as_first_in_memory if kwargs.get("memory_format") in (None, torch.preserve_format) else None
    layout = _row_major_if_empty if target in _REDUCTIONS else LAYOUTS.get(target)
    if layout is not None or target not in _CONVERTED:
        return layout
    tensors = [value for value in args if isinstance(value, torch.Tensor)]
    if target in _SHORTENED and len([tensor for tensor in tensors if tensor.dim()]) == 1:
        return None if _have_symbols(tensors) else _as_operands
    halves = any(tensor.dtype in _HALF for tensor in tensors)
    if not halves or len(tensors) < 2 or all(tensor.is_contiguous() for tensor in tensors):
        return None
    return _as_operands


def in_kernel_order(target: object, args: Sequence[object], kwargs: Mapping[str, object], result: object) -> object:
    """Return what a shape rule gave with the strides that the kernel gives; call it where fake tensors are made."""
    layout = layout_of(target, args, kwargs)
    if layout is None:
        return result
    if isinstance(result, tuple):
        return tuple(_laid_out(layout, part, args) for part in result)
    return _laid_out(layout, result, args)


def _laid_out(layout: Layout, result: object, args: Sequence[object]) -> object:
    if not isinstance(result, torch.Tensor) or result.device.type != "cpu":
        return result
    return layout(result, args)
