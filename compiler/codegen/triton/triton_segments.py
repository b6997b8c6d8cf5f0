"""The segments of a program as Triton kernels: interpreted on CPU tensors, built and launched on a GPU."""

from __future__ import annotations

from collections.abc import Callable

import torch

from ...base.errors import Unsupported, UserError
from ...base.events import Artifact, record, stage
from ...base.options import Options
from ...runtime.cuda_driver import CudaDriver
from ...schedule.execution_plan import ExecutionPlan
from .cuda_segments import Gpu, cuda_segments
from .interpreted_segments import INTERPRETED, interpreted_segments
from .launch_table import table_text, write_launch_table
from .tiles import DeviceFacts

LANGUAGES = ("c", "triton")


def language_of(plan: ExecutionPlan, options: Options) -> str:
    """Return what kernels are written in: what the options say, else C.

    Raises UserError for an unknown language, Unsupported for C on tensors that are not in the CPU's memory.
    """
    asked, device = options.kernel_language, plan.program.device.type
    if asked and asked not in LANGUAGES:
        raise UserError(f"no kernel language is named {asked!r}", hint=f"one of: {', '.join(LANGUAGES)}")
    if asked != "triton" and device != "cpu":
        raise Unsupported(
            f"C kernels for tensors on {device}",
            why="a GPU has run a quarter of the tests of the kernels in Triton: who wants them says so",
            hint="kernel_language='triton' uses them; the graph runs op by op",
        )
    return asked or "c"


def triton_segments(plan: ExecutionPlan, options: Options) -> tuple[list[Callable[..., int]], tuple[str, ...]]:
    """Return the segments as functions of addresses and sizes, and the names of the kernels that they launch in order.

    Raises Unsupported where there is no Triton, or no driver for the program's device, and BuildError for a refused
    kernel.
    """
    device = plan.program.device
    gpu = None if device.type == "cpu" else gpu_of(device)
    with stage("codegen"):
        table = write_launch_table(plan, INTERPRETED if gpu is None else facts_of(device))
        record(Artifact("codegen", "graph.triton.py", "python", table_text(table)))
    if gpu is None:
        return interpreted_segments(plan, table), table.launched
    with stage("build"):
        return cuda_segments(plan, table, gpu, options), table.launched


def gpu_of(device: torch.device) -> Gpu:
    """Return a device with its driver; raises Unsupported where this machine cannot use it."""
    if not torch.cuda.is_available():
        raise Unsupported(f"tensors on {device}, and no GPU that torch can use", hint="run doctor")
    if torch.version.hip:
        raise Unsupported("Triton kernels for AMD GPUs", hint="the graph runs op by op")
    major, minor = torch.cuda.get_device_capability(device)
    return Gpu(device, 10 * major + minor, CudaDriver())


def facts_of(device: torch.device) -> DeviceFacts:
    """Return what the choice of tiles depends on."""
    return DeviceFacts(torch.cuda.get_device_properties(device).multi_processor_count)
