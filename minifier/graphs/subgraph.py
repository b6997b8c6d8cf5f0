"""Parts of a graph as cases of their own: chosen operators are computed, everything else is a recorded value.

A value that is cut off becomes an input that holds what eager computed there, copied at the moment it was computed.
"""

import operator
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass

import torch
from torch import fx

from plumbline.compiler.graph.fx_nodes import map_leaves
from plumbline.compiler.graph.graph_interpreter import interpret
from plumbline.compiler.graph.node_values import calls, outputs, placeholders, set_value
from plumbline.oracle.harness.captured_graphs import cloned_inputs
from plumbline.oracle.numeric.bits import equal_bits
from plumbline.oracle.state.scope import seed_everything

from .graph_case import SEED, GraphCase, attribute_of, is_part

_LITERALS = (int, float, complex, bool, str, type(None), torch.dtype, torch.device, torch.layout, torch.memory_format)


@dataclass(frozen=True, slots=True, eq=False)
class Trace:
    """One eager run of a case: the value of every node, as it was when it was computed."""

    case: GraphCase
    values: dict[fx.Node, object]

    def tensor_nodes(self) -> list[fx.Node]:
        """Return the calls that give one tensor, in order, parts of results included."""
        nodes = self.case.graph.graph.nodes
        return [n for n in nodes if n.op.startswith("call_") and isinstance(self.values.get(n), torch.Tensor)]


def settled_nodes(trace: Trace) -> list[fx.Node]:
    """Return the tensor nodes whose value at the end of a run is what it was when it was computed.

    The others are written to later; observed at the end they would blame the wrong operator.
    """
    nodes = trace.tensor_nodes()
    everything = subgraph(trace, trace.case.ops(), nodes)
    seed_everything(SEED)
    last = everything.run(*everything.fresh_inputs())
    return [node for node, value in zip(nodes, last, strict=True) if _unchanged(trace.values[node], value)]


def _unchanged(before: object, after: object) -> bool:
    assert isinstance(before, torch.Tensor)
    assert isinstance(after, torch.Tensor)
    return before.shape == after.shape and before.dtype == after.dtype and equal_bits(before, after)


def record(case: GraphCase) -> Trace:
    """Run a case eagerly and keep a copy of every value; also writes each node's example value beside it.

    Raises whatever the graph raises.
    """
    values: dict[fx.Node, object] = {}

    def keep(node: fx.Node, value: object) -> object:
        values[node] = _copied(value)
        set_value(node, values[node])
        return value

    grad = torch.is_grad_enabled()
    seed_everything(SEED)
    try:
        interpret(case.graph, case.fresh_inputs(), after=keep)
    finally:
        torch.set_grad_enabled(grad)
    return Trace(case, values)


def _copied(value: object) -> object:
    if isinstance(value, torch.Tensor):
        return cloned_inputs((value,))[0]
    if type(value) is list:
        return [_copied(part) for part in value]
    if isinstance(value, tuple):  # torch.Size and torch.return_types too
        return tuple(_copied(part) for part in value)
    return value


def subgraph(
    trace: Trace,
    keep: Collection[fx.Node],
    results: Sequence[fx.Node] | None = None,
    *,
    watched: fx.Node | None = None,
) -> GraphCase:
    """Return the case that computes the operators `keep` and takes everything else they read as recorded inputs.

    results: the nodes to give; by default those of the graph's own results that are kept, and every kept operator
    whose result nobody kept reads (else a compiler would drop it as dead).
    watched: a node to give besides.
    """
    chosen = _closed(trace, keep)
    nodes = [n for n in trace.case.graph.graph.nodes if n in chosen]
    result_nodes = list(results) if results is not None else _results(trace, chosen, nodes)
    if watched is not None and watched not in result_nodes:
        result_nodes.append(watched)
    return _SubgraphBuilder(trace, chosen).build(nodes, result_nodes)


def cone_levels(node: fx.Node) -> list[list[fx.Node]]:
    """Return the operators that `node` depends on by distance from it: `[[node], [its direct inputs], ...]`."""
    levels: list[list[fx.Node]] = []
    seen: set[fx.Node] = set()
    level = [_whole(node)]
    while level:
        seen.update(level)
        levels.append(level)
        sources = [_whole(source) for here in level for source in here.all_input_nodes]
        level = [s for s in dict.fromkeys(sources) if s not in seen and s.op.startswith("call_")]
    return levels


def neighbours(node: fx.Node) -> list[fx.Node]:
    """Return all operators of a graph, the nearest to `node` first: over those that read and those that are read."""
    found = dict.fromkeys([_whole(node)])
    for here in (waiting := list(found)):
        around = [_whole(source) for source in here.all_input_nodes] + _readers(here)
        near = [other for other in around if other.op.startswith("call_") and other not in found]
        found.update(dict.fromkeys(near))
        waiting.extend(dict.fromkeys(near))
    apart = (op for op in node.graph.nodes if op.op.startswith("call_") and not is_part(op) and op not in found)
    return [*found, *apart]


def _readers(node: fx.Node) -> list[fx.Node]:
    """Return the operators that read a node or a part of it."""
    readers = list(node.users)
    for user in readers:
        if is_part(user):
            readers.extend(user.users)
    return [reader for reader in readers if not is_part(reader)]


def _whole(node: fx.Node) -> fx.Node:
    """Return the call that a part was taken from; any other node itself."""
    while is_part(node):
        source = node.args[0]
        assert isinstance(source, fx.Node)
        node = source
    return node


