"""Results so far are loops where kernels are in Triton: eager = loops = fused = Triton; in C they stay with ATen."""

from collections.abc import Callable

import pytest
import torch

from plumbline.compiler.base.events import StepsAssigned, recording
from plumbline.compiler.base.options import Options
from plumbline.compiler.codegen.triton import triton_values
from plumbline.compiler.codegen.triton.cuda_segments import request_of
from plumbline.compiler.codegen.triton.kernel_checks import faults_of
from plumbline.compiler.graph.tracer import trace
from plumbline.compiler.loops.loop_interpreter import interpret_program
from plumbline.compiler.loops.verify import verify
from plumbline.compiler.lowering.lower import lower_graph
from plumbline.compiler.native import compile_graph
from plumbline.compiler.runtime.triton_build import build_kernels, why_no_triton
from plumbline.compiler.runtime.triton_interpreter import why_unavailable
from plumbline.compiler.schedule.schedule import schedule
from support.hard_values import hard_tensor
from support.triton_account import triton_results
from support.triton_kernels import kernels_of

Function = Callable[[torch.Tensor], object]
STRICT = Options(strict=True, verify="run")
needs_interpreter = pytest.mark.skipif(
    bool(why_unavailable()), reason=f"kernels cannot be interpreted: {why_unavailable()}"
)


def noisy(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(sum(shape)), dtype=torch.float64).to(dtype)


PROGRAMS: dict[str, tuple[Function, torch.Tensor]] = {
    "rows": (lambda x: ((x * 2).cumsum(-1) + 1, x.cumprod(-1)), noisy(7, 30)),
    "columns": (lambda x: (x.cumsum(0), x.cumprod(0)), noisy(30, 7)),
    "long rows": (lambda x: x.softmax(-1).cumsum(-1), noisy(2, 17_000)),
    "long columns": (lambda x: x.cumsum(0), noisy(1100, 5)),
    "one row": (lambda x: x.cumsum(0), noisy(5000)),
    "transposed": (lambda x: x.t().cumsum(1) * x.t(), noisy(9, 40)),
    "inside": (lambda x: x.cumsum(1).sum((1, 2)), noisy(3, 20, 6)),
    "of one": (lambda x: (x.cumsum(1), x.cumprod(0)), noisy(1, 1)),
    "of a broadcast": (lambda x: x[:, :1].expand(-1, 9).cumsum(1), noisy(4, 2)),
    "half": (lambda x: x.cumsum(1), noisy(6, 40, dtype=torch.bfloat16)),
    "double": (lambda x: x.cumprod(1), noisy(6, 40, dtype=torch.float64)),
    "bytes": (lambda x: (x.cumsum(1), x.cumprod(0)), torch.arange(60, dtype=torch.uint8).reshape(4, 15)),
    "truths": (lambda x: (x > 0).cumsum(1), noisy(6, 40)),
    "asked dtype": (lambda x: (x.cumsum(1, dtype=torch.int32), x.cumsum(1, dtype=torch.float64)), 9 * noisy(6, 40)),
    "extremes": (lambda x: (*x.cummax(1), *x.cummin(1)), noisy(7, 30)),
    "extremes of columns": (lambda x: x.relu().cummax(0).values + 1, noisy(60, 7)),
    "extremes of long rows": (lambda x: (*x.cummax(1), *x.cummin(1)), noisy(2, 17_000)),
    "equal extremes": (lambda x: (*x.cummax(1), *x.cummin(1)), noisy(5, 70).sign().relu() * -0.0),
    "equal extremes of long rows": (lambda x: (*x.cummax(1), *x.cummin(1)), noisy(2, 17_000).relu() * -0.0),
    "extremes that are read on": (lambda x: (x * x.cummin(1).indices).sum(1), noisy(3, 40)),
    "extremes of whole numbers": (lambda x: (*x.cummax(0), *x.cummin(0)), torch.arange(60).remainder(7).reshape(20, 3)),
    "extremes of bytes": (lambda x: (*x.cummax(1), *x.cummin(1)), torch.arange(60, dtype=torch.uint8).reshape(4, 15)),
    "extremes of truths": (lambda x: (*(x > 0).cummax(1), *(x > 0).cummin(1)), noisy(6, 40)),
    "half extremes": (lambda x: (*x.cummax(1), *x.cummin(1)), noisy(6, 40, dtype=torch.bfloat16)),
    "special extremes": (lambda x: (*x.cummax(0), *x.cummin(0)), hard_tensor(torch.float32, 60, 3)),
    "extremes of one": (lambda x: (*x.cummax(1), *x.cummin(0)), noisy(1, 1)),
    "logarithms": (lambda x: (x.logcumsumexp(1), (9 * x).logcumsumexp(0)), noisy(7, 30)),
    "logarithms of long rows": (lambda x: (80 * x).logcumsumexp(1), noisy(2, 17_000)),
    "double logarithms": (lambda x: x.logcumsumexp(1), noisy(6, 40, dtype=torch.float64)),
    "special logarithms": (lambda x: x.logcumsumexp(0), hard_tensor(torch.float32, 60, 3)),
    "special values": (lambda x: x.cumsum(0), hard_tensor(torch.float32, 60, 3)[torch.arange(60) % 7 > 2]),
}


