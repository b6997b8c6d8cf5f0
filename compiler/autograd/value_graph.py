"""The graph that functionalisation writes: calls of operators without writes, each with its example value."""

import operator
from collections.abc import Mapping
from dataclasses import dataclass, field

import torch
from torch import fx

from ..base.torch_facts import FakeTensorMode
from ..graph.fx_nodes import add_call, map_nodes
from ..graph.node_values import copy_facts, in_backward, mark_backward, set_value, value_of
from ..graph.shapes.shape_rules import fake_result
from .view_writes import ViewStep


@dataclass(slots=True)
class ValueGraph:
    """A graph that grows at its end; inputs stay in front.

    recorded: the recorded node that is being taken in; new nodes have its facts, its place in the program among them.
    """

    mode: FakeTensorMode
    graph: fx.Graph = field(default_factory=fx.Graph)
    recorded: fx.Node | None = None
    _inputs: list[fx.Node] = field(default_factory=list)

    def add_input(self, node: fx.Node) -> fx.Node:
        """Add a placeholder for a recorded one, behind those that are there."""
        if self._inputs:
            self.graph.inserting_after(self._inputs[-1])
        elif len(self.graph.nodes):
            self.graph.inserting_before(next(iter(self.graph.nodes)))
        new = self.graph.placeholder(node.name)
        self.graph.inserting_after()  # back to the end
        copy_facts(node, new)
        self._inputs.append(new)
        return new

    def emit(self, target: object, args: object, kwargs: object | None = None, value: object = None) -> fx.Node:
        """Add a call; value: its example value, computed on fake tensors where it is None."""
        assert callable(target)
        assert isinstance(args, tuple)
        named = kwargs if isinstance(kwargs, Mapping) else {}
        if value is None:
            with self.mode, torch.no_grad():
                value = fake_result(target, map_nodes(args, value_of), map_nodes(dict(named), value_of))
        node = add_call(self.graph, target, args, named)
        if self.recorded is not None:
            copy_facts(self.recorded, node)
            if in_backward(self.recorded):
                mark_backward(node)
        set_value(node, value)
        return node

    def take_view(self, step: ViewStep, source: fx.Node, example: torch.Tensor) -> fx.Node:
        """Add the calls that take a view; example: its example value."""
        if step.index is None:
            return self.emit(step.target, (source, *step.args), dict(step.kwargs), example)
        whole = self.emit(step.target, (source, *step.args), dict(step.kwargs))
        return self.emit(operator.getitem, (whole, step.index), {}, example)
