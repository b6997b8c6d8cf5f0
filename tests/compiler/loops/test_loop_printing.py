"""A printed loop is Python that computes what the interpreter computes."""

from collections.abc import Callable

import pytest
import torch

from plumbline.compiler.base.options import Options
from plumbline.compiler.graph.tracer import trace
from plumbline.compiler.loops.ir import Loop, LoopProgram
from plumbline.compiler.loops.loop_interpreter import allocate, run_step
from plumbline.compiler.loops.loop_printing import print_loop, print_program, run_text
from plumbline.compiler.lowering.lower import lower_graph
from plumbline.compiler.schedule.schedule import schedule

PROGRAMS: dict[str, Callable[[torch.Tensor], object]] = {
    "chain": lambda x: (x.sin() + 1).relu(),
    "softmax": lambda x: x.softmax(1) * 2,
    "moments": lambda x: torch.var_mean(x, 0),
    "places": lambda x: (x.argmax(1), x.t().argmin(), *x.max(0)),
    "gathers": lambda x: x[torch.tensor([0, -1])][:, 1:] + 1,
    "casts": lambda x: (x.to(torch.int8) // 2).to(torch.bfloat16) + 0.1,
    "truths": lambda x: ((x > 0).any(1), (x != 0).all(), x.isnan()),
    "pieces": lambda x: torch.cat([x, x.flip(0)], 1).tril(),
    "empty": lambda x: x[:0].sum(0),
    "so far": lambda x: (x.softmax(1).cumsum(1) + x, x.cumprod(0)),
}


def run_printed(program: LoopProgram, inputs: tuple[torch.Tensor, ...]) -> dict[str, torch.Tensor]:
    tensors = dict(zip(program.inputs, inputs, strict=True)) | dict(program.constants)
    for step in program.steps:
        if not isinstance(step, Loop):
            run_step(step, program, tensors)
            continue
        for name in step.writes:
            tensors.setdefault(name, allocate(program.buffers[name]))
        run_text(print_loop(step, program), step.name, {name: tensors[name] for name in step.reads | step.writes})
    return tensors


@pytest.mark.parametrize("fused", [False, True], ids=["lowered", "fused"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_the_print_runs_and_agrees(name: str, fused: bool) -> None:
    x = torch.tensor([[1.5, -2.0, 0.0, 7.25], [0.5, 3.0, -0.0, 1e10], [-1.0, 2.0, 2.0, -300.7]])
    program = lower_graph(trace(PROGRAMS[name], (x,)), scans=True)
    if fused:
        program = schedule(program, Options(verify=True))
    printed = run_printed(program, (x,))
    tensors = {program.inputs[0]: x, **program.constants}
    for step in program.steps:
        run_step(step, program, tensors)
    for key, value in tensors.items():
        torch.testing.assert_close(printed[key], value, equal_nan=True, rtol=1e-6, atol=0)


def test_the_print_reads_as_loops() -> None:
    program = schedule(lower_graph(trace(lambda x: (x + 1).sum(1), (torch.zeros(2, 3),))), Options())
    expected = """\
    for i0 in range(2):
        t3_all = []
        for r1 in range(3):
            t0 = input_0[i0, r1]
            t1 = op.constant(float('1.0'), torch.float32)
            t2 = op.add(t0, t1)
            t3_all.append((t2,))
        t3 = op.reduce('sum', t3_all, torch.float32)
        sum_dim_int_list[i0] = t3
"""
    assert expected in print_program(program)
