"""Long reductions in parts: the same values, joined in one order, whatever the number of rows is."""

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F  # noqa: N812  the field's name for it

from plumbline.compiler.base.options import Options
from plumbline.compiler.codegen.triton import split_reductions
from plumbline.compiler.codegen.triton.split_reductions import with_split_reductions
from plumbline.compiler.codegen.triton.tiles import MOST_PARTS, parts_of_reduction
from plumbline.compiler.graph.tracer import trace
from plumbline.compiler.loops.ir import Loop, LoopProgram
from plumbline.compiler.loops.loop_interpreter import interpret_program
from plumbline.compiler.loops.verify import verify
from plumbline.compiler.lowering.lower import lower_graph
from plumbline.compiler.native import compile_graph
from plumbline.compiler.runtime.triton_interpreter import why_unavailable
from plumbline.compiler.schedule.schedule import schedule
from support.triton_account import triton_results

Function = Callable[..., object]


def noisy(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(sum(shape)), dtype=torch.float64).to(dtype)


def program_of(function: Function, *inputs: torch.Tensor) -> LoopProgram:
    return schedule(lower_graph(trace(function, inputs)), Options())


def loops_of(program: LoopProgram) -> list[Loop]:
    return [step for step in program.steps if isinstance(step, Loop)]


def with_nan(x: torch.Tensor) -> torch.Tensor:
    x.view(-1)[70_001] = float("nan")
    return x


PROGRAMS: dict[str, tuple[Function, tuple[torch.Tensor, ...], int]] = {  # how many loops it becomes
    "sum of a power of two": (lambda x: x.sum(), (noisy(2**18),), 2),
    "sum of a prime": (lambda x: x.sum(), (noisy(100_003),), 3),
    "mean of rows": (lambda x: x.mean(1), (noisy(3, 70_000),), 2),
    "extremes": (lambda x: (x.amax(), x.amin(), x.max()), (noisy(2, 100_000),), 2),
    "extremes with NaN": (lambda x: (x.amax(), x.argmax(), x.argmin()), (with_nan(noisy(2, 100_003)),), 3),
    "places of equal values": (lambda x: (x.argmax(1), x.argmin(1)), (torch.zeros(2, 100_003),), 3),
    "places": (lambda x: (x.argmax(1), x.argmin()), (noisy(2, 100_000),), 4),
    "whole numbers": (lambda x: (x.sum(), x.amax(), (x > 9).any()), (torch.arange(70_000, dtype=torch.int32),), 2),
    "columns": (lambda x: (x.sum(0), x.amax(0)), (noisy(4096, 40),), 2),
    "columns of a prime number of rows": (lambda x: x.sum(0), (noisy(4099, 40),), 3),
    "moments": (lambda x: torch.var_mean(x), (noisy(70_000) + 100,), 4),
    "a long row's softmax": (lambda x: x.softmax(1), (noisy(2, 70_000),), 5),
    "both at once": (lambda x: (x * 2, (x * 2).sum(1)), (noisy(2, 70_001),), 3),
    "halves": (lambda x: x.sum(), (noisy(70_000, dtype=torch.bfloat16),), 2),
    "channels": (lambda x: x.sum((0, 2, 3)), (noisy(4, 3, 200, 200),), 2),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_parts_give_what_the_whole_gives(name: str) -> None:
    function, inputs, count = PROGRAMS[name]
    program = program_of(function, *inputs)
    split = verify(with_split_reductions(program), "splitting")
    assert len(loops_of(split)) == count
    for found, want in zip(interpret_program(split, inputs), interpret_program(program, inputs), strict=True):
        assert isinstance(found, torch.Tensor)
        assert isinstance(want, torch.Tensor)
        if want.dtype.is_floating_point:
            close = torch.finfo(want.dtype).eps * 40
            torch.testing.assert_close(found, want, rtol=close, atol=close * 300, equal_nan=True)
        else:
            assert torch.equal(found, want)


@pytest.mark.cc
@pytest.mark.skipif(bool(why_unavailable()), reason=f"kernels cannot be interpreted: {why_unavailable()}")
@pytest.mark.parametrize(
    "name", ["sum of a prime", "places of equal values", "columns of a prime number of rows", "a long row's softmax"]
)
def test_kernels_of_parts_give_what_c_gives(name: str) -> None:
    function, inputs, count = PROGRAMS[name]
    gm = trace(function, inputs)
    wanted = compile_graph(gm, inputs, Options(strict=True))(*inputs)
    for found, want in zip(triton_results(gm, inputs, Options(strict=True)), wanted, strict=True):
        assert isinstance(found, torch.Tensor)
        assert isinstance(want, torch.Tensor)
        torch.testing.assert_close(found, want, rtol=1e-5, atol=1e-4 if want.dtype.is_floating_point else 0)
    assert count > 1


def test_short_and_dynamic_reductions_stay_whole() -> None:
    for function, x in ((lambda x: x.sum(1), noisy(8, 65_536)), (lambda x: x.sum(0), noisy(1024, 64))):
        program = program_of(function, x)
        assert loops_of(with_split_reductions(program)) == loops_of(program)


@pytest.mark.parametrize("length", [70_000, 100_003, 2**20])
def test_a_row_is_cut_alike_whatever_the_batch_is(length: int) -> None:
    cuts = set()
    for rows in (1, 2, 7, 300):
        program = program_of(lambda x: x.sum(1), torch.empty(1).expand(rows, length))
        (loop,) = loops_of(program)
        cut = split_reductions.cut_of(loop, program.buffers)
        assert cut is not None
        cuts.add((cut.parts, cut.size, cut.rest))
    assert len(cuts) == 1


def test_the_number_of_parts_is_bounded() -> None:
    assert parts_of_reduction(2**31, columns=False) == MOST_PARTS
    assert parts_of_reduction(65_537, columns=False) == 8
    assert parts_of_reduction(2**31, columns=True) == 64


def test_a_lost_rest_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """The comparison of this file finds a planted fault: the shorter last part is taken for zero."""
    x = noisy(100_003).abs()
    program = program_of(lambda x: x.sum(), x)
    whole = split_reductions.cut_of(loops_of(program)[0], program.buffers)
    assert whole is not None
    assert whole.rest
    lost = split_reductions.Cut(whole.variable, whole.parts, whole.size, 0)

    def planted(loop: Loop, buffers: object) -> split_reductions.Cut | None:
        return lost if loop.reduced[0].name == lost.variable.name else None

    monkeypatch.setattr(split_reductions, "cut_of", planted)
    (found,) = interpret_program(with_split_reductions(program), (x,))
    assert isinstance(found, torch.Tensor)
    assert not torch.allclose(found, x.sum(), rtol=1e-5)


def test_layer_norm_of_few_long_rows_reads_parts() -> None:
    x = noisy(2, 70_000)
    program = program_of(lambda x: F.layer_norm(x, [70_000]), x)
    split = with_split_reductions(program)
    (found, *_), (want, *_) = interpret_program(split, (x,)), interpret_program(program, (x,))
    assert isinstance(found, torch.Tensor)
    assert isinstance(want, torch.Tensor)
    torch.testing.assert_close(found, want, rtol=1e-5, atol=1e-5)
    assert len(loops_of(split)) > len(loops_of(program))
