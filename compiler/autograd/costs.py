"""What it costs to keep a value for backward, and what must never be computed twice."""

import operator

import torch
from torch import fx

from ..base.symbol_facts import hint_value
from ..base.torch_facts import OpOverload
from ..graph.aliasing import view_source
from ..graph.facts import OpKind, is_random, op_facts
from ..graph.node_values import is_tensor, tensor_of

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
