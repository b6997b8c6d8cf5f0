"""The reference meaning of a graph: run it node by node, as it is written.

Works on torch-level and ATen graphs, under whatever grad mode, autocast state and dispatch modes surround it.
"""

from collections.abc import Callable, Mapping, Sequence
from keyword import iskeyword
from typing import Any, cast

import torch
from torch import fx

from ..base.errors import InternalError
from ..base.torch_facts import OpOverload
from .fx_nodes import map_nodes

Observer = Callable[[fx.Node], None]
Call = Callable[[Callable[..., object], tuple[object, ...], dict[str, object]], object]


def interpret(
    gm: fx.GraphModule,
    inputs: Sequence[object],
    *,
    before: Observer | None = None,
    after: Callable[[fx.Node, object], object] | None = None,
    call: Call | None = None,
) -> tuple[object, ...]:
    """Return the outputs of `gm` on `inputs`, always as a tuple.

    before: called with each node about to run.  after: called with each node and its value; what it returns is used
    instead.  call: calls each function and method, in place of a plain call.  Values are dropped after their last use,
    so memory stays what eager execution needs.
    """
    last_use = _last_uses(gm.graph)
    environment: dict[fx.Node, object] = {}
    feed = iter(inputs)
    for node in gm.graph.nodes:
        if before is not None:
            before(node)
        if node.op == "placeholder":
            value = _next_input(feed, node)
        elif node.op == "output":
            result = map_nodes(node.args[0], environment.__getitem__)
            return tuple(result) if isinstance(result, (tuple, list)) else (result,)
        else:
            value = run_node(gm, node, environment, call or _plain_call)
        environment[node] = after(node, value) if after is not None else value
        for dead in last_use.get(node, ()):
            del environment[dead]
    raise InternalError("a graph has no output", hint="call graph.output(tuple_of_values)")


def _plain_call(function: Callable[..., object], args: tuple[object, ...], kwargs: dict[str, object]) -> object:
    return function(*args, **kwargs)


def run_node(
    gm: fx.GraphModule, node: fx.Node, environment: Mapping[fx.Node, object], call: Call = _plain_call
) -> object:
    """Return the value of one call or attribute node, its arguments being in `environment`."""
    if node.op == "get_attr":
        return _attribute(gm, str(node.target))
    fill = map_nodes if isinstance(node.target, OpOverload) else _own
    args: tuple[object, ...] = fill(node.args, environment.__getitem__)
    kwargs: dict[str, object] = fill(node.kwargs, environment.__getitem__)
    if node.op == "call_function":
        return call(cast("Callable[..., object]", node.target), args, kwargs)
    if node.op == "call_method":
        return call(getattr(args[0], str(node.target)), args[1:], kwargs)
    if node.op == "call_module":
        return gm.get_submodule(str(node.target))(*args, **kwargs)
    raise InternalError(f"node {node.name} has the unknown kind {node.op!r}", hint="report the graph")


def _own(value: Any, fetch: Callable[[fx.Node], object]) -> Any:
    """Return an argument as the program gives it: a function may change its list, and what a graph holds cannot be."""
    if isinstance(value, fx.Node):
        return fetch(value)
    if isinstance(value, dict):
        return {key: _own(item, fetch) for key, item in value.items()}
    if isinstance(value, list):
        return [_own(item, fetch) for item in value]
    if type(value) is tuple:
        return tuple(_own(item, fetch) for item in value)
    return map_nodes(value, fetch)


def interpreted(gm: fx.GraphModule) -> Callable[..., tuple[object, ...]]:
    """Return a callable that interprets the graph."""
    return lambda *inputs: interpret(gm, inputs)


def run_op_by_op(gm: fx.GraphModule, example_inputs: Sequence[torch.Tensor]) -> Callable[..., Sequence[torch.Tensor]]:
    """Return a callable that runs an ATen graph through ATen, one call after the other: the backend of `aot_eager`."""
    del example_inputs
    gm.recompile()
    return cast("Callable[..., Sequence[torch.Tensor]]", as_function(gm))


def as_function(gm: fx.GraphModule) -> Callable[..., tuple[object, ...]]:
    """Return a graph as Python code, made now: torch leaves that to the first call, which threads may make at once."""
    if not all(map(_has_a_name, gm.graph.nodes)):
        return interpreted(gm)
    assert gm.code
    return cast("Callable[..., tuple[object, ...]]", gm.forward)


def _has_a_name(node: fx.Node) -> bool:
    """Return whether the function of a call can be written in Python by its name: `aten.random.from` cannot."""
    return node.op != "call_function" or not any(map(iskeyword, str(node.target).split(".")))


def _attribute(gm: fx.GraphModule, path: str) -> object:
    value: object = gm
    for part in path.split("."):
        value = getattr(value, part)
    return value


def _next_input(feed: object, node: fx.Node) -> object:
    for value in cast("Sequence[object]", feed):
        return value
    if node.args:
        return node.args[0]
    raise InternalError(f"no value was given for the input {node.name}", hint="pass one value per placeholder")


def _last_uses(graph: fx.Graph) -> dict[fx.Node, list[fx.Node]]:
    last: dict[fx.Node, fx.Node] = {}
    for node in graph.nodes:
        last.setdefault(node, node)
        for source in node.all_input_nodes:
            last[source] = node
    grouped: dict[fx.Node, list[fx.Node]] = {}
    for source, user in last.items():
        grouped.setdefault(user, []).append(source)
    return grouped
