"""How far the gradients of results reach: found in a traced joint graph, told as `GradientPaths`."""

from torch import fx

from ...graph.node_values import outputs, placeholders
from ..joint import Traced
from .gradient_paths import GradientPaths


def gradient_paths(traced: Traced, graph: fx.Graph, hooked: bool) -> GradientPaths:
    """Return which tangents lead to which gradients; graph: forward and gradients together."""
    joint = traced.joint
    reach: dict[fx.Node, int] = {node: 1 << place for place, node in enumerate(placeholders(graph)[joint.inputs :])}
    every = (1 << len(reach)) - 1
    for node in graph.nodes:
        for source in node.all_input_nodes:
            reach[node] = reach.get(node, 0) | reach.get(source, 0)
    parts = zip(traced.gradients_of, outputs(graph)[joint.returned :], strict=True)
    found = {place: reach.get(part, 0) for place, part in parts if isinstance(part, fx.Node)}
    unreached = frozenset(range(len(traced.signature.inputs))) - traced.visited if traced.visited else frozenset[int]()
    return GradientPaths(unreached, any(tangents != every for tangents in found.values()), hooked)
