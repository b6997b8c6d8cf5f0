"""Our gradients and code generation behind stock's capture: `torch.compile(model, backend="plumbline")`.

Stock finds the backend by the entry point `torch_dynamo_backends` of this package; nothing of stock is imported here.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import fx

from .autograd.compile import CompiledCall
from .backends import native_compiler
from .base.config import CONFIG
from .native import extra_decompositions


def torch_backend(
    graph: fx.GraphModule,
    example_inputs: Sequence[object],
    *,
    options: Mapping[str, Any] | None = None,
    mode: str | None = None,
) -> Callable[..., tuple[object, ...]]:
    """Return a callable of the meaning of a graph that stock captured, with a compiled backward where one is needed.

    options: fields of `plumbline.config`. mode: accepted, and changes nothing.  Compiles when it is first called with
    inputs of a kind: stock gives examples without data, and promises less about later calls than our own capture.
    Raises UnknownOption for an option that does not exist.
    """
    del example_inputs, mode
    chosen = CONFIG.over_environment(options)()
    lifted, constants = _every_tensor_an_input(graph)
    compiled = CompiledCall(lifted, native_compiler(chosen), chosen, extra_decompositions, recompute=True)
    return lambda *inputs: compiled(*inputs, *constants)


def _every_tensor_an_input(graph: fx.GraphModule) -> tuple[fx.GraphModule, list[torch.Tensor]]:
    """Return a copy of the graph with the tensors of the module as its last inputs, and these tensors."""
    copied = fx.Graph()
    names: dict[fx.Node, fx.Node] = {}
    for node in graph.graph.nodes:
        if node.op == "placeholder":
            names[node] = copied.node_copy(node)
    attributes = {node: _attribute(graph, str(node.target)) for node in graph.graph.nodes if node.op == "get_attr"}
    tensors = {node: value for node, value in attributes.items() if isinstance(value, torch.Tensor)}
    for node in tensors:
        names[node] = copied.placeholder(f"held_{node.name}")
    for node in graph.graph.nodes:
        if node not in names and node.op != "output":
            names[node] = copied.node_copy(node, lambda old: names[old])
    results = fx.map_arg(graph.graph.output_node().args[0], lambda old: names[old])
    copied.output(tuple(results) if isinstance(results, list | tuple) else (results,))
    return fx.GraphModule(graph, copied), list(tensors.values())


def _attribute(graph: fx.GraphModule, path: str) -> object:
    value: object = graph
    for part in path.split("."):
        value = getattr(value, part)
    return value
