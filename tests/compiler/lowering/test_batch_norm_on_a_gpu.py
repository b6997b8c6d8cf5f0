"""Batch norm of tensors on a GPU: one read for both moments, and statistics that are saved without training, too."""

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from plumbline.compiler.base.options import Options
from plumbline.compiler.graph.tracer import AtenRecorder
from plumbline.compiler.loops.ir import Loop, LoopProgram
from plumbline.compiler.loops.loop_interpreter import interpret_program
from plumbline.compiler.loops.verify import verify
from plumbline.compiler.lowering.lower import lower_graph
from plumbline.compiler.schedule.schedule import schedule

aten = torch.ops.aten


def program_of(operator: torch._ops.OpOverload, shape: tuple[int, ...], *further: object) -> LoopProgram:
    """Return the loops of a batch norm of fake tensors on a GPU."""
    mode = FakeTensorMode()
    recorder = AtenRecorder(mode)
    with mode:
        fakes = [torch.empty(each, device="cuda") for each in (shape, *[(shape[1],)] * 4)]
    for name, fake in zip("xwbmv", fakes, strict=True):
        recorder.add_input(name, fake)
    with mode, recorder, torch.no_grad():
        results = operator(*fakes, *further)
    return verify(lower_graph(recorder.finish(tuple(results))), "lowering")


def inputs(shape: tuple[int, ...], centre: float) -> list[torch.Tensor]:
    return [torch.randn(shape) + centre, *(torch.rand(shape[1]) for _ in range(4))]


@pytest.mark.parametrize("centre", [0.0, 300.0, -3e4])
@pytest.mark.parametrize("shape", [(4, 3, 5, 5), (64, 5), (2, 6, 40)])
def test_training_gives_what_two_reads_give(shape: tuple[int, ...], centre: float) -> None:
    operator = aten._native_batch_norm_legit_functional.default
    program = program_of(operator, shape, True, 0.1, 1e-5)
    given = inputs(shape, centre)
    found, wanted = interpret_program(program, given), operator(*given, True, 0.1, 1e-5)
    exact = operator(*(each.double() for each in given), True, 0.1, 1e-5)
    for a, b, true in zip(found, wanted, exact, strict=True):
        assert isinstance(a, torch.Tensor)
        noise = 4 * torch.finfo(torch.float32).eps * float(true.abs().max()) * max(1.0, abs(centre))
        assert float((a.double() - true).abs().max()) <= float((b.double() - true).abs().max()) + noise


def test_a_channel_of_equal_numbers_has_no_variance() -> None:
    program = program_of(aten._native_batch_norm_legit_functional.default, (7, 2, 3), True, 0.1, 1e-5)
    given = [torch.full((7, 2, 3), 0.1), *(torch.rand(2) for _ in range(4))]
    saved = interpret_program(program, given)[2]
    assert isinstance(saved, torch.Tensor)
    torch.testing.assert_close(saved, torch.full((2,), 1e-5).rsqrt())


def test_both_moments_are_one_loop_over_the_tensor() -> None:
    program = schedule(
        program_of(aten._native_batch_norm_legit_functional.default, (8, 4, 6, 6), True, 0.1, 1e-5), Options()
    )
    (loop,) = (step for step in program.steps if isinstance(step, Loop) and step.reduced)
    assert sum(each.name == "reduce" for each in loop.scalars()) == 2


def test_without_training_the_running_statistics_are_the_saved_ones() -> None:
    program = program_of(aten._native_batch_norm_legit_no_training.default, (4, 3, 5), 0.1, 1e-5)
    given = inputs((4, 3, 5), 1.0)
    result, mean, invstd = interpret_program(program, given)
    torch.testing.assert_close(result, aten._native_batch_norm_legit_no_training.default(*given, 0.1, 1e-5)[0])
    assert torch.equal(mean, given[3])
    torch.testing.assert_close(invstd, (given[4] + 1e-5).rsqrt())
