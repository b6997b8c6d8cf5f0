"""The result of `explain`: graphs, graph breaks with reasons and lines, operations per graph, guards."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import torch

from .base.events import Broke, Captured, CompilerFailed, Event, RanEagerly, StageDone, StepsAssigned, recording


@dataclass(frozen=True, slots=True)
class Explanation:
    """What one run under capture produced.

    graphs: the captured modules, in the order of compilation. ops_per_graph: the targets of the operations of each
    graph. out_guards: the guards in words. guard_places: for each guard, the line of the user's code that read the
    value. break_reasons: the graph breaks. eager: functions that ran uncompiled. errors: internal errors, each with its
    bundle. compile_times: stage and wall seconds, in the order in which the stages ended. steps: of each graph that was
    compiled, its kernels and what is left to ATen; only where the option `kernel_language` asks for Triton, for
    otherwise nothing is compiled here.
    """

    graphs: tuple[torch.fx.GraphModule, ...]
    ops_per_graph: tuple[tuple[object, ...], ...]
    out_guards: tuple[str, ...]
    break_reasons: tuple[Broke, ...]
    eager: tuple[RanEagerly, ...]
    graph_count: int
    op_count: int
    errors: tuple[CompilerFailed, ...] = ()
    compile_times: tuple[tuple[str, float], ...] = ()
    guard_places: tuple[str, ...] = ()
    steps: tuple[StepsAssigned, ...] = ()

    @property
    def graph_break_count(self) -> int:
        """Return the number of graph breaks."""
        return len(self.break_reasons)

    @classmethod
    def from_events(cls, events: list[Event], graphs: int, operations: int) -> "Explanation":
        """Return the explanation of recorded events, without the graphs themselves."""
        guards = tuple(guard for event in events if isinstance(event, Captured) for guard in event.guards)
        return cls(
            (),
            (),
            guards,
            tuple(e for e in events if isinstance(e, Broke)),
            tuple(e for e in events if isinstance(e, RanEagerly)),
            graphs,
            operations,
            tuple(e for e in events if isinstance(e, CompilerFailed)),
            tuple((e.stage, e.seconds) for e in events if isinstance(e, StageDone)),
            tuple(place for event in events if isinstance(event, Captured) for place in event.places),
            tuple(e for e in events if isinstance(e, StepsAssigned)),
        )

    def text(self) -> str:
        """Return the explanation as text, in the form of the FAQ."""
        breaks = f"{self.graph_break_count} graph break{'s' if self.graph_break_count != 1 else ''}"
        graphs = f"{self.graph_count} graph{'s' if self.graph_count != 1 else ''}"
        rows = [f"plumbline produced {graphs}, with {breaks} and {self.op_count} ops."]
        if self.break_reasons:
            rows.append(" Break reasons:")
        for number, reason in enumerate(self.break_reasons, 1):
            rows.append(f"{number}. {reason.reason}: {reason.what}")
            if reason.origin is not None:
                rows.append(reason.origin.stack_text())
            rows.append(f"   why: {reason.why}; {reason.hint}")
        for item in self.eager:
            place = f" ({item.origin.place()})" if item.origin else ""
            rows.append(f" {item.function} ran eagerly: {item.reason}: {item.what}{place}; {item.hint}")
        rows += [f" {item.text()}" for item in self.errors]
        rows += [f" {item.text()}" for item in self.steps]
        if self.break_reasons or self.eager:
            rows.append(" docs/graph-breaks.md has each reason with an example.")
        return "\n".join(rows)

    def __str__(self) -> str:
        return self.text()

    def __iter__(self) -> Iterator[Any]:
        """Unpack as the FAQ does: explanation, guards, graphs, operations per graph."""
        return iter((self, self.out_guards, self.graphs, self.ops_per_graph))


def explanation_of(
    compiled_with: Callable[[Callable[..., Any]], Callable[..., Any]],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    backend: Callable[[torch.fx.GraphModule, list[object]], Callable[..., Any]],
) -> Explanation:
    """Run what `compiled_with(backend)` gives once, under a backend that keeps the graphs and does as another one."""
    graphs: list[torch.fx.GraphModule] = []

    def keep(graph: torch.fx.GraphModule, example_inputs: list[object]) -> Callable[..., Any]:
        graphs.append(graph)
        return backend(graph, example_inputs)

    with recording() as events:
        compiled_with(keep)(*args, **kwargs)
    operations = tuple(
        tuple(node.target for node in graph.graph.nodes if node.op.startswith("call_")) for graph in graphs
    )
    story = Explanation.from_events(events, len(graphs), sum(len(targets) for targets in operations))
    return replace(story, graphs=tuple(graphs), ops_per_graph=operations)
