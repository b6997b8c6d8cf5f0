"""The segments of a program as functions in C: written, built and loaded."""

from __future__ import annotations

import ctypes
from collections.abc import Callable

from ..base.bisecting.applications import Gate
from ..base.events import Artifact, record, stage
from ..base.options import Options
from ..runtime.c_build import build
from ..runtime.cpu_features import cpu_features
from ..runtime.process_symbols import OfferedSymbols
from ..schedule.execution_plan import ExecutionPlan
from .c_file import write_file


def c_segments(plan: ExecutionPlan, options: Options, gate: Gate | None = None) -> list[Callable[..., int]]:
    """Return the segments as functions of addresses and sizes; raises BuildError where no compiler works.

    gate: asked for what makes kernels fast.
    """
    with stage("codegen"):
        file = write_file(plan, OfferedSymbols(), cpu_features(), options.threads, gate)
        record(Artifact("codegen", "graph.c", "c", file.text))
    if not plan.segments:
        return []
    with stage("build"):
        library = build(file.text, file.addresses, "graph", len(file.kernels), options)
    functions: list[Callable[..., int]] = []
    for number, segment in enumerate(plan.segments):
        function = library[f"segment_{number}"]
        dynamic_sizes = [ctypes.c_longlong] * len(plan.program.counts)
        function.argtypes = [*([ctypes.c_void_p] * len(segment.parameters)), *dynamic_sizes]
        function.restype = ctypes.c_int
        functions.append(function)
    return functions
