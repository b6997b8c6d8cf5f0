"""The joint graph of a call with fewer tangents, cut out of the one with all of them.

A model that gives its loss and its logits is trained by its loss alone; the program need not be traced again for that.
A gradient that comes of absent tangents alone does not exist in eager, nor does what would be computed from it; where
it would be added to another one, that other one goes on alone. Nothing else may read both: a step that takes several
gradients may do anything where one of them is missing (zeros in its place, another formula), and then the program is
traced again.
"""

import operator
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import torch
from torch import fx

from ...base.torch_facts import lazy_module
from ...graph.dynamic_sizes import same_layout
from ...graph.facts import is_random
from ...graph.fx_nodes import add_output, copy_node
from ...graph.node_values import copy_facts, in_backward, outputs, placeholders, step_of, tensor_of
from ..joint import Traced

_ADD = torch.ops.aten.add.Tensor


def without_tangents(traced: Traced, pattern: Sequence[bool]) -> Traced | None:
    """Return the trace for the tangents that exist, None where the program has to be traced for them.

    traced: with all tangents.  pattern: which of them exist.
    """
    joint = traced.joint
    if traced.steps_of_several is None:
        return None
    tangents = placeholders(joint.graph.graph)[joint.inputs :]
    absent = {node for node, exists in zip(tangents, pattern, strict=True) if not exists}
    cut = _Cut(absent, set(tangents) - absent, traced.steps_of_several)
    results = outputs(joint.graph.graph)
    if not cut.take(joint.graph.graph) or not cut.are_gradients(results[joint.returned :]):
        return None
    graph = cut.graph(joint.graph.graph)
    kept = tuple(index for index, exists in zip(joint.tangents, pattern, strict=True) if exists)
    return replace(traced, joint=replace(joint, graph=lazy_module(joint.graph, graph), tangents=kept))


@dataclass(slots=True)
class _Cut:
    """What depends on absent tangents alone, and what on those that exist.

    several: the numbers of the steps that take several gradients.  instead: sums, and the part that is left of them.
    """

    absent: set[fx.Node]
    present: set[fx.Node]
    several: frozenset[int]
    instead: dict[fx.Node, fx.Node] = field(default_factory=dict)

    def take(self, graph: fx.Graph) -> bool:
        """Sort all calls; return whether each is one or the other."""
        return all(self._takes(node) for node in graph.nodes if node.op == "call_function")

    def _takes(self, node: fx.Node) -> bool:
        if in_backward(node) and is_random(node.target):
            return False  # how often it draws is what the next call sees
        sources = node.all_input_nodes
        lost = [source for source in sources if source in self.absent]
        exists = any(source in self.present for source in sources)
        if lost and node.target is not operator.getitem and step_of(node) in self.several:
            return False
        if lost and not exists:
            if _is_sum(node) and len(sources) > len(lost):
                return False  # of a gradient that is the same for every tangent
            self.absent.add(node)
            return True
        if lost:
            (other,) = (source for source in sources if source in self.present) if _is_sum(node) else (None,)
            if other is None or not _are_alike(other, node):
                return False
            self.instead[node] = self.instead.get(other, other)
        if exists:
            self.present.add(node)
        return True

    def are_gradients(self, results: Sequence[object]) -> bool:
        """Return whether each gradient exists, or does not, because of the tangents."""
        nodes = [part for part in results if isinstance(part, fx.Node)]
        return all(node in self.absent or node in self.present for node in nodes)

    def graph(self, old: fx.Graph) -> fx.Graph:
        """Return the graph without what depends on absent tangents."""
        graph = fx.Graph()
        new: dict[fx.Node, fx.Node] = {}
        for node in old.nodes:
            if node in self.absent or node.op == "output":
                continue
            if node in self.instead:
                new[node] = new[self.instead[node]]
                continue
            new[node] = copy_node(graph, node, new.__getitem__)
            copy_facts(node, new[node])
        results = [new.get(part) if isinstance(part, fx.Node) else part for part in outputs(old)]
        add_output(graph, results)
        return graph


def _is_sum(node: fx.Node) -> bool:
    """Return whether a call adds two tensors, as the engine does where a value was read twice."""
    return node.target is _ADD and len(node.args) == 2 and not node.kwargs and len(node.all_input_nodes) == 2


def _are_alike(part: fx.Node, whole: fx.Node) -> bool:
    """Return whether what was recorded of a sum is what would be recorded of its part: calls are chosen by layouts."""
    one, other = tensor_of(part), tensor_of(whole)
    return one.dtype == other.dtype and same_layout(one, other)
