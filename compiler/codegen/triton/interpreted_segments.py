"""The segments of a program on CPU tensors, each kernel run by Triton's interpreter.

So a machine without a GPU runs what a GPU would be given: the same texts, launch table, arena and host function.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import torch

from ...base.events import KernelLaunched, is_recording, record
from ...loops.scalar_ops import SCALAR_OPS, Elementary
from ...runtime.triton_interpreter import InterpretedKernels, Meaning, Pointer
from ...schedule.execution_plan import ExecutionPlan
from ...symbolic.symbolic_sizes import value_at
from .launch_table import Launch, LaunchTable
from .tiles import DeviceFacts
from .triton_library import INTERPRETED_HEADER, LIBRARY

INTERPRETED = DeviceFacts(multiprocessors=1, stops_at_zero=True)  # few and large programs are interpreted faster


@cache
def interpreted_kernels() -> InterpretedKernels:
    """Return what runs kernels; raises Unsupported where triton is not installed."""
    functions = [name for name, each in SCALAR_OPS.items() if isinstance(each.c, Elementary)]
    meanings: dict[str, Meaning] = {name: SCALAR_OPS[name].meaning for name in (*functions, "fma", "copysign")}
    meanings["rint"] = torch.round
    return InterpretedKernels(meanings)


@dataclass(frozen=True, slots=True, eq=False)
class _InterpretedSegment:
    """One segment: called with addresses, then dynamic sizes; returns 0, or the code of a fault."""

    table: LaunchTable
    launches: tuple[Launch, ...]
    dtypes: tuple[torch.dtype, ...]
    counts: tuple[str, ...]
    kernels: InterpretedKernels

    def __call__(self, *arguments: int) -> int:
        count = len(self.dtypes)
        point = dict(zip(self.counts, arguments[count:], strict=True))
        for launch in self.launches:
            kernel = self.table.kernels[launch.kernel]
            given: list[Pointer | int] = [Pointer(arguments[slot], self.dtypes[slot]) for slot in launch.slots]
            given += launch.numbers(point)
            flag = torch.zeros(1, dtype=torch.int32, device="cpu")
            if kernel.needs_flag:
                given.append(Pointer(flag.data_ptr(), flag.dtype))
            programs = value_at(launch.programs, point)
            self.kernels.run(f"{INTERPRETED_HEADER}{LIBRARY}\n\n{kernel.text}", given, programs)
            if is_recording():
                record(KernelLaunched(kernel.name, programs))
            if code := int(flag):
                return code
        return 0


def interpreted_segments(plan: ExecutionPlan, table: LaunchTable) -> list[Callable[..., int]]:
    """Return the segments as functions of addresses; raises Unsupported where triton is not installed."""
    kernels = interpreted_kernels()
    buffers, counts = plan.program.buffers, plan.program.counts
    return [
        _InterpretedSegment(table, launches, tuple(buffers[name].dtype for name in segment.parameters), counts, kernels)
        for segment, launches in zip(plan.segments, table.segments, strict=True)
    ]
