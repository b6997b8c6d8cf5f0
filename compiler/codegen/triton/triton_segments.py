"""The segments of a program as Triton kernels: interpreted on CPU tensors, built and launched on a GPU."""

from __future__ import annotations

from collections.abc import Callable

from ...base.errors import Unsupported, UserError
from ...base.events import Artifact, record, stage
from ...base.options import Options
from ...schedule.execution_plan import ExecutionPlan
from .interpreted_segments import INTERPRETED, interpreted_segments
from .launch_table import table_text, write_launch_table

LANGUAGES = ("c", "triton")


def language_of(plan: ExecutionPlan, options: Options) -> str:
    """Return what kernels are written in: what the options say, else by the program's device.

    Raises UserError for an unknown language, Unsupported for C on tensors that are not in the CPU's memory.
    """
    asked, device = options.kernel_language, plan.program.device.type
    if asked and asked not in LANGUAGES:
        raise UserError(f"no kernel language is named {asked!r}", hint=f"one of: {', '.join(LANGUAGES)}")
    if asked == "c" and device != "cpu":
        raise Unsupported(f"C kernels for tensors on {device}", hint="leave kernel_language empty")
    return asked or ("c" if device == "cpu" else "triton")


def triton_segments(plan: ExecutionPlan, options: Options) -> list[Callable[..., int]]:
    """Return the segments as functions of addresses and sizes.

    Raises Unsupported where there is no Triton, or no driver for the program's device, and BuildError for a refused
    kernel.
    """
    del options
    with stage("codegen"):
        table = write_launch_table(plan, INTERPRETED)
        record(Artifact("codegen", "graph.triton.py", "python", table_text(table)))
    return interpreted_segments(plan, table)
