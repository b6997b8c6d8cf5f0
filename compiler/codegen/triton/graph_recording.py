"""Which compiled graphs may be recorded as one CUDA graph, and with what reasons others are not.

A recording launches again what the driver was told once: it knows nothing of Python, of another size, of a number that
the host waits for.  So a graph is recorded only where all of it is kernels and ATen calls on fixed memory.  The reasons
are found on the plan, before anything runs; `runtime/cuda_graphs.py` does the recording.
"""

from __future__ import annotations

from collections.abc import Iterator

from torch import fx

from ...graph.node_values import placeholders
from ...loops.ir import Extern
from ...schedule.execution_plan import ExecutionPlan
from ...schedule.left_to_aten import Reason, reason_of

_WAITING = {Reason.DATA, Reason.NUMBER, Reason.LINEAR_ALGEBRA, Reason.SUBGRAPH}
_WORDS = {
    Reason.DATA: "the host has to know how large its result is",
    Reason.NUMBER: "the host computes the number for each call",
    Reason.LINEAR_ALGEBRA: "its library may wait for the device",
    Reason.SUBGRAPH: "the host decides what runs",
    Reason.DRAW: "each call draws other numbers, or talks to other processes",
    Reason.WRITE: "it writes to an argument, which a recording would do to the argument of its first call",
}


def _dropout(step: Extern) -> object:
    """Return the probability with which attention drops weights, None where it is not said."""
    schema = getattr(step.target, "_schema", None)
    for number, argument in enumerate(schema.arguments if schema is not None else ()):
        if argument.name == "dropout_p":
            return (
                step.args[number] if number < len(step.args) else step.kwargs.get("dropout_p", argument.default_value)
            )
    return None


def reasons_against(plan: ExecutionPlan, gm: fx.GraphModule) -> tuple[str, ...]:
    """Return in words why a graph cannot be recorded; nothing where it can.

    gm: the graph that the plan is of, whose inputs have example values.
    """
    return tuple(dict.fromkeys(_reasons(plan, gm)))


def _reasons(plan: ExecutionPlan, gm: fx.GraphModule) -> Iterator[str]:
    program = plan.program
    if program.device.type != "cuda":
        yield f"its tensors are on {program.device}"
    if program.sizes:
        yield f"its sizes change from call to call: {', '.join(program.sizes)}"
    for node in placeholders(gm.graph):
        device = getattr(node.meta.get("val"), "device", None)
        if device is not None and device != program.device:
            yield f"input {node.name} is on {device}"
    roots: dict[str, str] = {}  # of views, by name: whose memory they share
    for step in plan.steps:
        if not isinstance(step, Extern):
            continue
        reason = reason_of(step)
        if reason in _WAITING or reason in (Reason.DRAW, Reason.WRITE):
            yield f"{step.target}: {_WORDS[reason]}"
        elif step.ordered and not (reason is Reason.ATTENTION and _dropout(step) == 0):
            yield f"{step.target}: it must keep its place among other calls"
        for source in step.alias_of[:1]:
            roots |= {name: roots.get(source, source) for name in step.results if name}
    owners: dict[str, str] = {}
    for name in sorted(program.output_names):
        root = roots.get(name, name)
        if root in program.inputs or root in program.constants:
            yield f"result {name} is memory of {root}, and would be a copy"
        elif owners.setdefault(root, name) != name:
            yield f"results {owners[root]} and {name} share memory, and would be two copies"
