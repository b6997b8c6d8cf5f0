"""may_fail_on_data: which ATen calls can raise because of what their tensors hold.

The table names what cannot raise, so an operator that nobody has thought of counts as one that can. What depends on
dtypes and shapes alone (a kernel that is missing, a result that cannot be cast) is not asked here: it fails at the
first run or never.
"""

from collections.abc import Iterable
from functools import cache

import torch

from ...base.torch_facts import OpOverload
from ..facts import OpKind, is_elementwise, op_facts

_SAFE = frozenset(
    # elementwise, without the tag
    "_to_copy clone copy fill zero masked_fill lerp where threshold_backward hardtanh_backward elu_backward "
    "leaky_relu_backward hardswish hardswish_backward hardsigmoid_backward softplus_backward mish_backward "
    "glu glu_backward log_sigmoid_forward log_sigmoid_backward huber_loss huber_loss_backward smooth_l1_loss "
    "smooth_l1_loss_backward mse_loss mse_loss_backward native_dropout native_dropout_backward prelu _prelu_kernel "
    "_prelu_kernel_backward softshrink_backward hardshrink_backward _conj_physical complex polar "
    "real imag view_as_real tril triu _fused_dropout logit_backward triu_indices tril_indices "
    # draws with numbers for parameters
    "uniform normal_functional rand randn randint randperm rand_like randn_like randint_like random exponential "
    "geometric cauchy log_normal rrelu_with_noise rrelu_with_noise_functional "
    # matrices, convolutions, attention
    "mm bmm addmm baddbmm addbmm addmv addr mv dot vdot outer _addmm_activation convolution convolution_backward "
    "_convolution mkldnn_convolution _scaled_dot_product_flash_attention_for_cpu "
    "_scaled_dot_product_flash_attention_for_cpu_backward _scaled_dot_product_flash_attention "
    "_scaled_dot_product_flash_attention_backward _scaled_dot_product_efficient_attention "
    "_scaled_dot_product_efficient_attention_backward _scaled_dot_product_cudnn_attention "
    "_scaled_dot_product_cudnn_attention_backward _flash_attention_forward _efficient_attention_forward "
    "mkldnn_rnn_layer mkldnn_rnn_layer_backward _thnn_fused_lstm_cell _thnn_fused_gru_cell "
    # normalisation and reductions, without the tag
    "_softmax _log_softmax _softmax_backward_data _log_softmax_backward_data native_layer_norm "
    "native_layer_norm_backward native_group_norm native_group_norm_backward native_batch_norm "
    "_native_batch_norm_legit _native_batch_norm_legit_no_training native_batch_norm_backward cudnn_batch_norm "
    "cudnn_batch_norm_backward _batch_norm_with_update batch_norm_backward _fused_rms_norm _fused_rms_norm_backward "
    "batch_norm_update_stats sum mean prod norm median nanmedian mode kthvalue topk sort cumsum cumprod logcumsumexp "
    "cummax cummin _cummax_helper _cummin_helper var std "
    # pooling and resizing
    "max_pool2d_with_indices max_pool3d_with_indices avg_pool2d avg_pool2d_backward avg_pool3d avg_pool3d_backward "
    "_adaptive_avg_pool2d _adaptive_avg_pool2d_backward _adaptive_avg_pool3d _adaptive_avg_pool3d_backward "
    "adaptive_max_pool2d adaptive_max_pool3d upsample_nearest1d upsample_nearest2d upsample_nearest3d "
    "upsample_nearest1d_backward upsample_nearest2d_backward upsample_nearest3d_backward upsample_linear1d "
    "upsample_bilinear2d upsample_bicubic2d upsample_trilinear3d upsample_bilinear2d_backward "
    "upsample_bicubic2d_backward reflection_pad1d reflection_pad2d reflection_pad3d replication_pad1d "
    "replication_pad2d replication_pad3d constant_pad_nd pixel_shuffle pixel_unshuffle "
    # moving whole parts of tensors, whose places are numbers
    "cat stack flip roll repeat slice_scatter select_scatter diagonal_scatter slice_backward "
    "select_backward diagonal_backward _unsafe_view _reshape_alias _fft_r2c _fft_c2r _fft_c2c "
    "linalg_cross cross linalg_vector_norm bucketize "
    # optimizers
    "_fused_sgd _fused_adam _fused_adamw _fused_adagrad _amp_update_scale".split()
)
_OF_WHOLE_NUMBERS = frozenset("div floor_divide remainder fmod pow addcdiv".split())  # a division by zero
_BY_A_NUMBER = frozenset({"Scalar", "Scalar_mode"})  # overloads of these whose divisor is a number, and the only one
_ONLY_WITH_NUMBERS = frozenset("bernoulli normal".split())  # a tensor of probabilities or deviations is looked at
_BETWEEN_ENDS = frozenset("linspace logspace".split())  # ends that are tensors have to be numbers of the dtype
_WITHOUT_AN_ORDER = {  # tensors of these unless one says in which order a row is to be read: its places are looked at
    ("searchsorted", "Tensor"): 2,
    ("searchsorted", "Tensor_out"): 3,
    ("searchsorted", "Scalar"): 1,
    ("searchsorted", "Scalar_out"): 2,
}


