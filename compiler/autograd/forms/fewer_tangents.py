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
from ...graph.dynamic_sizes import same_layout, same_number
from ...graph.facts import is_random
from ...graph.fx_nodes import add_output, copy_node, map_nodes
from ...graph.node_values import copy_facts, in_backward, outputs, placeholders, set_value, step_of, tensor_of, value_of
from ...graph.shapes.shape_rules import fake_result
from ..joint import Traced

aten = torch.ops.aten

_ADD = aten.add.Tensor
_READ_MEMORY_AS_IT_LIES = frozenset(
    {
        aten.as_strided.default,
        aten.as_strided_copy.default,
        aten.as_strided_scatter.default,
        aten._reshape_alias.default,
        aten._reshape_alias_copy.default,
    }
)


def without_tangents(traced: Traced, pattern: Sequence[bool]) -> Traced | None:
    """Return the trace for the tangents that exist, None where the program has to be traced for them.

    traced: with all tangents; what is asked of its dynamic sizes may grow.  pattern: which of them exist.
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
    with traced.sizes.mode, torch.no_grad():
        graph = cut.graph(joint.graph.graph)
    if graph is None:
        return None
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
        if node.target is aten._efficientzerotensor.default:
            return False  # a gradient to which it was added is recorded as that one alone
        sources = node.all_input_nodes
        lost = [source for source in sources if source in self.absent]
        left = [source for source in sources if source in self.present]
        if not lost:
            if left:
                self.present.add(node)
            return not _is_sum(node) or len(left) != 1 or _is_of_one_step(node)
        if node.target is not operator.getitem and step_of(node) in self.several:
            return False
        if not left:
            self.absent.add(node)
            return not _is_sum(node) or len(lost) == 2 or _is_of_one_step(node)
        if not _is_sum(node) or not _are_alike(left[0], node):
            return False
        self.instead[node] = left[0]
        self.present.add(node)
        return True

    def are_gradients(self, results: Sequence[object]) -> bool:
        """Return whether each gradient exists, or does not, because of the tangents."""
        nodes = [part for part in results if isinstance(part, fx.Node)]
        return all(node in self.absent or node in self.present for node in nodes)

    def graph(self, old: fx.Graph) -> fx.Graph | None:
        """Return the graph without what depends on absent tangents; to be called where fake tensors are made."""
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
            moved = any(not _lie_alike(source, new[source]) for source in node.all_input_nodes)
            if moved and not _described_anew(new[node], node):
                return None
            if moved and _is_idle_copy(new[node]):
                copy, new[node] = new[node], new[node].all_input_nodes[0]
                graph.erase_node(copy)
        add_output(graph, [new.get(part) if isinstance(part, fx.Node) else part for part in outputs(old)])
        return graph


def _is_sum(node: fx.Node) -> bool:
    """Return whether a call adds two tensors, as the engine does where a value was read twice."""
    return node.target is _ADD and len(node.args) == 2 and not node.kwargs and len(node.all_input_nodes) == 2


def _is_of_one_step(node: fx.Node) -> bool:
    """Return whether a sum is part of a formula: else it adds a gradient that is the same whatever the tangents are."""
    return all(step_of(source) == step_of(node) for source in node.all_input_nodes)


def _are_alike(part: fx.Node, whole: fx.Node) -> bool:
    one, other = tensor_of(part), tensor_of(whole)
    pairs = zip(one.shape, other.shape, strict=True) if one.dim() == other.dim() else ()
    return one.dtype == other.dtype and one.dim() == other.dim() and all(same_number(*pair) for pair in pairs)


def _lie_alike(node: fx.Node, new: fx.Node) -> bool:
    return all(map(same_layout, _tensors(node), _tensors(new)))


def _tensors(node: fx.Node) -> list[torch.Tensor]:
    value = value_of(node)
    parts = value if isinstance(value, tuple | list) else (value,)
    return [part for part in parts if isinstance(part, torch.Tensor)]


def _described_anew(node: fx.Node, like: fx.Node) -> bool:
    """Write down what a call gives for operands that lie otherwise; return whether it is the same call then."""
    if node.target in _READ_MEMORY_AS_IT_LIES:
        return False
    assert callable(node.target)
    try:
        value = fake_result(node.target, map_nodes(node.args, value_of), map_nodes(node.kwargs, value_of))
    except Exception:  # whatever it refuses, another call was made instead
        return False
    set_value(node, value)
    return len(_tensors(node)) == len(_tensors(like)) and all(
        one.dtype == other.dtype and list(map(str, one.shape)) == list(map(str, other.shape))
        for one, other in zip(_tensors(node), _tensors(like), strict=True)
    )


def _is_idle_copy(node: fx.Node) -> bool:
    """Return whether a call copies what lies already as the copy is asked to lie: autograd would not have made it."""
    return node.target is aten.clone.default and same_layout(tensor_of(node.all_input_nodes[0]), tensor_of(node))
