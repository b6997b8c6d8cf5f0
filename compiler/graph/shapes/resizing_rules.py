"""Images of other sizes: torch's rules for some of these calls take no symbols."""

from collections.abc import Sequence

import torch

from ...base.dense_order import dense_strides
from .fake_templates import Number, key_of
from .sized_call import Operand, SizedCall, Undecided, gives

aten = torch.ops.aten
_ROW_MAJOR = (0, 1, 2, 3)
_CHANNELS_LAST = (0, 2, 3, 1)


def _order(call: SizedCall, operand: Operand) -> tuple[int, ...]:
    """Return the order in memory of the dimensions of an image, which has two elements or more in each."""
    if len(operand.sizes) != 4 or any(call.least(size) < 2 for size in operand.sizes):
        raise Undecided
    for order in (_ROW_MAJOR, _CHANNELS_LAST):
        if operand.stride_key == key_of(dense_strides(operand.sizes, order)):
            return order
    raise Undecided


def _image(call: SizedCall, sizes: Sequence[Number], order: tuple[int, ...], like: Operand) -> torch.Tensor:
    if any(call.least(size) < 2 for size in sizes):
        raise Undecided
    templates, tensor = call.found.templates, like.tensor
    return templates.new(call.mode, sizes, dense_strides(sizes, order), tensor.dtype, tensor.device)


@gives(aten.upsample_bicubic2d.default, aten._upsample_bilinear2d_aa.default, aten._upsample_bicubic2d_aa.default)
def resized(call: SizedCall) -> torch.Tensor:
    """The result lies as the image does."""
    operand, sizes = call.operand("self"), tuple(call.value("output_size"))
    order = _order(call, operand)
    return _image(call, (*operand.sizes[:2], *sizes), order, operand)


@gives(
    aten.upsample_bicubic2d_backward.default,
    aten._upsample_bilinear2d_aa_backward.default,
    aten._upsample_bicubic2d_aa_backward.default,
)
def resized_backward(call: SizedCall) -> torch.Tensor:
    """The image has the sizes that are given; of these kernels only the bilinear one keeps channels last."""
    gradient, sizes = _gradient_of_sizes(call, 4)
    keeps = call.target is aten._upsample_bilinear2d_aa_backward.default
    return _image(call, sizes, _order(call, gradient) if keeps else _ROW_MAJOR, gradient)


@gives(
    aten.upsample_nearest1d_backward.default,
    aten._upsample_nearest_exact1d_backward.default,
    aten.upsample_linear1d_backward.default,
    aten.upsample_nearest3d_backward.default,
    aten._upsample_nearest_exact3d_backward.default,
)
def resized_backward_in_rows(call: SizedCall) -> torch.Tensor:
    """A line or a volume of the sizes that are given, row-major whatever the order of the gradient."""
    gradient, sizes = _gradient_of_sizes(call, len(call.value("input_size")))
    if any(call.least(size) < 1 for size in sizes):
        raise Undecided
    return call.row_major(sizes, gradient.tensor.dtype, gradient)


def _gradient_of_sizes(call: SizedCall, rank: int) -> tuple[Operand, tuple[Number, ...]]:
    """Return the gradient, which must have the sizes of the result, and the sizes of what was resized."""
    gradient, sizes = call.operand("grad_output"), tuple(call.value("input_size"))
    if len(sizes) != rank or gradient.size_key != (*key_of(sizes[:2]), *key_of(call.value("output_size"))):
        raise Undecided
    return gradient, sizes