def may_fail_on_data(operator: OpOverload, arguments: Iterable[object]) -> bool:
    """Return whether a call can raise because of what its tensors hold; arguments: all of them, in any order."""
    name = _plain_name(operator)
    if name in _OF_WHOLE_NUMBERS:
        values = list(_leaves(arguments))
        return any(_is_whole(value) for value in values) and not _divides_by_a_number(operator, name, values)
    if name in _ONLY_WITH_NUMBERS:
        tensors = [value for value in _leaves(arguments) if isinstance(value, torch.Tensor)]
        return len(tensors) > (operator._schema.name.endswith("_"))
    usual = _WITHOUT_AN_ORDER.get((name, operator._schema.overload_name))
    if usual is not None:
        return sum(isinstance(value, torch.Tensor) for value in _leaves(arguments)) > usual
    return _may_fail(operator, name)


@cache
def ever_fails_on_data(operator: OpOverload) -> bool:
    """Return whether some call of an operator can raise because of what its tensors hold."""
    name = _plain_name(operator)
    return name in _OF_WHOLE_NUMBERS or name in _ONLY_WITH_NUMBERS or _may_fail(operator, name)


@cache
def _plain_name(operator: OpOverload) -> str:
    """Return the name of the operation without what says that it is done in place, to a list or with grad mode on."""
    name = operator._schema.name.partition("::")[2].removeprefix("_foreach_").removeprefix("with_grad_")
    return name if name.startswith("__") or not name.endswith("_") else name[:-1]


@cache
def _may_fail(operator: OpOverload, name: str) -> bool:
    if operator.namespace not in ("aten", "prims", "plumbline"):
        return True
    if name in _BETWEEN_ENDS:
        return "Tensor" in operator._schema.overload_name
    if name in _SAFE or is_elementwise(operator) or torch.Tag.reduction in operator.tags:
        return False
    return op_facts(operator).kind not in (OpKind.VIEW, OpKind.CREATION, OpKind.POINTWISE) and not _is_view_in_place(
        operator
    )


def _is_view_in_place(operator: OpOverload) -> bool:
    return torch.Tag.inplace_view in operator.tags


def _leaves(arguments: Iterable[object]) -> Iterable[object]:
    for value in arguments:
        if isinstance(value, list | tuple):
            yield from _leaves(value)
        else:
            yield value


def _divides_by_a_number(operator: OpOverload, name: str, values: Iterable[object]) -> bool:
    """Return whether the divisor is a number that is a fault for no dividend.

    That is neither zero nor minus one, for the least whole number has no negative, and a number that the dtype holds:
    others wrap, to zero perhaps.
    """
    if name == "addcdiv" or operator._schema.overload_name not in _BY_A_NUMBER:
        return False
    numbers = [value for value in values if isinstance(value, int | float)]
    kinds = [value.dtype for value in values if isinstance(value, torch.Tensor)]
    if len(numbers) != 1 or numbers[0] in (0, -1) or torch.bool in kinds:
        return False
    return all(torch.iinfo(kind).min <= numbers[0] <= torch.iinfo(kind).max for kind in kinds)


def _is_whole(value: object) -> bool:
    return isinstance(value, torch.Tensor) and not (value.is_floating_point() or value.is_complex())
