"""A joint graph becomes a forward and a backward graph; a minimum cut decides what the forward keeps.

Every value that backward needs is either kept or computed again from kept values. The cut over "bytes kept" is the
least memory (the formulation is that of Chen et al. 2016's recomputation as a flow problem). Four things are outside
the trade: what must not run twice (costs.is_recomputable); what a comparison or a rounding rests on, which has to come
out as it did in the forward (costs.decided_by); views, which are taken again and never kept; and values
that the caller can see (inputs, outputs): they are kept only if backward itself reads them, as eager would, so that a
caller's later write raises or does not raise exactly as in eager.  Of an input that backward does not read a copy may
be kept: without it one bias would stand in the way of computing again all that was added to it.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import torch
from torch import fx

from ..base.bisecting.applications import Gate
from ..base.dense_order import dense_order
from ..base.events import Partitioned, record
from ..base.torch_facts import lazy_module
from ..graph.aliasing import memory_root
from ..graph.facts import is_random
from ..graph.fx_nodes import add_call, add_output, copy_node, map_nodes
from ..graph.node_values import copy_facts, in_backward, origin_of, outputs, placeholders, tensor_of
from ..graph.passes import may_be_dropped
from .costs import ALIVE_ANYWAY, decided_by, is_expensive, is_keepable, is_recomputable, is_repeatable, kept_bytes
from .flow_network import INFINITE, FlowNetwork


@dataclass(frozen=True, slots=True)
class JointGraph:
    """Forward and gradients in one functional graph.

    Placeholders: `inputs` tensors of the call (constants included), then one tangent for each entry of `tangents`.
    Outputs: `returned` values of the forward, then one gradient or None per input.
    tangents: which returned values have a tangent.  escaping: which returned values the caller will see.
    written: which inputs the call overwrites after the forward.
    """

    graph: fx.GraphModule
    inputs: int
    returned: int
    tangents: tuple[int, ...]
    escaping: tuple[int, ...]
    written: frozenset[int]


@dataclass(frozen=True, slots=True)
class Partition:
    """forward: inputs -> returned values, then kept ones.  backward: kept values, tangents -> gradients.

    kept: for each kept value where it is found: ("input", i), ("returned", i) or ("extra", i), i counting the extra
    outputs of forward.  stamps: the kept values' identities across traces of the same program (see joint).
    """

    forward: fx.GraphModule
    backward: fx.GraphModule
    kept: tuple[tuple[str, int], ...]
    stamps: tuple[int | str, ...]


def partition(joint: JointGraph, *, recompute: bool = True, budget: float = 1.0, gate: Gate | None = None) -> Partition:
    """Cut a joint graph; see the file's first lines for the rules.

    budget: the share, 0 to 1, of the bytes of that cut that may be kept; below 1 expensive calls are run again too.
    gate: asked for each value that backward would compute again.
    """
    sides = _Sides.of(joint)
    kept = _minimum_cut(joint, sides, recompute=recompute)
    if budget < 1.0:
        kept = _within_budget(joint, sides, kept, budget)
    if gate is not None:
        kept = _kept_where_asked(joint, sides, kept, gate, recompute=recompute)
    backward = backward_graph(joint, kept)
    used = {node.name for node in placeholders(backward.graph) if node.users}
    kept = [node for node in kept if node.name in used]
    backward = backward_graph(joint, kept)
    forward, places = _forward_graph(joint, sides, kept)
    bytes_kept = sum(kept_bytes(kept[n]) for n, (kind, _) in enumerate(places) if kind != "input")
    again = sum(1 for node in backward.graph.nodes if node.op == "call_function" and not in_backward(node))
    record(Partitioned(bytes_kept, len(kept), again))
    return Partition(forward, backward, tuple(places), tuple(stamp_of(node) for node in kept))


def _kept_where_asked(
    joint: JointGraph, sides: "_Sides", kept: list[fx.Node], gate: Gate, *, recompute: bool
) -> list[fx.Node]:
    """Return a cut in which what the gate refuses is not computed again; views, which are never kept, are not asked."""
    refused: set[fx.Node] = set()
    asked: set[str] = set()
    while True:
        again = {node.name for node in backward_graph(joint, kept).graph.nodes if not in_backward(node)}
        new = [n for n in joint.graph.graph.nodes if n.name in again - asked and n.op == "call_function"]
        asked |= again
        off = {node for node in new if is_keepable(node) and not _may_run_again(node, gate)}
        if not off:
            return kept
        refused |= off
        kept = _minimum_cut(joint, sides, recompute=recompute, held=frozenset(refused))


def _may_run_again(node: fx.Node, gate: Gate) -> bool:
    origin = origin_of(node)
    what = f"computed {node.name} ({node.target}) again in backward"
    return gate.allows("recompute", what, rule="partition", place=origin.place() if origin is not None else "")


def stamp_of(node: fx.Node) -> int | str:
    """Return what identifies a forward value in every trace of the same program."""
    stamp = node.meta.get("stamp")
    return stamp if isinstance(stamp, int | str) else node.name


@dataclass(frozen=True, slots=True)
class _Sides:
    """required: nodes the forward must run.  after: nodes that eager runs in the backward, as we do."""

    inputs: list[fx.Node]
    tangents: list[fx.Node]
    returned: list[object]
    gradients: list[object]
    required: set[fx.Node]
    after: set[fx.Node]

    @staticmethod
    def of(joint: JointGraph) -> "_Sides":
        graph = joint.graph.graph
        parameters = placeholders(graph)
        inputs, tangents = parameters[: joint.inputs], parameters[joint.inputs :]
        results = list(outputs(graph))
        returned, gradients = results[: joint.returned], results[joint.returned :]
        after = set(tangents)
        for node in graph.nodes:  # the output is neither: to be returned is not to be read by the backward
            late = in_backward(node) or any(source in after for source in node.all_input_nodes)
            if node.op == "call_function" and late:  # a constant of the backward is an input all the same
                after.add(node)
        calls = [n for n in graph.nodes if n not in after and n.op == "call_function"]
        noticed = [n for n in calls if is_random(n.target) or not (n.users or may_be_dropped(n))]
        required = _ancestors([part for part in returned if isinstance(part, fx.Node)] + noticed)
        return _Sides(inputs, tangents, returned, gradients, required, after)


def _ancestors(nodes: Iterable[fx.Node]) -> set[fx.Node]:
    ancestors: set[fx.Node] = set()
    pending = list(nodes)
    while pending:
        node = pending.pop()
        if node not in ancestors:
            ancestors.add(node)
            pending.extend(node.all_input_nodes)
    return ancestors


def _within_budget(joint: JointGraph, sides: _Sides, kept: list[fx.Node], budget: float) -> list[fx.Node]:
    """Return a cut that keeps at most a share of what `kept` costs, or as little as can be.

    Expensive calls are let go one after the other, the cheapest for the memory they free first; each makes the cut
    smaller or leaves it as it is, so the fewest that do are found by halving.
    """
    visible = _visible_roots(joint, sides)

    def cost(values: list[fx.Node]) -> int:
        copied = _copied_inputs(joint, sides, values)
        return sum(kept_bytes(node) for node in values if node not in visible or node in copied)

    limit = budget * cost(kept)
    if cost(kept) <= limit:
        return kept
    dear = [n for n in joint.graph.graph.nodes if not is_recomputable(n, recompute=True) and is_repeatable(n)]
    dear.sort(key=lambda node: (is_expensive(node), -kept_bytes(node) if is_keepable(node) else 0))
    fewest, most = 1, len(dear)
    best = _minimum_cut(joint, sides, recompute=True, repeated=frozenset(dear))
    while fewest < most:
        middle = (fewest + most) // 2
        trial = _minimum_cut(joint, sides, recompute=True, repeated=frozenset(dear[:middle]))
        if cost(trial) <= limit:
            best, most = trial, middle
        else:
            fewest = middle + 1
    return best


def _minimum_cut(
    joint: JointGraph,
    sides: _Sides,
    *,
    recompute: bool,
    repeated: frozenset[fx.Node] = frozenset(),
    held: frozenset[fx.Node] = frozenset(),
) -> list[fx.Node]:
    """Return the values to keep, in graph order.

    repeated: calls that may run again although they are expensive.  held: those that must not run again.
    """
    candidates = _candidates(joint, sides)
    decisive = decided_by(_needed_late(joint, sides))
    read = _read_by_backward(sides, candidates)
    visible = _visible_roots(joint, sides)
    network = FlowNetwork()
    source, sink = network.add_node(), network.add_node()
    entry = {node: network.add_node() for node in candidates}
    leave = {node: network.add_node() for node in candidates}
    for node in candidates:
        network.add_edge(entry[node], leave[node], _capacity(node, node in visible, node in read))
        if (
            node in held
            or node in decisive
            or (node not in repeated and not is_recomputable(node, recompute=recompute))
        ):
            network.add_edge(source, entry[node], INFINITE)
        if node in read:
            network.add_edge(leave[node], sink, INFINITE)
        for user in node.users:
            if user in entry:
                network.add_edge(leave[node], entry[user], INFINITE)
    _, before = network.minimum_cut(source, sink)
    return [node for node in candidates if entry[node] in before and leave[node] not in before]


def _candidates(joint: JointGraph, sides: _Sides) -> list[fx.Node]:
    """Return the values of the forward that lead to a gradient."""
    return [node for node in _needed_late(joint, sides) if node not in sides.after]


def _needed_late(joint: JointGraph, sides: _Sides) -> list[fx.Node]:
    """Return what leads to a gradient, in graph order."""
    needed_late = _ancestors(part for part in sides.gradients if isinstance(part, fx.Node))
    return [node for node in joint.graph.graph.nodes if node in needed_late]


def _capacity(node: fx.Node, visible: bool, read: bool) -> int:
    if not is_keepable(node):
        return INFINITE
    if not visible:
        return kept_bytes(node)
    if read:
        return ALIVE_ANYWAY
    return kept_bytes(node) * _COPYING if _can_be_copied(node) else INFINITE


def _can_be_copied(node: fx.Node) -> bool:
    """Return whether a value is an input of which a copy lies in memory as it does."""
    value = tensor_of(node)
    numbers = all(isinstance(each, int) for each in (*value.shape, *value.stride()))
    return node.op == "placeholder" and numbers and dense_order(value.shape, value.stride()) is not None


_COPYING = 2  # a copy is written too, so it has to save more than what it takes


def _copied_inputs(joint: JointGraph, sides: _Sides, kept: Sequence[fx.Node]) -> set[fx.Node]:
    """Return the kept inputs that backward does not read itself, or that are overwritten: copies of them are kept."""
    read = _read_by_backward(sides, _candidates(joint, sides))
    places = {node: number for number, node in enumerate(sides.inputs)}
    return {node for node in kept if node in places and (places[node] in joint.written or node not in read)}


def _read_by_backward(sides: _Sides, candidates: list[fx.Node]) -> set[fx.Node]:
    """Return the values that backward itself reads, directly or through views, and those that are gradients."""
    known = set(candidates)
    late = [n for n in candidates if any(user in sides.after for user in n.users)]
    late += [part for part in sides.gradients if isinstance(part, fx.Node) and part in known]
    read: set[fx.Node] = set(late)
    for node in late:
        root = memory_root(node)
        if root in known and root is not node:
            read.add(root)
    return read


def _visible_roots(joint: JointGraph, sides: _Sides) -> set[fx.Node]:
    """Return inputs and the memory of what the caller gets; a written input's old content is not visible any more."""
    visible = {node for index, node in enumerate(sides.inputs) if index not in joint.written}
    for index in joint.escaping:
        part = sides.returned[index]
        if isinstance(part, fx.Node):
            visible.add(memory_root(part))
    return visible


