"""Kernels in Triton's interpreter give what eager gives; a slice of what `TRITON_LEVEL=1 pytest tests/meaning` runs."""

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F  # noqa: N812  the field's name for it

import plumbline
from plumbline.compiler.base.events import FellBack, recording
from plumbline.compiler.base.options import Options
from plumbline.compiler.codegen.triton import triton_library, triton_text
from plumbline.compiler.codegen.triton.interpreted_segments import interpreted_kernels
from plumbline.compiler.graph.tracer import trace
from plumbline.compiler.native import compile_graph
from plumbline.compiler.runtime.triton_interpreter import Pointer, why_unavailable
from support.hard_values import hard_tensor
from support.op_table import ALL, POINTWISE
from support.triton_kernels import kernels_of

pytestmark = pytest.mark.skipif(bool(why_unavailable()), reason=f"kernels cannot be interpreted: {why_unavailable()}")
TRITON = Options(strict=True, kernel_language="triton")
Function = Callable[..., object]


def interpreted(function: Function, *inputs: torch.Tensor) -> tuple[object, ...]:
    """Return what kernels give; a graph that falls back to ATen is a failure here."""
    gm = trace(function, inputs)
    with recording() as events:
        compiled = compile_graph(gm, inputs, TRITON)
        results = compiled(*inputs)
    assert not [event for event in events if isinstance(event, FellBack) and event.operation == "graph"]
    return results


def hold(function: Function, *inputs: torch.Tensor, error: float = 4.0) -> None:
    """Hold kernels to the C level, in units of eps of the greatest result."""
    gm = trace(function, inputs)
    wanted = compile_graph(gm, inputs, Options(strict=True))(*inputs)
    for found, want in zip(interpreted(function, *inputs), wanted, strict=True):
        assert isinstance(found, torch.Tensor)
        assert isinstance(want, torch.Tensor)
        assert (found.dtype, found.shape, found.stride()) == (want.dtype, want.shape, want.stride())
        if not want.dtype.is_floating_point:
            assert torch.equal(found, want)
            continue
        assert torch.equal(found.isnan(), want.isnan())
        if not want.numel():
            continue
        scale = torch.finfo(want.dtype).eps * float(want.double().nan_to_num(0, 0, 0).abs().max())
        apart = torch.where(found == want, 0.0, (found.double() - want.double()).abs().nan_to_num(0))
        assert float(apart.max()) <= error * scale


def noisy(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(sum(shape)), dtype=torch.float64).to(dtype)