def _closed(trace: Trace, keep: Iterable[fx.Node]) -> set[fx.Node]:
    """Add parts of kept calls, and producers of values that no input can hold (contexts, generators, modules)."""
    chosen: set[fx.Node] = set()
    waiting = list(keep)
    while waiting:
        node = waiting.pop()
        if node in chosen:
            continue
        chosen.add(node)
        waiting += [user for user in node.users if is_part(user)]
        for source in node.all_input_nodes:
            if source.op != "placeholder" and not _can_stand_in(trace.values.get(source)):
                waiting.append(source)
    return chosen


def _can_stand_in(value: object) -> bool:
    if isinstance(value, (tuple, list)):
        return all(_can_stand_in(part) for part in value)
    return isinstance(value, (torch.Tensor, slice, *_LITERALS))


def _results(trace: Trace, chosen: set[fx.Node], nodes: list[fx.Node]) -> list[fx.Node]:
    own = [node for node in outputs(trace.case.graph.graph) if isinstance(node, fx.Node) and node in chosen]
    ends = [node for node in nodes if not any(user in chosen for user in node.users)]
    return list(dict.fromkeys([*own, *ends]))


class _SubgraphBuilder:
    """Builds one subgraph: inputs first, then the kept nodes, then the results."""

    def __init__(self, trace: Trace, chosen: set[fx.Node]) -> None:
        self.trace = trace
        self.chosen = chosen
        self.graph = fx.Graph()
        self.mapping: dict[fx.Node, object] = {}
        self.inputs: list[object] = []

    def build(self, nodes: list[fx.Node], results: list[fx.Node]) -> GraphCase:
        outside = [s for node in nodes for s in node.all_input_nodes if s not in self.chosen]
        input_values = dict(zip(placeholders(self.trace.case.graph.graph), self.trace.case.inputs, strict=True))
        used = set(outside)
        for node, value in input_values.items():
            if node in used:
                self.mapping[node] = self._input(node, value)
        for source in dict.fromkeys(outside):
            if source not in self.mapping:
                self.mapping[source] = self._stand_in(source, self.trace.values[source])
        for node in nodes:
            new = self.graph.node_copy(node, lambda source: self.mapping[source])  # type: ignore[arg-type, return-value]  # literals stand in for cut-off values
            new.meta = dict(node.meta)
            self.mapping[node] = new
        self.graph.output(tuple(result for node in results for result in self._tensors(node)))
        return GraphCase(fx.GraphModule(self._attributes(nodes), self.graph), tuple(self.inputs))

    def _input(self, node: fx.Node, value: object) -> fx.Node:
        new = self.graph.placeholder(node.name)
        new.target = new.name  # several inputs may hold parts of one value
        new.meta = dict(node.meta)
        self.inputs.append(value)
        return new

    def _stand_in(self, source: fx.Node, value: object) -> object:
        if isinstance(value, torch.Tensor):
            return self._input(source, value)
        if isinstance(value, (tuple, list)):
            parts = [self._stand_in(source, part) for part in value]
            return parts if isinstance(value, list) else tuple(parts)
        return value

    def _tensors(self, node: fx.Node) -> list[fx.Node]:
        """Return what a result node gives as plain tensors; a call with several results gives each of its parts."""
        value, new = self.trace.values.get(node), self.mapping[node]
        assert isinstance(new, fx.Node)
        if isinstance(value, torch.Tensor):
            return [new]
        if not isinstance(value, (tuple, list)):
            return []
        parts = [self.mapping[user] for user in node.users if is_part(user) and user in self.mapping]
        if parts:
            return [part for part in parts if isinstance(part, fx.Node) and _is_tensor(part)]
        pieces = []
        for index, part in enumerate(value):
            if isinstance(part, torch.Tensor):
                piece = self.graph.call_function(operator.getitem, (new, index))
                set_value(piece, part)
                pieces.append(piece)
        return pieces

    def _attributes(self, nodes: list[fx.Node]) -> dict[str, object]:
        named = [str(node.target) for node in nodes if node.op in ("get_attr", "call_module")]
        return {name: attribute_of(self.trace.case.graph, name) for name in named}


def _is_tensor(node: fx.Node) -> bool:
    return isinstance(node.meta.get("val"), torch.Tensor)


def bypassed(case: GraphCase, node: fx.Node, by: fx.Node) -> GraphCase:
    """Return the case with every use of `node` reading `by` instead, and whatever is then unread left out."""
    graph, mapping = _copied_graph(case.graph.graph)
    new = mapping[node]
    new.replace_all_uses_with(mapping[by])
    read_before = {mapping[old] for old in case.graph.graph.nodes if old.users}
    for dead in reversed(list(graph.nodes)):
        if not dead.users and dead.op != "output" and (dead in read_before or dead.op == "placeholder"):
            graph.erase_node(dead)
    left = {each.name for each in graph.nodes if each.op == "placeholder"}
    named = zip(placeholders(case.graph.graph), case.inputs, strict=True)
    inputs = tuple(value for old, value in named if mapping[old].name in left)
    return GraphCase(fx.GraphModule(case.graph, graph), inputs)


def rewritten(case: GraphCase, inputs: Sequence[object], change: Callable[[object], object]) -> GraphCase:
    """Return the case with other input values, and every literal in a call's arguments passed through `change`."""
    graph, _ = _copied_graph(case.graph.graph)
    for node in calls(graph):
        node.args = map_leaves(node.args, change)
        node.kwargs = map_leaves(dict(node.kwargs), change)
    return GraphCase(fx.GraphModule(case.graph, graph), tuple(inputs))


def _copied_graph(graph: fx.Graph) -> tuple[fx.Graph, dict[fx.Node, fx.Node]]:
    copied = fx.Graph()
    mapping: dict[fx.Node, fx.Node] = {}
    for node in graph.nodes:
        mapping[node] = copied.node_copy(node, mapping.__getitem__)
        mapping[node].meta = dict(node.meta)
    return copied, mapping