def _forward_graph(
    joint: JointGraph, sides: _Sides, kept: Sequence[fx.Node]
) -> tuple[fx.GraphModule, list[tuple[str, int]]]:
    """Build the forward, with copies of the inputs that may be written to before backward runs."""
    graph = fx.Graph()
    new: dict[fx.Node, fx.Node] = {}
    needed = sides.required | _ancestors(kept) | set(sides.inputs)
    for node in joint.graph.graph.nodes:
        if node in needed:
            new[node] = copy_node(graph, node, new.__getitem__)
            copy_facts(node, new[node])
    places: list[tuple[str, int]] = []
    extra: list[fx.Node] = []
    copied = _copied_inputs(joint, sides, kept)
    inputs = {node: place for place, node in enumerate(sides.inputs)}
    returned_at: dict[object, int] = {}
    for place, part in enumerate(sides.returned):
        if isinstance(part, fx.Node):
            returned_at.setdefault(part, place)
    for node in kept:
        if node in inputs and node not in copied:
            places.append(("input", inputs[node]))
        elif node in returned_at:
            places.append(("returned", returned_at[node]))
        else:
            places.append(("extra", len(extra)))
            extra.append(_copied(graph, new[node]) if node in inputs else new[node])
    returned = map_nodes(tuple(sides.returned), new.__getitem__)
    add_output(graph, [*returned, *extra])
    return lazy_module(joint.graph, graph), places


