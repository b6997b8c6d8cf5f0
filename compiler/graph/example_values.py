"""Example values of the nodes of a graph, computed on fake tensors where nobody has traced them."""

from collections.abc import Sequence

import torch
from torch import fx

from ..base.errors import InternalError
from ..base.torch_facts import FakeTensorMode
from .fx_nodes import map_nodes
from .graph_interpreter import interpret
from .node_values import has_value, placeholders, set_value, value_of
from .shapes.shape_rules import corrected
from .tracer import fake_like


def with_example_values(gm: fx.GraphModule, example_inputs: Sequence[object]) -> fx.GraphModule:
    """Return gm itself if every node has an example value, else a copy where they were computed on fake tensors."""
    if all(has_value(node) for node in gm.graph.nodes if node.op != "output"):
        return gm
    graph = fx.Graph()
    graph.output(graph.graph_copy(gm.graph, {}))
    copied = fx.GraphModule(gm, graph)
    mode = FakeTensorMode(allow_non_fake_inputs=True)
    fakes = [fake_like(value, mode) if isinstance(value, torch.Tensor) else value for value in example_inputs]
    if len(fakes) != len(placeholders(copied.graph)):
        raise InternalError("one example input per placeholder is needed", hint="pass as many as the graph has")

    def example_value(node: fx.Node, value: object) -> object:
        args, kwargs = map_nodes((node.args, node.kwargs), value_of)
        example = corrected(node.target, args, kwargs, value)
        set_value(node, example)
        return example

    with mode:
        interpret(copied, fakes, after=example_value)
    return copied
