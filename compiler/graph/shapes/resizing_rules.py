"""Images of other sizes: torch's rules for some of these calls take no symbols."""

from collections.abc import Sequence

import torch

from ...base.dense_order import dense_strides
from .fake_templates import Number, key_of
from .sized_call import Operand, SizedCall, Undecided, gives

aten = torch.ops.aten
# The dimensions of images and volumes in memory, slowest first: row by row, and with channels last.
_ORDERS = {4: ((0, 1, 2, 3), (0, 2, 3, 1)), 5: ((0, 1, 2, 3, 4), (0, 2, 3, 4, 1))}


def _order(call: SizedCall, operand: Operand) -> tuple[int, ...]:
    """Return the order in memory of the dimensions of an image or a volume, which has two points or more along each.

    Of one channel nothing says that channels come last: such an image lies row by row, as its strides are.
    """
    least = [call.least(size) for size in operand.sizes]
    if len(least) not in _ORDERS or min(least[:2]) < 1 or min(least[2:]) < 2:
        raise Undecided
    for order in _ORDERS[len(least)]:
        telling = order[1] == 1 or least[1] > 1
        if telling and operand.stride_key == key_of(dense_strides(operand.sizes, order)):
            return order
    raise Undecided


def _image(call: SizedCall, sizes: Sequence[Number], order: tuple[int, ...], like: Operand) -> torch.Tensor:
    if any(call.least(size) < 1 for size in sizes):
        raise Undecided
    templates, tensor = call.found.templates, like.tensor
    return templates.new(call.mode, sizes, dense_strides(sizes, order), tensor.dtype, tensor.device)


@gives(
    aten.upsample_bilinear2d.default,
    aten.upsample_bicubic2d.default,
    aten._upsample_bilinear2d_aa.default,
    aten._upsample_bicubic2d_aa.default,
    aten.upsample_trilinear3d.default,
)
def resized(call: SizedCall) -> torch.Tensor:
    """The result lies as the image does."""
    operand, sizes = call.operand("self"), tuple(call.value("output_size"))
    order = _order(call, operand)
    if len(sizes) != len(operand.sizes) - 2:
        raise Undecided
    return _image(call, (*operand.sizes[:2], *sizes), order, operand)


_KEEPS_ORDER = frozenset(
    {
        aten.upsample_bilinear2d_backward.default,
        aten._upsample_bilinear2d_aa_backward.default,
        aten.upsample_trilinear3d_backward.default,
    }
)


@gives(
    *_KEEPS_ORDER,
    aten.upsample_bicubic2d_backward.default,
    aten._upsample_bicubic2d_aa_backward.default,
)
def resized_backward(call: SizedCall) -> torch.Tensor:
    """The image has the sizes that are given; the kernels for bicubic images do not keep channels last."""
    gradient, sizes = _gradient_of_sizes(call, len(call.value("input_size")))
    keeps = call.target in _KEEPS_ORDER
    return _image(call, sizes, _order(call, gradient) if keeps else _ORDERS[len(sizes)][0], gradient)


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
