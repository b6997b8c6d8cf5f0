"""What the oracle knows about ATen operators: which round, which jump, which draw, which only move values."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import torch

from plumbline.compiler.base.torch_facts import decomposition_of, operator_schema
from plumbline.compiler.graph.facts import is_elementwise

from .compositions import REPLACED, WRITTEN_OUT


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Results are copies, selections or sign changes of inputs: nothing is rounded that was not rounded before.
MOVING = _names(
    "clone cat stack gather index index_select select where masked_fill masked_select take constant_pad_nd "
    "reflection_pad1d reflection_pad2d reflection_pad3d replication_pad1d replication_pad2d replication_pad3d "
    "slice_scatter select_scatter diagonal_scatter as_strided_scatter scatter flip roll rot90 repeat "
    "repeat_interleave relu relu6 threshold hardtanh clamp clamp_min clamp_max clip maximum minimum fmax fmin max "
    "min amax amin aminmax abs neg max_pool2d_with_indices max_pool3d_with_indices adaptive_max_pool2d "
    "adaptive_max_pool3d sort topk kthvalue median nanmedian mode cummax cummin embedding threshold_backward "
    "hardtanh_backward tril triu diag_embed fill lift_fresh lift_fresh_copy lift detach real imag conj_physical "
    "resolve_conj resolve_neg pixel_shuffle pixel_unshuffle unfold_copy view_copy expand_copy slice_backward "
    "select_backward masked_scatter index_copy index_fill upsample_nearest1d upsample_nearest2d upsample_nearest3d "
    "_upsample_nearest_exact1d _upsample_nearest_exact2d _upsample_nearest_exact3d nonzero squeeze_copy "
    "unsqueeze_copy permute_copy t_copy copysign heaviside max_pool2d_with_indices_backward nan_to_num unbind_copy "
    "split_copy unique _unique2 unique_dim unique_consecutive _local_scalar_dense equal frexp view_as_real_copy "
    "complex ldexp max_unpool2d max_unpool3d im2col _to_dense"
)

# Results jump when an input crosses a threshold.  Program inputs are exact, so these never add input noise
# and never run through a decomposition: only noise that an input already carries can move them.
JUMPING = _names(
    "floor ceil round trunc fix frac floor_divide fmod remainder sign sgn signbit eq ne lt le gt ge isclose argmax "
    "argmin argsort searchsorted bucketize histc histogram bincount logical_and logical_or logical_not logical_xor "
    "bitwise_and bitwise_or bitwise_xor bitwise_not any all isnan isinf isfinite isposinf isneginf count_nonzero "
    "nextafter fake_quantize_per_tensor_affine_cachemask fake_quantize_per_channel_affine_cachemask isin "
    "_fake_quantize_per_tensor_affine_cachemask_tensor_qparams nonzero_static"
)

# Only the storage dtype changes: they round, unless the value fits the new dtype.
CONVERTING = _names("_to_copy copy")

# The arguments fix the value to the bit (constants, uninitialised memory): every lane takes eager's bytes.
FIXED = _names(
    "zeros ones full zeros_like ones_like full_like empty empty_like empty_strided empty_permuted new_empty "
    "new_zeros new_ones new_full new_empty_strided scalar_tensor eye zero resize resize_as tril_indices "
    "triu_indices nextafter _efficientzerotensor"
)

# Correctly rounded by IEEE 754: on operands and results of a coarse grid they are exact in any order.
IEEE = _names("add sub rsub mul neg div true_divide addcmul square reciprocal sqrt pow lerp")

# Sums of products: (name) -> computed again on squared arguments they give the variance of their rounding.
SUMMING = _names(
    "sum nansum mean nanmean cumsum trace dot vdot mv mm bmm addmm addmv addbmm baddbmm addr convolution "
    "convolution_backward index_add scatter_add scatter_reduce index_put _index_put_impl _unsafe_index_put "
    "embedding_dense_backward _embedding_bag _embedding_bag_forward_only avg_pool1d avg_pool2d avg_pool3d "
    "_adaptive_avg_pool2d _adaptive_avg_pool3d avg_pool2d_backward avg_pool3d_backward "
    "_adaptive_avg_pool2d_backward upsample_bilinear2d upsample_linear1d upsample_trilinear3d "
    "upsample_bilinear2d_backward upsample_linear1d_backward upsample_nearest2d_backward col2im segment_reduce "
    "upsample_nearest1d_backward embedding_bag"
)

_REDUCING = _names("scatter_reduce index_reduce")
_NORMS = _names("linalg_vector_norm norm")
_BY_INDEX = _names("index_put _index_put_impl _unsafe_index_put")
_BY_CALL = _REDUCING | _NORMS | _BY_INDEX

# Smooth composites with internal cancellation, which noisy lanes must show: these run a decomposition instead.
COMPOSITE = _names(
    "_softmax _log_softmax _softmax_backward_data _log_softmax_backward_data native_layer_norm "
    "native_layer_norm_backward native_group_norm native_group_norm_backward native_batch_norm "
    "native_batch_norm_backward _native_batch_norm_legit _native_batch_norm_legit_no_training "
    "_native_batch_norm_legit_functional _batch_norm_with_update gelu gelu_backward silu silu_backward mish "
    "mish_backward var std var_mean std_mean logsumexp softplus softplus_backward mse_loss mse_loss_backward "
    "huber_loss huber_loss_backward smooth_l1_loss smooth_l1_loss_backward binary_cross_entropy "
    "binary_cross_entropy_backward binary_cross_entropy_with_logits log_sigmoid_forward log_sigmoid_backward "
    "_fused_rms_norm _fused_rms_norm_backward _scaled_dot_product_flash_attention_for_cpu addcdiv sigmoid_backward "
    "tanh_backward elu elu_backward selu celu hardswish hardswish_backward hardsigmoid hardsigmoid_backward glu "
    "glu_backward linalg_vector_norm norm dist _euclidean_dist xlogy logaddexp logaddexp2 nll_loss2d_backward "
    "soft_margin_loss soft_margin_loss_backward logit logit_backward"
)

# Written in ATen as calls of other operators: what lies between them is stored in the dtype of the operands.
STORED_BETWEEN = _names(
    "binary_cross_entropy_with_logits soft_margin_loss soft_margin_loss_backward dist _euclidean_dist"
)

# Positions of tensors that a training call updates in place although the schema does not say so.
_HIDDEN_WRITES = {"native_batch_norm": (3, 4)}


@dataclass(frozen=True, slots=True)
class OperatorFacts:
    """One operator as the lanes see it.

    name: ATen name without namespace and without the underscore of the in-place form.
    written: positions or keywords of the arguments it writes.
    pointwise: each output element depends on the elements at the same (broadcast) position only.
    random: it draws from a generator; with `chance`, the position of a dropout probability, only above 0.
    foreign: it is not an ATen operator.
    decomposition: smaller operators that compute the same, for noisy lanes; None runs the operator itself.
    replacement: what every lane runs instead, because the operator has no float64 kernel.
    """

    name: str
    written: tuple[int | str, ...]
    pointwise: bool
    random: bool
    chance: int | None
    foreign: bool
    moving: bool
    jumping: bool
    fixed: bool
    converting: bool
    summing: bool
    grid_exact: bool
    decomposition: Callable[..., Any] | None
    replacement: Callable[..., Any] | None

    def draws(self, args: Any, kwargs: Any) -> bool:
        """Return whether this call consumes random numbers."""
        if self.random and self.chance is not None:
            probability = args[self.chance] if self.chance < len(args) else kwargs.get("dropout_p", 0.0)
            return bool(probability)
        return self.random

    def of_call(self, args: Any, kwargs: Any) -> "OperatorFacts":
        """Return the facts of one call: some operators only move values, depending on an argument.

        Writing by index unless it accumulates; reductions by maximum or minimum (backward compares for equality).
        """
        if self.name not in _BY_CALL:
            return self
        arguments = [*args, *kwargs.values()]
        selects = self.name in _BY_INDEX and not (args[3] if len(args) > 3 else kwargs.get("accumulate", False))
        selects |= self.name in _REDUCING and any(isinstance(a, str) and a in ("amax", "amin") for a in arguments)
        selects |= self.name in _NORMS and any(isinstance(a, float) and abs(a) == float("inf") for a in arguments)
        if not selects:
            return self
        return replace(self, moving=True, summing=False, grid_exact=False, decomposition=None)


@lru_cache(maxsize=4096)
def facts_of(operator: Any) -> OperatorFacts:
    """Return what the oracle knows about an ATen overload."""
    schema = operator_schema(operator)
    namespace, _, full = schema.name.partition("::")
    name = full[:-1] if full.endswith("_") and not full.endswith("__") else full
    written: tuple[int | str, ...] = tuple(
        argument.name if argument.kwarg_only else position
        for position, argument in enumerate(schema.arguments)
        if argument.alias_info is not None and argument.alias_info.is_write
    )
    foreign = namespace not in ("aten", "prims", "prim")
    bare = name.removeprefix("_foreach_")
    moving, jumping = bare in MOVING, bare in JUMPING or "rounding_mode" in {a.name for a in schema.arguments}
    return OperatorFacts(
        name=name,
        written=written + _HIDDEN_WRITES.get(full, ()),
        pointwise=is_elementwise(operator) and not name.startswith("_foreach_"),
        random=torch.Tag.nondeterministic_seeded in operator.tags,
        chance=next((i for i, a in enumerate(schema.arguments) if a.name == "dropout_p"), None),
        foreign=foreign,
        moving=moving,
        jumping=jumping,
        fixed=bare in FIXED,
        converting=bare in CONVERTING,
        summing=bare in SUMMING,
        grid_exact=bare in IEEE or bare in SUMMING,
        replacement=REPLACED.get(name),
        decomposition=None if foreign or moving or jumping else _decomposition(operator, name, full),
    )


def _decomposition(operator: Any, name: str, full: str) -> Callable[..., Any] | None:
    if name in WRITTEN_OUT:
        return WRITTEN_OUT[name]
    if name not in COMPOSITE:
        return None
    if full == name:
        return decomposition_of(operator)
    packet = getattr(torch.ops.aten, name, None)  # in-place form: the functional form of the same overload
    overload = operator.__name__.rpartition(".")[2]
    sibling = getattr(packet, overload, None) if packet is not None else None
    return decomposition_of(sibling) if sibling is not None else None
