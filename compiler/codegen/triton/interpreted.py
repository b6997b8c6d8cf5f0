"""A scheduled program with every loop run as a Triton kernel in Triton's interpreter, on CPU tensors.

The level `triton` of a graph: what a GPU would be given, held to the levels before it on a machine that has none.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache

import torch

from ...loops.instance import at_sizes
from ...loops.ir import Buffer, Extern, Loop, LoopProgram
from ...loops.loop_interpreter import allocate, fill, run_extern
from ...loops.scalar_ops import SCALAR_OPS, Elementary
from ...runtime.triton_interpreter import InterpretedKernels
from ...symbolic.symbolic_sizes import value_at
from .tiles import DeviceFacts
from .triton_kernel import TritonKernel, write_triton_kernel
from .triton_library import LIBRARY

FAULTS = {1: IndexError("index out of range in a compiled graph"), 2: ZeroDivisionError("integer division by zero")}


@cache
def interpreted_kernels() -> InterpretedKernels:
    """Return what runs kernels; raises Unsupported where triton is not installed."""
    meanings = {name: each.meaning for name, each in SCALAR_OPS.items() if isinstance(each.c, Elementary)}
    others = {"fma": SCALAR_OPS["fma"].meaning, "copysign": torch.copysign, "rint": torch.round}
    return InterpretedKernels({**meanings, **others})


class InterpretedProgram:
    """A scheduled program whose loops are Triton kernels; called as the graph is, with numbers for dynamic sizes."""

    def __init__(self, program: LoopProgram, device: DeviceFacts | None = None) -> None:
        """Write the kernels; raises Unsupported where triton is not installed."""
        self.program = program
        self.run = interpreted_kernels().run
        self.kernels: dict[str, TritonKernel] = {}
        for step in program.steps:
            if isinstance(step, Loop) and all(symbol.size for symbol in step.kept):
                facts = device or DeviceFacts(multiprocessors=1)  # few and large programs are interpreted faster
                self.kernels[step.name] = write_triton_kernel(step, program.buffers, facts)

    def __call__(self, *inputs: object) -> tuple[object, ...]:
        """Run the program; raises IndexError and ZeroDivisionError as the loop interpreter does."""
        program = self.program
        count = len(program.inputs)
        tensors = {
            name: value
            for name, value in zip(program.inputs, inputs[:count], strict=True)
            if isinstance(value, torch.Tensor)
        }
        tensors |= program.constants
        numbers = [value for value in inputs[count:] if isinstance(value, int | float)]
        point = dict(zip(program.sizes, numbers, strict=True))
        instance = at_sizes(program, point) if program.sizes else program
        whole = {name: int(value) for name, value in point.items() if name not in program.fractions}
        for step in instance.steps:
            if isinstance(step, Extern):
                run_extern(step, tensors)
            else:
                _allocate(step, instance.buffers, tensors)
                if step.name in self.kernels:
                    self._launch(self.kernels[step.name], tensors, whole)
        return tuple(fill(output, tensors) for output in instance.outputs)

    def _launch(self, kernel: TritonKernel, tensors: Mapping[str, torch.Tensor], point: Mapping[str, int]) -> None:
        arguments: list[torch.Tensor | int] = [tensors[name] for name in kernel.buffers]
        arguments += [value_at(size, point) for size in kernel.sizes]
        flag = torch.zeros(1, dtype=torch.int32)
        if kernel.needs_flag:
            arguments.append(flag)
        self.run(f"{LIBRARY}\n\n{kernel.text}", arguments, value_at(kernel.programs, point))
        if code := int(flag):
            raise FAULTS[code]


def _allocate(step: Loop, buffers: Mapping[str, Buffer], tensors: dict[str, torch.Tensor]) -> None:
    for name in step.writes:
        if name not in tensors:
            tensors[name] = allocate(buffers[name])


def run_interpreted(program: LoopProgram, inputs: Sequence[object]) -> tuple[object, ...]:
    """Run a scheduled program once by Triton's interpreter."""
    return InterpretedProgram(program)(*inputs)