@pytest.mark.cc
@pytest.mark.parametrize("dtype", ALL, ids=str)
def test_every_pointwise_operator_gives_the_bits_of_c(dtype: torch.dtype) -> None:
    x, y = (hard_tensor(dtype, 100, seed) for seed in (1, 2))
    trap = y == 0 if dtype in (torch.bool, torch.uint8) or dtype.is_floating_point else (y == 0) | (y == -1)
    divisor = torch.where(trap, torch.ones_like(y), y)
    cases = [case for case in POINTWISE if dtype in case.dtypes and not case.domain]

    def every(x: torch.Tensor, y: torch.Tensor, divisor: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return tuple(case.function(x, divisor if case.nonzero_divisor else y) for case in cases)

    gm = trace(every, (x, y, divisor))
    wanted = compile_graph(gm, (x, y, divisor), Options(strict=True))(x, y, divisor)
    wrong = []
    for case, found, want in zip(cases, interpreted(every, x, y, divisor), wanted, strict=True):
        assert isinstance(found, torch.Tensor)
        assert isinstance(want, torch.Tensor)
        allowed = 4 * torch.finfo(want.dtype).eps * want.double().abs() if want.dtype.is_floating_point else 0
        same = (found == want) | ((found != found) & (want != want))
        if case.ulp or case.noise:  # libm and Sleef differ in the last digit
            same |= (found.double() - want.double()).abs() <= allowed + 1e-30
            same |= (found.double() - want.double()).abs() <= (case.noise(x, y) if case.noise else 0)
        if not bool(same.all()):
            wrong.append(case.name)
    assert not wrong


PROGRAMS: dict[str, tuple[Function, tuple[torch.Tensor, ...]]] = {
    "softmax": (lambda x: (x.softmax(-1), x.softmax(0)), (noisy(19, 130),)),
    "long rows": (lambda x: (x.softmax(-1), x.argmax(-1)), (noisy(2, 17_000),)),
    "columns": (lambda x: (x.sum(0), x.amax(0), x.argmin(0)), (noisy(300, 40),)),
    "layer norm": (lambda x: F.layer_norm(x, [130]), (noisy(5, 130, dtype=torch.bfloat16),)),
    "transposed": (lambda x: (x.t() * 2).contiguous(), (noisy(40, 70),)),
    "gather": (lambda x, i: x[i].relu(), (noisy(6, 6), torch.tensor([0, -1, 3, -5]))),
    "join": (lambda x: torch.cat([x, x.sin(), x[:, :3]], 1).relu(), (noisy(6, 8),)),
    "loss": (lambda x, t: F.cross_entropy(x, t), (noisy(7, 33), torch.arange(7))),
    "nothing": (lambda x: (x.sum(0), x.prod(), (x > 0).all(1)), (torch.empty(3, 0),)),
    "one": (lambda x: (x.sum(), x + 1), (torch.tensor(2.5),)),
    "bytes": (lambda x: (x.sum(0), x.prod(1), x.argmax(1)), (hard_tensor(torch.int8, 7 * 19, 3).reshape(7, 19),)),
}


@pytest.mark.cc
@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_give_what_c_gives(name: str) -> None:
    function, inputs = PROGRAMS[name]
    hold(function, *inputs, error=8)


def test_a_place_out_of_range_and_a_division_by_zero_are_eagers_errors() -> None:
    x, good, bad = noisy(4, 4), torch.tensor([0, 1]), torch.tensor([0, 4])
    compiled = compile_graph(trace(lambda x, i: x[i] + 1, (x, good)), (x, good), TRITON)
    assert torch.equal(compiled(x, good)[0], x[good] + 1)
    with pytest.raises(IndexError):
        compiled(x, bad)
    a, b = torch.arange(20), torch.ones(20, dtype=torch.int64)
    divided = compile_graph(trace(lambda a, b: a // b, (a, b)), (a, b), TRITON)
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        divided(a, b * 0)


def test_a_module_trains_through_the_backend_of_its_name() -> None:
    torch.manual_seed(0)
    layer = torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.GELU(), torch.nn.LayerNorm(8))
    compiled = plumbline.compile(layer, backend="triton")
    x = noisy(3, 6).requires_grad_()
    with recording() as events:
        compiled(x).sum().backward()
    kept, x.grad = x.grad, None
    layer(x).sum().backward()
    assert kept is not None
    torch.testing.assert_close(kept, x.grad)
    assert not [event for event in events if isinstance(event, FellBack) and event.operation == "graph"]


PLANTED: list[tuple[str, str, Function, torch.Tensor]] = [
    ("tl.maximum(a, b, propagate_nan=tl.PropagateNan.ALL)", "tl.where(b > a, b, a)", lambda x: x.amax(1), noisy(4, 9)),
    ("& (bt < at))", "& (bt > at))", lambda x: x.argmax(1), torch.zeros(3, 9)),
    ("return a + b", "return a + b + b * 0.01", lambda x: x.sum(1), noisy(4, 9)),
]


@pytest.mark.parametrize(("text", "fault", "function", "x"), PLANTED)
def test_a_fault_of_the_library_is_seen(
    text: str, fault: str, function: Function, x: torch.Tensor, monkeypatch: pytest.MonkeyPatch
) -> None:
    x = x.clone()
    if x.any():
        x[1, 8] = float("nan")
    assert text in triton_library.LIBRARY
    broken = triton_library.LIBRARY.replace(text, fault)
    monkeypatch.setattr("plumbline.compiler.codegen.triton.interpreted_segments.LIBRARY", broken)
    (found,) = interpreted(function, x)
    assert isinstance(found, torch.Tensor)
    wanted = function(x)
    assert isinstance(wanted, torch.Tensor)
    assert not torch.allclose(found.double(), wanted.double(), rtol=1e-5, equal_nan=True)


@pytest.mark.parametrize("is_planted", [False, True])
def test_nothing_beyond_a_tensor_is_written(is_planted: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """The tensors lie between bands of NaN; a mask that is left out writes into one."""
    if is_planted:
        monkeypatch.setattr(triton_text.TritonText, "masked_argument", lambda self, axes: "")
    (kernel,) = kernels_of(lambda x: x.softmax(1) + 1, noisy(19, 130))
    rooms = [torch.full((30_000,), float("nan")) for _ in kernel.buffers]
    for room in rooms:
        room[10_000 : 10_000 + 19 * 130] = 1
    pointers = [Pointer(room[10_000:].data_ptr(), room.dtype) for room in rooms]
    interpreted_kernels().run(f"{triton_library.LIBRARY}\n\n{kernel.text}", pointers, int(str(kernel.programs)))
    beyond = torch.cat([torch.cat([room[:10_000], room[10_000 + 19 * 130 :]]) for room in rooms])
    assert bool(beyond.isnan().all()) is not is_planted
