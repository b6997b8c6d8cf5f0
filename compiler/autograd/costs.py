"""What it costs to keep a value for backward, and what must never be computed twice."""

import math
import operator
from collections.abc import Iterable

import torch
from torch import fx

from ..base.symbol_facts import hint_value
from ..base.torch_facts import OpOverload
from ..graph.aliasing import view_source
from ..graph.facts import OpKind, is_random, op_facts
from ..graph.node_values import is_tensor, tensor_of

_SAME_EVERYWHERE = frozenset(
    "add sub rsub mul div neg abs reciprocal relu clamp clamp_min clamp_max maximum minimum where masked_fill fill "
    "copy clone _to_copy sign copysign floor ceil trunc round nan_to_num cat stack constant_pad_nd flip roll repeat "
    "tril triu gather index index_select embedding select_scatter slice_scatter".split()
)
"""Operators that give the same floats whoever computes them, as IEEE 754 asks of their arithmetic."""
_STEPPING = frozenset("sign copysign floor ceil trunc round frac remainder fmod floor_divide".split())
"""Operators that give floats, by which the smallest difference of what they read may become a large one."""

ALIVE_ANYWAY = 0  # bytes that keeping a value costs which the caller holds in any case


def kept_bytes(node: fx.Node) -> int:
    """Return the bytes of memory that keeping a tensor takes; at least 1."""
    value = tensor_of(node)
    count = value.numel()
    elements: int = hint_value(count) if isinstance(count, torch.SymInt) else count
    return max(1, elements * value.element_size())


def is_recomputable(node: fx.Node, *, recompute: bool) -> bool:
    """Return whether backward may run this call again instead of keeping its value.

    Never: random draws, writes, matmuls, sorts and other expensive calls, reductions (they read far more than they
    give), calls of unknown operators. recompute=False: nothing that costs a pass over memory, views only.
    """
    if node.op == "placeholder":
        return False
    if node.target is operator.getitem:
        source = node.args[0]
        return isinstance(source, fx.Node) and is_recomputable(source, recompute=recompute)
    target = node.target
    if not isinstance(target, OpOverload) or is_random(target):
        return False
    facts = op_facts(target)
    if facts.kind is OpKind.VIEW:
        return True
    if not recompute:
        return facts.kind is OpKind.CREATION and _is_small(node)
    return facts.kind in (OpKind.POINTWISE, OpKind.CREATION) or (facts.kind is OpKind.EXTERN and not facts.expensive)


def is_repeatable(node: fx.Node) -> bool:
    """Return whether a call gives the same again, at whatever cost: an ATen operator that neither draws nor writes."""
    if node.target is operator.getitem:
        source = node.args[0]
        return isinstance(source, fx.Node) and is_repeatable(source)
    target = node.target
    return isinstance(target, OpOverload) and target.namespace == "aten" and op_facts(target).is_pure


def is_expensive(node: fx.Node) -> bool:
    """Return whether running a call again costs more than passes over memory: matmul, convolution, attention, sort."""
    if node.target is operator.getitem:
        source = node.args[0]
        return isinstance(source, fx.Node) and is_expensive(source)
    return isinstance(node.target, OpOverload) and op_facts(node.target).expensive


def _is_small(node: fx.Node) -> bool:
    return is_tensor(node) and not isinstance(tensor_of(node).numel(), torch.SymInt) and tensor_of(node).numel() <= 1


def is_keepable(node: fx.Node) -> bool:
    """Return whether a value can be kept on its own: one strided tensor with memory of its own, no view."""
    if not is_tensor(node) or tensor_of(node).layout is not torch.strided:
        return False
    return view_source(node) is None


def decided_by(nodes: Iterable[fx.Node]) -> frozenset[fx.Node]:
    """Return the calls whose values a decision among these nodes rests on, and that may round otherwise the next time.

    The mask of `amax`, say, is where its operand equals its result: by an operand that a vector of another width has
    computed again it is nowhere. nodes: in graph order.
    """
    rest_on: set[fx.Node] = set()
    for node in reversed(list(nodes)):
        if node in rest_on or _decides(node):
            rest_on.update(node.all_input_nodes)
    return frozenset(node for node in rest_on if node.op == "call_function" and not _is_same_everywhere(node))


def _decides(node: fx.Node) -> bool:
    """Return whether a call steps from one value to another: what is made of floats and is none itself does."""
    target = node.target
    if not isinstance(target, OpOverload) or not any(map(_is_float, node.all_input_nodes)):
        return False
    steps = _name(target) in _STEPPING or "rounding_mode" in node.kwargs or (is_tensor(node) and not _is_float(node))
    return steps and not _asks_whether_finite(node)


_FINITE_OR_NOT = frozenset("isnan isinf isposinf isneginf isfinite".split())


def _asks_whether_finite(node: fx.Node) -> bool:
    """Return whether a call asks for NaN, as by comparing a value with itself, or for infinity."""
    if isinstance(node.target, OpOverload) and _name(node.target) in _FINITE_OR_NOT:
        return True
    operands = [part for part in node.args if isinstance(part, fx.Node)]
    infinite = any(isinstance(part, float) and math.isinf(part) for part in node.args)
    return infinite or len(set(operands)) < len(operands)


def _is_float(node: fx.Node) -> bool:
    return is_tensor(node) and (tensor_of(node).is_floating_point() or tensor_of(node).is_complex())


def _is_same_everywhere(node: fx.Node) -> bool:
    target = node.target
    if target is operator.getitem or (is_tensor(node) and not _is_float(node)):
        return True
    if not isinstance(target, OpOverload):
        return False
    if op_facts(target).kind in (OpKind.VIEW, OpKind.CREATION):
        return True
    fused = "alpha" in node.kwargs or len(node.args) > _OPERANDS  # a product that is not rounded
    exact = _name(target) in _SAME_EVERYWHERE and not (fused and _name(target) in _SUMS)
    return exact and _is_float(node) and not tensor_of(node).is_complex()


_SUMS = frozenset(("add", "sub", "rsub"))
_OPERANDS = 2


def _name(target: OpOverload) -> str:
    return str(target.overloadpacket.__name__)