def _copied(graph: fx.Graph, node: fx.Node) -> fx.Node:
    new = add_call(graph, torch.ops.aten.clone.default, (node,))
    copy_facts(node, new)
    return new


def backward_graph(joint: JointGraph, kept: Sequence[fx.Node]) -> fx.GraphModule:
    """Build the backward from kept values and tangents; calls stand as late as their first reader allows."""
    old = joint.graph.graph
    inputs = placeholders(old)
    gradients = outputs(old)[joint.returned :]
    graph = fx.Graph()
    new: dict[fx.Node, fx.Node] = {}
    for node in (*kept, *inputs[joint.inputs :]):
        new[node] = graph.placeholder(node.name)
        copy_facts(node, new[node])
    needed = _needed(gradients, set(new))
    for node in old.nodes:
        if node in needed and in_backward(node):
            _copy_with_sources(graph, node, new)
    for part in gradients:
        if isinstance(part, fx.Node):
            _copy_with_sources(graph, part, new)
    add_output(graph, map_nodes(tuple(gradients), new.__getitem__))
    return lazy_module(joint.graph, graph)


def _needed(gradients: Sequence[object], known: set[fx.Node]) -> set[fx.Node]:
    needed: set[fx.Node] = set()
    pending = [part for part in gradients if isinstance(part, fx.Node)]
    while pending:
        node = pending.pop()
        if node not in needed and node not in known:
            needed.add(node)
            pending.extend(node.all_input_nodes)
    return needed


def _copy_with_sources(graph: fx.Graph, node: fx.Node, new: dict[fx.Node, fx.Node]) -> None:
    """Copy a node after whatever it reads; iterative, for graphs are deeper than Python's stack."""
    stack = [node]
    while stack:
        here = stack[-1]
        if here in new:
            stack.pop()
            continue
        missing = [source for source in here.all_input_nodes if source not in new]
        if missing:
            stack.extend(reversed(missing))
            continue
        new[here] = copy_node(graph, here, new.__getitem__)
        copy_facts(here, new[here])
        stack.pop()
