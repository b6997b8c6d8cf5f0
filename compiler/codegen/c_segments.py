"""The segments of a program as functions that run C."""

from __future__ import annotations

from ..base.bisecting.applications import Gate
from ..base.events import Artifact, record, stage
from ..base.options import Options
from ..runtime.cpu_features import cpu_features
from ..runtime.process_symbols import OfferedSymbols
from ..schedule.execution_plan import ExecutionPlan
from .c_file import write_file
from .c_text import CText


def c_text(plan: ExecutionPlan, options: Options, gate: Gate | None = None) -> CText:
    """Return the segments as the text of a C file, and how each is called; gate: asked for what makes kernels fast."""
    with stage("codegen"):
        file = write_file(plan, OfferedSymbols(), cpu_features(), options.threads, gate)
        record(Artifact("codegen", "graph.c", "c", file.text))
    tensors = tuple(len(segment.parameters) for segment in plan.segments)
    return CText(file.text, file.addresses, len(file.kernels), tensors, len(plan.program.counts))
