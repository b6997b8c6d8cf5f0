"""Typed wrappers of torch.fx functions whose stubs know only `Argument`; nothing here adds meaning."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from torch import fx
from torch.fx.node import map_aggregate, map_arg

from .node_values import set_value


def map_nodes(value: Any, function: Callable[[fx.Node], object]) -> Any:
    """Return `value` with every node inside replaced by what `function` gives for it."""
    return map_arg(value, function)  # type: ignore[arg-type]  # its stub limits results to Argument


def map_leaves(value: Any, function: Callable[[object], object]) -> Any:
    """Return `value` (nested tuples, lists, dicts, slices) with every leaf replaced by what `function` gives for it."""
    return map_aggregate(value, function)  # type: ignore[arg-type]  # its stub limits results to Argument


def add_call(
    graph: fx.Graph,
    target: Callable[..., Any],
    args: Sequence[Any],
    kwargs: Mapping[str, Any] | None = None,
    *,
    value: object = None,
) -> fx.Node:
    """Add a call of `target` at the graph's insertion point; `value` is its example value, None: written later."""
    node = graph.call_function(target)
    node.args, node.kwargs = tuple(args), dict(kwargs or {})  # set afterwards: fx warns of symbols
    if value is not None:
        set_value(node, value)
    return node


def add_output(graph: fx.Graph, results: Sequence[Any]) -> fx.Node:
    """End the graph with a tuple of results."""
    node: fx.Node = graph.output(tuple(results))
    return node


def add_node(graph: fx.Graph, like: fx.Node, args: Any, kwargs: Any) -> fx.Node:
    """Add a node of the same kind, target and name, with other arguments; facts are not copied."""
    node = graph.create_node(like.op, like.target, name=like.name, type_expr=like.type)
    node.args, node.kwargs = args, kwargs
    return node


def copy_node(graph: fx.Graph, node: fx.Node, function: Callable[[fx.Node], fx.Node]) -> fx.Node:
    """Add a copy of a node, every node in its arguments replaced; facts are not copied."""
    return add_node(graph, node, map_nodes(node.args, function), map_nodes(node.kwargs, function))
