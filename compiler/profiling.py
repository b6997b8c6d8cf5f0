"""Watching compilations: how long the stages take, and what a block of code makes the compiler do."""

from collections.abc import Callable
from typing import Any

import torch

from .base.events import Event, Recompiled, listen, stage_times
from .base.locks import ForkedLock
from .explanation import Explanation


def compile_times() -> str:
    """Return a table of the time spent in each stage of compilation: runs, total and longest, in seconds."""
    times = stage_times()
    width = max((len(name) for name in times), default=5)
    rows = [f"{'stage':<{width}}  runs  total s  longest s"]
    for name, seconds in sorted(times.items(), key=lambda item: -sum(item[1])):
        rows.append(f"{name:<{width}}  {len(seconds):>4}  {sum(seconds):>7.3f}  {max(seconds):>9.3f}")
    return "\n".join(rows)


class CompileProfiler:
    """A backend that runs graphs as captured, and reports graph breaks and recompilations.

    `with CompileProfiler() as prof: compile(f, backend=prof)(x); print(prof.report())`
    """

    def __init__(self) -> None:
        self.frame_count = 0
        self.op_count = 0
        self.events: list[Event] = []
        self._stop: Callable[[], None] | None = None
        self._lock = ForkedLock()

    def __call__(self, graph: torch.fx.GraphModule, example_inputs: list[object]) -> Callable[..., Any]:
        """Count the graph and return it unchanged."""
        del example_inputs
        with self._lock:
            self.frame_count += 1
            self.op_count += sum(node.op.startswith("call_") for node in graph.graph.nodes)
        forward: Callable[..., Any] = graph.forward
        return forward

    def __enter__(self) -> "CompileProfiler":
        """Start watching."""
        self._stop = listen(self.events.append)
        return self

    def __exit__(self, *_: object) -> None:
        """Stop watching."""
        if self._stop is not None:
            self._stop()

    def report(self) -> str:
        """Return the graph breaks with their lines, and the recompilations with the guards that failed."""
        return explanation_of_events(self.events, self.frame_count, self.op_count)


def explanation_of_events(events: list[Event], graphs: int, operations: int) -> str:
    """Return the profiler's report."""
    parts = [Explanation.from_events(events, graphs, operations).text()]
    recompiled = [event for event in events if isinstance(event, Recompiled)]
    if not recompiled:
        parts.append("No recompilation detected.")
    for event in recompiled:
        where = f" ({event.origin.place()})" if event.origin else ""
        parts.append(
            f"{event.function} was recompiled: the guard `{event.guard}`{where} found {event.actual};"
            " pass a constant shape or value, or mark the dimension dynamic (docs/guards-and-recompiles.md)"
        )
    return "\n".join(parts)
