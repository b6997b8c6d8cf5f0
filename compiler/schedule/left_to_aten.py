"""Who runs the steps of a graph: the loops that became kernels, the calls that stayed with ATen, and for what reason.

`Reason` is the one list of reasons.  Each has a family of operators, or a word of the lowering that refused the call; a
call that fits none is `UNWRITTEN`: somebody could write loops for it and nobody has.
"""

from __future__ import annotations

import enum

from ..base.events import LeftStep, StepsAssigned
from ..base.torch_facts import OpOverload
from ..graph.facts import facts_of, is_mutating, is_random
from ..graph.subgraphs.subgraph_operator import SUBGRAPH_OPERATORS
from ..loops.ir import Extern
from .execution_plan import ExecutionPlan


class Reason(enum.Enum):
    """Why a call stays with ATen; the value says it in words."""

    VIEW = "a view: nothing is computed"
    EMPTY = "memory that nobody has written yet"
    DRAW = "it draws random numbers, or talks to other processes: the calls keep their order and eager's own stream"
    WRITE = "it writes to an argument that others see"
    SUBGRAPH = "it runs captured functions, which are compiled by themselves"
    PRODUCT = "a matrix product or a convolution: a library has the kernels"
    ATTENTION = "attention: a library has the kernels"
    ORDER = "it sorts"
    SCAN = "each result needs the one before it"
    SCATTER = "elements are written at places that are looked up, and may meet"
    LINEAR_ALGEBRA = "a factorisation, a solution or a Fourier transform: a library has the kernels"
    DATA = "the data decides how large the result is"
    NUMBER = "a number that is known only when the graph runs"
    UNHELD = "a tensor that loops cannot hold: its dtype, its layout or its device"
    ERROR = "nobody reads the result: the call is there for its error"
    FORM = "there are loops for the operator, and not for this form of the call"
    OFF = "switched off by the option bisect"
    UNWRITTEN = "nobody has written loops for the operator"


def _named(names: str) -> frozenset[str]:
    return frozenset(names.split())


_FAMILIES: dict[Reason, frozenset[str]] = {  # by the name of the operator, without namespace and overload
    Reason.EMPTY: _named("empty empty_like empty_strided empty_permuted new_empty new_empty_strided"),
    Reason.PRODUCT: _named(
        "mm addmm bmm baddbmm dot vdot mv addmv addr ger matmul _scaled_mm _int_mm convolution convolution_backward "
        "_convolution mkldnn_rnn_layer mkldnn_rnn_layer_backward _trilinear addbmm"
    ),
    Reason.ATTENTION: _named(
        "_scaled_dot_product_flash_attention_for_cpu _scaled_dot_product_flash_attention_for_cpu_backward "
        "_scaled_dot_product_flash_attention _scaled_dot_product_flash_attention_backward "
        "_scaled_dot_product_efficient_attention _scaled_dot_product_efficient_attention_backward "
        "_scaled_dot_product_cudnn_attention _scaled_dot_product_cudnn_attention_backward "
        "_scaled_dot_product_fused_attention_overrideable _scaled_dot_product_fused_attention_overrideable_backward"
    ),
    Reason.ORDER: _named("sort topk kthvalue mode median nanmedian searchsorted bucketize histc msort argsort"),
    Reason.SCAN: _named("cumsum cumprod cummax cummin logcumsumexp _cummax_helper _cummin_helper"),
    Reason.SCATTER: _named(
        "scatter scatter_add scatter_reduce index_put index_add index_copy index_fill index_reduce put masked_scatter "
        "embedding_dense_backward max_pool2d_with_indices_backward _unsafe_index_put select_add "
        "native_group_norm_backward_scatter segment_reduce"
    ),
    Reason.LINEAR_ALGEBRA: _named(
        "_fft_r2c _fft_c2c _fft_c2r linalg_qr linalg_eigh linalg_inv_ex linalg_lu_factor_ex _linalg_svd _linalg_det "
        "_linalg_eigh _linalg_solve_ex _linalg_slogdet linalg_cholesky_ex linalg_vector_norm cholesky_solve "
        "triangular_solve linalg_solve_triangular"
    ),
    Reason.DATA: _named("nonzero masked_select unique_dim _unique2 unique_consecutive unique_dim_consecutive bincount"),
}
_WORDS: dict[str, Reason] = {  # what `lower` says where it does not ask a lowering, and what others say of their calls
    "it is there for its error": Reason.ERROR,
    "a result that loops cannot hold": Reason.UNHELD,
    "an argument that loops cannot hold": Reason.UNHELD,
    "eager has no kernel for these dtypes": Reason.ERROR,
    "switched off by the option bisect": Reason.OFF,
    "no lowering": Reason.UNWRITTEN,
    "scans are loops in Triton alone": Reason.UNWRITTEN,  # which its family makes a SCAN
}


def reason_of(step: Extern) -> Reason:
    """Return why ATen runs a step."""
    target = step.target
    if step.alias_of:
        return Reason.VIEW
    if target in SUBGRAPH_OPERATORS:
        return Reason.SUBGRAPH
    if not isinstance(target, OpOverload):  # `scalar_tensor` of a number; a loop that the interpreter runs
        return Reason.OFF if step.name.startswith("run_") else Reason.NUMBER
    name = target._schema.name.partition("::")[2]
    family = next((reason for reason, names in _FAMILIES.items() if name in names), None)
    if is_random(target) and family is not Reason.ATTENTION:
        return Reason.DRAW
    if is_mutating(target):
        return Reason.WRITE
    said = _WORDS.get(step.why, Reason.FORM)
    if said is not Reason.UNWRITTEN:
        return said
    facts = facts_of(target)
    return family or (Reason.VIEW if facts is not None and facts.aliases else Reason.UNWRITTEN)


def assigned_steps(plan: ExecutionPlan, language: str, launched: tuple[str, ...]) -> StepsAssigned:
    """Return what runs each step of a program; launched: the kernels, by name, in the order of their launches."""
    calls = [step for step in plan.steps if isinstance(step, Extern)]
    left = [LeftStep(str(step.target), reason_of(step).name, step.why) for step in calls]
    return StepsAssigned(language, launched, tuple(left))
