"""Who shares memory with whom in an ATen graph, read from the facts of its operators."""

import operator

from torch import fx

from ..base.torch_facts import OpOverload
from .facts import is_view, op_facts
from .node_values import output_node


def memory_root(node: fx.Node) -> fx.Node:
    """Return the node whose memory `node` shares: itself, unless it is a view (or an in-place call's result)."""
    while True:
        source = view_source(node)
        if source is None:
            return node
        node = source


def view_source(node: fx.Node) -> fx.Node | None:
    """Return the node that `node` is directly a view of, or None when its memory is its own."""
    if node.op != "call_function":
        return None
    if node.target is operator.getitem:
        whole = node.args[0]
        return view_source(whole) if isinstance(whole, fx.Node) else None
    if isinstance(node.target, OpOverload) and (is_view(node.target) or op_facts(node.target).mutates):
        position = op_facts(node.target).aliases[0]
        source = argument(node, position)
        return source if isinstance(source, fx.Node) else None
    return None


def argument(node: fx.Node, position: int) -> object:
    """Return what a call passes for the schema's argument at `position`; its default where nothing is passed."""
    if position < len(node.args):
        return node.args[position]
    assert isinstance(node.target, OpOverload)
    declared = node.target._schema.arguments[position]
    return node.kwargs.get(declared.name, declared.default_value)


def written_nodes(node: fx.Node) -> list[fx.Node]:
    """Return the argument nodes that a call writes to; members of written lists included."""
    if not isinstance(node.target, OpOverload):
        return []
    written: list[fx.Node] = []
    for position in op_facts(node.target).mutates:
        value = argument(node, position)
        parts = value if isinstance(value, (tuple, list)) else (value,)
        written.extend(part for part in parts if isinstance(part, fx.Node))
    return written


def escaping_roots(graph: fx.Graph) -> set[fx.Node]:
    """Return the memory roots of the graph's outputs: whoever called the graph can see and change them."""
    return {memory_root(node) for node in output_node(graph).all_input_nodes}


def mutated_roots(graph: fx.Graph) -> set[fx.Node]:
    """Return the memory roots that some call of the graph writes to; empty for a functional graph."""
    return {memory_root(written) for node in graph.nodes for written in written_nodes(node)}
