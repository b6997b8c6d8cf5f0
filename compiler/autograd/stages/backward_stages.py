"""A backward graph is cut into stages that run one after the other, so that what follows a gradient can start early.

Stage s computes what the gradients of bucket s need and no stage before has computed. So the stages together do each
call once, for any graph. What later stages read is handed on.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import torch
from torch import fx

from ...base.torch_facts import lazy_module
from ...graph.aliasing import memory_root
from ...graph.facts import is_random
from ...graph.fx_nodes import add_call, add_output, copy_node
from ...graph.node_values import copy_facts, is_tensor, outputs, placeholders


@dataclass(frozen=True, slots=True)
class BackwardStage:
    """A part of a backward.

    graph: kept values in `reads`, tangents in `tangents`, handed values in `takes` -> gradients in `gradients` (places
    among the outputs of the whole), then handed values in `gives`.  ends: handed values that no later stage takes.
    """

    graph: fx.GraphModule
    reads: tuple[int, ...]
    tangents: tuple[int, ...]
    takes: tuple[int, ...]
    gradients: tuple[int, ...]
    gives: tuple[int, ...]
    ends: tuple[int, ...]


def backward_stages(whole: fx.GraphModule, kept: int, buckets: Sequence[Sequence[int]]) -> list[BackwardStage]:
    """Cut a functional backward graph; none where it cannot be cut or one stage would do it all.

    kept: how many of the first inputs are kept values, the others are tangents.  buckets: places among the outputs;
    an output in no bucket belongs to the stage that computes it.
    """
    if any(node.op == "call_function" and is_random(node.target) for node in whole.graph.nodes):
        return []  # draws keep their order
    results = outputs(whole.graph)
    stage_of = _stages_of_nodes(results, buckets)
    placed = _places_by_stage(results, buckets, stage_of)
    needed = [node for node in whole.graph.nodes if node in stage_of]
    if len(placed) < 2 or not all(is_tensor(node) for node in _handed(needed, results, placed, stage_of)):
        return []
    return _Cutter(whole, kept, results, placed, stage_of).stages()


def _stages_of_nodes(results: Sequence[object], buckets: Sequence[Sequence[int]]) -> dict[fx.Node, int]:
    """Return the first stage that needs each call; values of a call with several stand in the stage of the call."""
    stage_of: dict[fx.Node, int] = {}
    last = [place for place in range(len(results)) if not any(place in bucket for bucket in buckets)]
    for number, bucket in enumerate([*buckets, last]):
        pending = [part for place in bucket if isinstance(part := results[place], fx.Node)]
        while pending:
            node = pending.pop()
            if node.op == "placeholder" or node in stage_of:
                continue
            stage_of[node] = min(number, len(buckets) - 1)
            pending.extend(node.all_input_nodes)
            if not is_tensor(node):
                pending.extend(node.users)
    return stage_of


def _places_by_stage(
    results: Sequence[object], buckets: Sequence[Sequence[int]], stage_of: dict[fx.Node, int]
) -> list[list[int]]:
    """Return which outputs each stage gives: those of its bucket, and others that are known there."""
    placed = [list(bucket) for bucket in buckets]
    given = {place for bucket in buckets for place in bucket}
    for place, part in enumerate(results):
        if place not in given and isinstance(part, fx.Node):
            placed[stage_of.get(part, 0)].append(place)
    return placed


def _handed(
    nodes: Iterable[fx.Node], results: Sequence[object], placed: Sequence[Sequence[int]], stage_of: dict[fx.Node, int]
) -> dict[fx.Node, int]:
    """Return the computed values that later stages read, with the last stage that does."""
    last: dict[fx.Node, int] = {}
    for node in nodes:
        for source in node.all_input_nodes:
            if stage_of.get(source, stage_of[node]) < stage_of[node]:
                last[source] = max(last.get(source, 0), stage_of[node])
    for number, places in enumerate(placed):
        for place in places:
            part = results[place]
            if isinstance(part, fx.Node) and stage_of.get(part, number) < number:
                last[part] = max(last.get(part, 0), number)
    return last


class _Cutter:
    def __init__(
        self,
        whole: fx.GraphModule,
        kept: int,
        results: Sequence[object],
        placed: Sequence[Sequence[int]],
        stage_of: dict[fx.Node, int],
    ) -> None:
        self.whole, self.results, self.placed, self.stage_of = whole, results, placed, stage_of
        self.nodes = [node for node in whole.graph.nodes if node in stage_of]
        self.last_read = _handed(self.nodes, results, placed, stage_of)
        self.numbers = {node: number for number, node in enumerate(self.last_read)}
        inputs = placeholders(whole.graph)
        self.kept, self.tangents = inputs[:kept], inputs[kept:]

    def stages(self) -> list[BackwardStage]:
        """Return the stages in the order in which they run."""
        return [self._stage(number) for number in range(len(self.placed))]

    def _stage(self, number: int) -> BackwardStage:
        mine = [node for node in self.nodes if self.stage_of[node] == number]
        places = [place for place in self.placed[number] if isinstance(self.results[place], fx.Node)]
        ends = [part for place in places if isinstance(part := self.results[place], fx.Node)]
        read = {source for node in mine for source in node.all_input_nodes} | set(ends)
        sources = [node for node in (*self.kept, *self.tangents, *self.numbers) if node in read and node not in mine]
        graph, new = fx.Graph(), dict[fx.Node, fx.Node]()
        for node in sources:
            new[node] = graph.placeholder(node.name)
            copy_facts(node, new[node])
        for node in mine:
            new[node] = copy_node(graph, node, new.__getitem__)
            copy_facts(node, new[node])
        later = self._memory_read_after(number)
        gradients = [self._apart(graph, new[node], memory_root(node) in later) for node in ends]
        gives = [node for node in mine if node in self.numbers]
        add_output(graph, [*gradients, *(new[node] for node in gives)])
        return BackwardStage(
            lazy_module(self.whole, graph),
            tuple(place for place, node in enumerate(self.kept) if node in sources),
            tuple(place for place, node in enumerate(self.tangents) if node in sources),
            tuple(here for node, here in self.numbers.items() if node in sources),
            tuple(places),
            tuple(self.numbers[node] for node in gives),
            tuple(self.numbers[node] for node, last in self.last_read.items() if last == number),
        )

    def _memory_read_after(self, number: int) -> set[fx.Node]:
        """Return the memory that later stages read: a gradient is its parameter's, and anyone may write to it."""
        later = [node for node in self.nodes if self.stage_of[node] > number]
        read = {source for node in later for source in node.all_input_nodes}
        for places in self.placed[number + 1 :]:
            read |= {part for place in places if isinstance(part := self.results[place], fx.Node)}
        return {memory_root(node) for node in read}

    @staticmethod
    def _apart(graph: fx.Graph, node: fx.Node, is_read: bool) -> fx.Node:
        if not is_read:
            return node
        new = add_call(graph, torch.ops.aten.clone.default, (node,))
        copy_facts(node, new)
        return new