def close(found: object, want: object) -> bool:
    """Return whether two results are equal; of floats up to 16 roundings of the greatest finite number on the way."""
    assert isinstance(found, torch.Tensor)
    assert isinstance(want, torch.Tensor)
    assert (found.dtype, found.shape, found.stride()) == (want.dtype, want.shape, want.stride())
    if not want.dtype.is_floating_point:
        return torch.equal(found, want)
    scale = 16 * torch.finfo(want.dtype).eps * float(want.double().nan_to_num(0, 0, 0).abs().max())
    apart = (found.double() - want.double()).abs().nan_to_num(0) <= scale
    same = (found == want) | ((found != found) & (want != want)) | (apart & want.isfinite() & found.isfinite())
    return bool(same.all())


def same_signs(found: object, want: object) -> bool:
    """Return whether zeros have one sign: an extreme so far is the last of the equal ones."""
    assert isinstance(found, torch.Tensor)
    assert isinstance(want, torch.Tensor)
    return bool(((found.signbit() == want.signbit()) | (want != want)).all())


@pytest.mark.parametrize("name", PROGRAMS)
def test_loops_give_what_eager_gives(name: str) -> None:
    function, x = PROGRAMS[name]
    lowered = verify(lower_graph(trace(function, (x,)), scans=True), "lowering")
    wanted = function(x)
    wanted = wanted if isinstance(wanted, tuple) else (wanted,)
    for program in (lowered, schedule(lowered, STRICT)):
        found = interpret_program(program, (x,))
        assert all(map(close, found, wanted))
        assert "extremes" not in name or all(map(same_signs, found, wanted))


@needs_interpreter
@pytest.mark.parametrize("name", PROGRAMS)
def test_kernels_give_what_eager_gives(name: str) -> None:
    function, x = PROGRAMS[name]
    wanted = function(x)
    wanted = wanted if isinstance(wanted, tuple) else (wanted,)
    found = triton_results(trace(function, (x,)), (x,), STRICT)
    assert all(map(close, found, wanted))
    assert "extremes" not in name or all(map(same_signs, found, wanted))


@needs_interpreter
def test_what_a_scan_stands_between_is_one_kernel() -> None:
    x = noisy(7, 30)
    with recording() as events:
        compile_graph(
            trace(lambda x: (x * 2).softmax(-1).cumsum(-1) + 1, (x,)), (x,), STRICT.replace(kernel_language="triton")
        )
    (assigned,) = [event for event in events if isinstance(event, StepsAssigned)]
    assert (len(assigned.launched), assigned.left) == (1, ())


@needs_interpreter
def test_blocks_that_do_not_know_of_each_other_are_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    x = noisy(2, 17_000).abs()
    alone = "tl.associative_scan(tl.broadcast_to({value}, {tile}), 1, plus)"
    monkeypatch.setattr(
        triton_values.TritonValues,
        "_scan",
        lambda self, scalar, value, name: alone.format(value=value, tile=self.text.shape.tile),
    )
    (found,) = triton_results(trace(lambda x: x.cumsum(-1), (x,)), (x,), STRICT)
    assert isinstance(found, torch.Tensor)
    assert close(found[:, :2048].clone(), x[:, :2048].cumsum(-1))
    assert not close(found, x.cumsum(-1))


@pytest.mark.cc
def test_in_c_a_scan_stays_with_aten_and_says_why() -> None:
    x = noisy(7, 30)
    with recording() as events:
        (found,) = compile_graph(trace(lambda x: x.cumsum(-1) + 1, (x,)), (x,), STRICT)(x)
    (assigned,) = [event for event in events if isinstance(event, StepsAssigned)]
    assert [(step.operation, step.reason) for step in assigned.left] == [("aten.cumsum.default", "SCAN")]
    assert close(found, x.cumsum(-1) + 1)


@pytest.mark.skipif(bool(why_no_triton()), reason=f"no kernels can be built: {why_no_triton()}")
def test_scans_become_machine_code_without_spills() -> None:
    shapes = ((64, 4096), (16, 40_000))
    kernels = [*kernels_of(lambda x: x.cumsum(0), torch.empty(4096, 64))]
    for shape in shapes:
        kernels += kernels_of(lambda x: x.softmax(-1).cumsum(-1), torch.empty(shape))
        kernels += kernels_of(lambda x: x.cummax(-1), torch.empty(shape))
        kernels += kernels_of(lambda x: x.logcumsumexp(-1), torch.empty(shape))
    requests = [request_of(kernel, 90) for kernel in kernels]
    assert len(requests) == 7  # an extreme and its place are one kernel
    for request, built in zip(requests, build_kernels(requests, Options()), strict=True):
        assert list(faults_of(request, built)) == []
