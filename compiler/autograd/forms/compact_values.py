"""What backward reads of a forward value, in as few bytes as it needs: a graph pass before the cut, which keeps them.

Three rules, each of which leaves every result as it is.  A place that is surely below a number is handed to backward in
the narrowest dtype that holds it.  A derivative that asks only whether a value passed a threshold is given the answer.
An operand of which backward reads the size alone is replaced by one number.  What the caller can see is left alone:
eager saves it, and raises where the caller has written to it since.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence

import torch
from torch import fx

from ...graph.aliasing import escaping_roots, memory_root
from ...graph.fx_nodes import add_call
from ...graph.node_values import copy_facts, in_backward, is_tensor, tensor_of
from ...graph.passes import graph_pass

aten = torch.ops.aten
_NARROW = (torch.uint8, torch.int16, torch.int32)
_POOLS = {
    aten.max_pool2d_with_indices.default: 2,
    aten.max_pool3d_with_indices.default: 3,
    aten.adaptive_max_pool2d.default: 2,
    aten.adaptive_max_pool3d.default: 3,
}
_ALONG = frozenset({aten.max.dim, aten.min.dim, aten.sort.default, aten.topk.default})


@graph_pass
def hand_on_compact_values(gm: fx.GraphModule) -> fx.GraphModule:
    """Put narrow places, answers of thresholds and single numbers between forward and backward."""
    visible = escaping_roots(gm.graph)
    for node in list(gm.graph.nodes):
        if not is_tensor(node) or not all(isinstance(size, int) for size in tensor_of(node).shape):
            continue
        if in_backward(node):
            for rule in (_answer_of_threshold, _without_unread):
                rule(gm.graph, node, visible)
        elif node.target is operator.getitem and memory_root(node) not in visible:
            _narrow_places(gm.graph, node)
    return gm


COMPACT: tuple[str, ...] = (
    "hand_on_compact_values",
    "share_common_nodes",  # two derivatives may ask for one answer
    "drop_dead_nodes",
)


def _narrow_places(graph: fx.Graph, places: fx.Node) -> None:
    limit = _limit_of_places(places)
    late = [user for user in places.users if in_backward(user)]
    if limit is None or not late:
        return
    dtype = next(dtype for dtype in (*_NARROW, torch.int64) if limit <= torch.iinfo(dtype).max)
    if dtype is torch.int64:
        return
    with graph.inserting_after(places):
        narrow = _forward_call(graph, places, aten._to_copy.default, (places,), dtype, {"dtype": dtype})
    with graph.inserting_after(narrow):
        wide = _forward_call(graph, places, aten._to_copy.default, (narrow,), torch.int64, {"dtype": torch.int64})
    for user in late:
        user.replace_input_with(places, wide)


def _limit_of_places(node: fx.Node) -> int | None:
    """Return a number that no element exceeds, None where the node gives no places."""
    call, number = node.args
    if number != 1 or not isinstance(call, fx.Node) or tensor_of(node).dtype is not torch.int64:
        return None
    source = call.args[0] if call.args else None
    if not isinstance(source, fx.Node) or not is_tensor(source):
        return None
    sizes: Sequence[int] = tensor_of(source).shape
    if not all(isinstance(size, int) for size in sizes):
        return None
    if call.target in _POOLS:
        return math.prod(sizes[-_POOLS[call.target] :]) - 1
    return max(sizes, default=1) - 1 if call.target in _ALONG else None


def _answer_of_threshold(graph: fx.Graph, node: fx.Node, visible: set[fx.Node]) -> None:
    """Write `where(x <= threshold, 0, gradient)`, which is what the derivative is; a NaN lets the gradient through."""
    if node.target is not aten.threshold_backward.default or len(node.args) != 3:
        return
    gradient, value, threshold = node.args
    if not _is_hidden(value, visible) or not isinstance(gradient, fx.Node) or not isinstance(threshold, int | float):
        return
    assert isinstance(value, fx.Node)
    alike = (tensor_of(gradient).dtype, tensor_of(gradient).shape) == (tensor_of(value).dtype, tensor_of(value).shape)
    if not alike or tensor_of(node).stride() != tensor_of(value).stride() or not tensor_of(value).is_floating_point():
        return
    with graph.inserting_after(value):
        answer = _forward_call(graph, value, aten.le.Scalar, (value, threshold), torch.bool)
    with graph.inserting_before(node):
        result = add_call(graph, aten.where.ScalarSelf, (answer, 0, gradient))
    copy_facts(node, result)
    node.replace_all_uses_with(result)


def _without_unread(graph: fx.Graph, node: fx.Node, visible: set[fx.Node]) -> None:
    """Give a pool's derivative one number in place of the operand of which it reads the size."""
    if node.target is not aten.max_pool2d_with_indices_backward.default:
        return
    operand = node.args[1]
    if not _is_hidden(operand, visible) or not isinstance(operand, fx.Node):
        return
    value = tensor_of(operand)
    if not value.is_contiguous() or value.device.type != "cpu":  # another order is read off the strides
        return
    with graph.inserting_before(node):
        where = {"dtype": value.dtype, "device": value.device}
        number = add_call(graph, aten.full.default, ([], 0), where)
        copy_facts(node, number)
        number.meta["val"] = value.new_empty(())
        whole = add_call(graph, aten.expand.default, (number, list(value.shape)))
        copy_facts(node, whole)
        whole.meta["val"] = number.meta["val"].expand(value.shape)
    node.args = (node.args[0], whole, *node.args[2:])


def _is_hidden(value: object, visible: set[fx.Node]) -> bool:
    """Return whether a value of the forward has memory that no caller can see."""
    if not isinstance(value, fx.Node) or not is_tensor(value) or in_backward(value):
        return False
    root = memory_root(value)
    return root is value and value.op != "placeholder" and value not in visible


def _forward_call(
    graph: fx.Graph,
    of: fx.Node,
    target: Callable[..., object],
    args: tuple[object, ...],
    dtype: torch.dtype,
    kwargs: dict[str, object] | None = None,
) -> fx.Node:
    """Add what the forward computes of one of its values, with a stamp that every trace of the program gives it."""
    like = tensor_of(of)
    node = add_call(graph, target, args, kwargs)
    copy_facts(of, node)
    node.meta["val"] = like.new_empty_strided(like.shape, like.stride(), dtype=dtype)
    node.meta["stamp"] = f"{of.meta.get('stamp', of.name)} {target} {dtype}"
    return node
