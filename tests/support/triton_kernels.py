"""The Triton kernels of a function, written as for an H100."""

from collections.abc import Callable

import torch

from plumbline.compiler.base.options import Options
from plumbline.compiler.codegen.triton.tiles import DeviceFacts
from plumbline.compiler.codegen.triton.triton_kernel import TritonKernel, write_triton_kernel
from plumbline.compiler.graph.tracer import trace
from plumbline.compiler.loops.ir import Loop
from plumbline.compiler.lowering.lower import lower_graph
from plumbline.compiler.schedule.schedule import schedule


def kernels_of(function: Callable[..., object], *inputs: torch.Tensor) -> list[TritonKernel]:
    program = schedule(lower_graph(trace(function, inputs), scans=True), Options())
    loops = [step for step in program.steps if isinstance(step, Loop)]
    return [write_triton_kernel(loop, program.buffers, DeviceFacts()) for loop in loops]
