"""OpFacts: what is true of an ATen operator, asked once by autograd, passes and code generation."""

import enum
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import torch

from ..base.torch_facts import OpOverload


class OpKind(enum.Enum):
    """How an operator relates its result to its inputs; one per operator, the most restrictive that holds."""

    POINTWISE = "pointwise"  # one element out for one (broadcast) element of each input
    REDUCTION = "reduction"  # folds dimensions
    VIEW = "view"  # the result shares memory with an input
    CREATION = "creation"  # reads no tensor's elements
    EXTERN = "extern"  # everything else: matmul, convolution, sort, indexing, ...
    RANDOM = "random"  # draws from a generator
    MUTATING = "mutating"  # writes to an argument


@dataclass(frozen=True, slots=True)
class OpFacts:
    """What holds for one operator overload.

    aliases: argument positions that a result may share memory with.  mutates: argument positions written to.
    Positions count the schema's arguments, keyword-only ones included.  expensive: recomputing costs more than
    memory traffic (matmul, convolution, sort, attention, ...).
    """

    kind: OpKind
    aliases: tuple[int, ...]
    mutates: tuple[int, ...]
    expensive: bool

    @property
    def is_pure(self) -> bool:
        """Whether a call may be dropped, merged or repeated without anyone noticing."""
        return self.kind not in (OpKind.RANDOM, OpKind.MUTATING)


# Results share the argument's memory although the schema does not say so.
_UNDECLARED_VIEWS = frozenset({"aten::_unsafe_view", "aten::_reshape_alias", "aten::lift_fresh"})


def _aten(names: str) -> frozenset[str]:
    return frozenset(f"aten::{name}" for name in names.split())


# Their operators wait for the other processes, which make the same calls in the same order.
_BETWEEN_PROCESSES = frozenset({"_c10d_functional", "_c10d_functional_autograd"})

# Questions about metadata: they compute nothing and are answered by the fake tensor itself.
QUESTIONS = frozenset(
    {
        torch.ops.aten.sym_size.int,
        torch.ops.aten.sym_size.default,
        torch.ops.aten.sym_stride.int,
        torch.ops.aten.sym_stride.default,
        torch.ops.aten.sym_storage_offset.default,
        torch.ops.aten.sym_numel.default,
        torch.ops.aten.is_contiguous.default,
        torch.ops.aten.is_contiguous.memory_format,
        torch.ops.aten.is_strides_like_format.default,
        torch.ops.aten.is_non_overlapping_and_dense.default,
        torch.ops.prim.device.default,
        torch.ops.prim.layout.default,
        torch.ops.aten.dim.default,
    }
)
_CREATION = _aten(
    "arange empty empty_like empty_strided empty_permuted eye full full_like linspace logspace new_empty "
    "new_empty_strided new_full new_ones new_zeros ones ones_like scalar_tensor tril_indices triu_indices "
    "zeros zeros_like _efficientzerotensor"
)
_POINTWISE = _aten("_to_copy clone copy where lerp native_dropout_backward fill masked_fill")
# Elementwise, and torch 2.11 does not tag them so.
_TAGGED_SINCE_213 = frozenset(
    {getattr(torch.ops.aten, name).default for name in "celu_ elu_ hardsigmoid_ hardtanh_ leaky_relu_ selu_".split()}
    | {torch.ops.aten.leaky_relu.default}
)
_REDUCTION = _aten(
    "sum mean var std var_mean std_mean prod amax amin max min argmax argmin any all logsumexp norm "
    "linalg_vector_norm _softmax _log_softmax _softmax_backward_data _log_softmax_backward_data "
    "native_layer_norm native_layer_norm_backward native_group_norm native_group_norm_backward "
    "nll_loss_forward mse_loss aminmax median nanmedian"
)
_FLOATS_ONLY = _aten(  # the CPU kernel refuses whole numbers; the shape rule does not
    "celu gelu glu hardshrink huber_loss hypot log_sigmoid_forward mish nextafter "
    "smooth_l1_loss softplus std std_mean var var_mean _softmax _log_softmax _softmax_backward_data "
    "_log_softmax_backward_data"
)
_CHEAP_EXTERN = _aten("cat stack slice_scatter select_scatter constant_pad_nd flip")


def _names(operator: OpOverload, pick: Callable[[torch.Argument], bool]) -> tuple[int, ...]:
    return tuple(index for index, argument in enumerate(operator._schema.arguments) if pick(argument))


@cache
def op_facts(operator: OpOverload) -> OpFacts:
    """Return the facts of one overload; derived from its schema and tags, with the exceptions in this file's tables."""
    schema = operator._schema
    name = schema.name
    mutates = _names(operator, lambda argument: argument.alias_info is not None and argument.alias_info.is_write)
    aliases = _names(operator, lambda argument: argument.alias_info is not None)
    if name in _UNDECLARED_VIEWS and not aliases:
        aliases = (0,)
    kind = _kind(operator, name, mutates, aliases)
    expensive = kind is OpKind.EXTERN and name not in _CHEAP_EXTERN
    return OpFacts(kind, aliases, mutates, expensive)


def is_elementwise(operator: OpOverload) -> bool:
    """Return whether torch says of an overload that it is elementwise, in its newest release that was tested."""
    return torch.Tag.pointwise in operator.tags or operator in _TAGGED_SINCE_213


def _kind(operator: OpOverload, name: str, mutates: tuple[int, ...], aliases: tuple[int, ...]) -> OpKind:
    if mutates:
        return OpKind.MUTATING
    if is_random(operator):
        return OpKind.RANDOM
    if aliases:
        return OpKind.VIEW
    if is_elementwise(operator) or name in _POINTWISE:
        return OpKind.POINTWISE
    if torch.Tag.reduction in operator.tags or name in _REDUCTION:
        return OpKind.REDUCTION
    return OpKind.CREATION if name in _CREATION else OpKind.EXTERN


def facts_of(target: object) -> OpFacts | None:
    """Return the facts of a node's target, or None when it is something else (getitem, a Python callable)."""
    return op_facts(target) if isinstance(target, OpOverload) else None


def is_random(target: object) -> bool:
    """Return whether calls of `target` keep their number and order: they draw, or talk to other processes."""
    if not isinstance(target, OpOverload):
        return False
    return torch.Tag.nondeterministic_seeded in target.tags or target.namespace in _BETWEEN_PROCESSES


def refuses(target: object, operand: object) -> bool:
    """Return whether eager raises because the first operand has whole numbers or truth values."""
    if not isinstance(target, OpOverload) or target._schema.name not in _FLOATS_ONLY:
        return False
    return isinstance(operand, torch.Tensor) and not (operand.is_floating_point() or operand.is_complex())


def is_mutating(target: object) -> bool:
    """Return whether a call of `target` writes to one of its arguments."""
    return isinstance(target, OpOverload) and bool(op_facts(target).mutates)


def is_view(target: object) -> bool:
    """Return whether the result of `target` shares memory with an argument, which it does not write."""
    return isinstance(target, OpOverload) and op_facts(target).kind is OpKind.VIEW
