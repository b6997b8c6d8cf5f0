"""Triton's texts are what ran: holds a run at the level `triton` to who ran each step of it.

Without this the level proves nothing of a graph that went back to ATen: that gives eager's answer, of course.
"""

import tomllib
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

import torch

from plumbline.compiler.base.events import Event, FellBack, KernelLaunched, LeftStep, StepsAssigned, recording
from plumbline.compiler.base.options import Options
from plumbline.compiler.native import compile_graph
from plumbline.compiler.schedule.left_to_aten import Reason

LIST = Path(__file__).with_name("left_to_aten.toml")
REFUSED = Path(__file__).with_name("refused_by_lowerings.toml")
NEVER_WRITTEN = frozenset(
    each.name
    for each in (Reason.VIEW, Reason.EMPTY, Reason.DRAW, Reason.WRITE, Reason.SUBGRAPH, Reason.NUMBER, Reason.ERROR)
)
"""Reasons that need no entry in the list: these calls cannot be kernels, whatever anybody writes."""


@cache
def left_allowed() -> frozenset[tuple[str, str, str]]:
    """Return (operator, reason, why) of the calls that tests may leave to ATen; of families without why."""
    rows = tomllib.loads(LIST.read_text(encoding="utf-8"))["left"]
    refused = tomllib.loads(REFUSED.read_text(encoding="utf-8"))["refused"]
    forms = {(row["operator"], Reason.FORM.name, row["why"]) for row in refused}
    return frozenset((row["operator"], row["reason"], row.get("why", "")) for row in rows) | forms


def row_of(step: LeftStep) -> tuple[str, str, str]:
    """Return the row of the list that allows a call; of one that a lowering refused it says why."""
    return step.operation, step.reason, step.why if step.reason == Reason.FORM.name else ""


def not_allowed(steps: Sequence[LeftStep]) -> Iterator[str]:
    """Yield the calls left to ATen that the list does not have."""
    for step in steps:
        if step.reason not in NEVER_WRITTEN and row_of(step) not in left_allowed():
            yield f"{row_of(step)} is left to ATen, and not in {LIST.name}"


def fallbacks(events: Sequence[Event], *, calls: int = 1) -> Iterator[str]:
    """Yield what of a compiled graph and its calls was not run by Triton's texts.

    calls: how often the graph was called, each time to its end.
    """
    assigned = [event for event in events if isinstance(event, StepsAssigned)]
    yield from (f"the graph runs op by op: {each.why}" for each in events if _is_whole(each))
    if not assigned:
        yield "no graph was compiled to kernels"
        return
    latest = assigned[-1]
    if latest.language != "triton":
        yield f"the kernels are in {latest.language}"
    yield from not_allowed(latest.left)
    launched = [event.name for event in events if isinstance(event, KernelLaunched)]
    if launched != list(latest.launched) * calls:
        yield f"launched were {launched}, not {latest.launched}, {calls} times"


def _is_whole(event: Event) -> bool:
    return isinstance(event, FellBack) and event.operation == "graph"


def triton_results(gm: torch.fx.GraphModule, inputs: Sequence[torch.Tensor], options: Options) -> tuple[object, ...]:
    """Return what the Triton texts of a graph give; a part of it that ran otherwise is a failure."""
    with recording() as events:
        results: tuple[object, ...] = compile_graph(gm, inputs, options.replace(kernel_language="triton"))(*inputs)
    faults = list(fallbacks(events))
    assert not faults, "\n".join(faults)
    return results
