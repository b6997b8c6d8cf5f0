"""Eager = graph = loops = fused loops = C for many sizes of one traced and compiled program.

Sizes 0 and 1 are not among them: capture always fixes those. Where a trace assumed something of its sizes, others are
traced anew, as the compiler does; how often is part of each test.
"""

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F  # noqa: N812  the field's name for it
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from support.backend_levels import as_tuple, same_form
from support.dynamic_levels import DynamicProgram, Shape

pytestmark = pytest.mark.cc
Tensor = torch.Tensor
SIZES = (7, 2, 3, 5, 4, 8, 9, 15, 16, 17, 31, 33, 64, 100, 1027)  # about vector widths; odd; longer than a block
AXES = ((7, 12), (2, 2), (3, 33), (16, 5), (17, 64), (33, 3), (5, 1030), (2100, 4), (8, 16))


def noisy(shape: tuple[int, ...], dtype: torch.dtype = torch.float32) -> Tensor:
    generator = torch.Generator().manual_seed(sum(shape))
    return torch.randn(shape, generator=generator, dtype=torch.float64).to(dtype)


def hold_to_eager(program: DynamicProgram, sizes: dict[str, int], dtype: torch.dtype) -> None:
    """Hold every level to eager; floats may be as far off as eager is from float64, and 8 units of the greatest.

    The greatest of results and arguments: sums cancel.
    """
    given = program.inputs(sizes, lambda shape: noisy(shape, dtype))
    tensors = [value for value in given if isinstance(value, Tensor)]
    wanted = as_tuple(program.function(*tensors))
    exact = as_tuple(program.function(*(t.double() for t in tensors)))
    for level, outputs in program.levels(given).items():
        for number, (found, want, true) in enumerate(zip(outputs, wanted, exact, strict=True)):
            where = f"{level} output {number} at {sizes}"
            if not isinstance(want, Tensor):
                assert (type(found), found) == (type(want), want), where
                continue
            assert isinstance(found, Tensor)
            assert isinstance(true, Tensor)
            assert same_form(found, want), where
            if not want.dtype.is_floating_point:
                assert torch.equal(found, want), where
                continue
            greatest = max(float(t.double().abs().max()) for t in (true, *tensors) if t.numel())
            scale = torch.finfo(want.dtype).eps * greatest
            allowed = 8 * scale + (want.double() - true.double()).abs()
            assert bool(((found.double() - true.double()).abs() <= allowed).all()), where


class Retraced:
    """A function with its traces: one more is made where no trace fits the sizes."""

    def __init__(self, function: Callable[..., object], shapes: tuple[Shape, ...], dtype: torch.dtype) -> None:
        self.function, self.shapes, self.dtype = function, shapes, dtype
        self.traces: list[DynamicProgram] = []

    def check(self, sizes: dict[str, int]) -> None:
        for program in self.traces:
            if program.fits(*sizes.values()):
                break
        else:
            program = DynamicProgram.traced(self.function, self.shapes, sizes, self.dtype)
            self.traces.append(program)
        hold_to_eager(program, sizes, self.dtype)


def rotate(x: Tensor) -> Tensor:
    half = x.shape[-1] // 2
    return torch.cat([-x[..., half:], x[..., :half]], -1)


ONE_OPEN: dict[str, tuple[Callable[..., object], tuple[Shape, ...]]] = {
    "pointwise": (lambda x, y: (x * 2 + y).relu() * x.sigmoid(), (("n",), ("n",))),
    "sum": (lambda x: (x.sum(), x.mean(), x.amax(), x.argmax()), (("n",),)),
    "softmax": (lambda x: x.softmax(-1), ((3, "n"),)),
    "log softmax": (lambda x: x.log_softmax(0), (("n", 5),)),
    "layer norm": (lambda x, w, b: F.layer_norm(x, (x.shape[-1],), w, b), ((3, "n"), ("n",), ("n",))),
    "layer norm inside": (lambda x, w: F.layer_norm(x, (20,), w), (("n", 20), (20,))),
    "variance": (lambda x: (x.var(0), x.std(1), x.var(1, correction=0)), (("n", 6),)),
    "columns": (lambda x: x.sum(0), (("n", 70),)),
    "wide columns": (lambda x: (x.sum(0), x.amin(0)), ((6, "n"),)),
    "views": (lambda x: (x.view(-1), x.t().reshape(-1) * 2, x.unsqueeze(1).expand(-1, 3, -1).sum(2)), (("n", 6),)),
    "split views": (lambda x: x.view(x.shape[0], 2, 3).transpose(0, 1).reshape(2, -1) + 1, (("n", 6),)),
    "slices": (lambda x: (x[1:] * 2, x[:-1] + 1, x[-1], x[x.shape[0] // 2 :] * 3), (("n", 4),)),
    "strides": (lambda x: x[:, ::2] * 2, ((3, "n"),)),
    "join": (lambda x, y: (torch.cat([x, y, x], 0) * 2, torch.stack([x, x + 1], 1)), (("n", 3), (5, 3))),
    "pad": (lambda x: (F.pad(x, (1, 2)), F.pad(x, (0, 1, 2, 0), value=3.0)), ((4, "n"),)),
    "triangles": (lambda x: (x.tril(), x.triu(1)), (("n", "n"),)),
    "causal": (lambda x: x.masked_fill(torch.ones_like(x).tril() == 0, -9.0).softmax(-1), (("n", "n"),)),
    "positions": (lambda x: x + torch.arange(x.shape[0])[:, None] * x.shape[0], (("n", 3),)),
    "flip": (lambda x: x.flip(0) - x, (("n",),)),
    "repeat": (lambda x: x.repeat(2, 3), (("n", 3),)),
    "rotate": (lambda x: rotate(x) * 2, ((3, "n"),)),
    "scaled by size": (lambda x: x / x.shape[0] + x.shape[0] ** 0.5, (("n", 3),)),
    "factories": (lambda x: (x + torch.zeros(x.shape[0]), torch.full((x.shape[0] + 1,), 2.0)), (("n",),)),
    "gather": (lambda x: x.gather(1, (x > 0).long() * (x.shape[1] - 1)), ((3, "n"),)),
    "index": (lambda x: x[torch.arange(x.shape[0] - 1, -1, -1)] + x[-1], (("n", 3),)),
    "select": (lambda x: x.select(0, x.shape[0] // 2) - x[0], (("n", 3),)),
    "transposed copy": (lambda x: x.t().contiguous() + 1, (("n", 20),)),
    "matmul": (lambda x, y: (x @ y).relu().sum(1), (("n", 6), (6, 9))),
    "sizes given out": (lambda x: (x * 2, x.shape[0] * 3 + 1), (("n", 2),)),
    "unfold pairs": (lambda x: x.view(x.shape[0] // 2, 2, 3).mean(1) if x.shape[0] % 2 == 0 else x * 1, (("n", 3),)),
}


TRACES = {"unfold pairs": 3, "flatten": 4}  # even, odd and 2; where the second size divides 4, or is less


@pytest.mark.parametrize("name", ONE_OPEN)
def test_one_open_size(name: str) -> None:
    function, shapes = ONE_OPEN[name]
    programs = Retraced(function, shapes, torch.float32)
    for size in SIZES:
        if name in ("triangles", "causal") and size > 200:
            continue
        programs.check({"n": size})
    assert len(programs.traces) <= TRACES.get(name, 2)
    assert all(program.builds <= 2 for program in programs.traces)


TWO_OPEN: dict[str, tuple[Callable[..., object], tuple[Shape, ...]]] = {
    "softmax": (lambda x: x.softmax(-1), (("n", "m"),)),
    "both sums": (lambda x: (x.sum(0), x.sum(1), x.sum()), (("n", "m"),)),
    "layer norm": (lambda x: F.layer_norm(x, (x.shape[1],)), (("n", "m"),)),
    "broadcast": (lambda x, y: (x[:, None] * y).exp().clamp(max=3), (("n",), ("m",))),
    "transpose": (lambda x: (x.t() + 1, x.t().contiguous().view(-1)), (("n", "m"),)),
    "flatten": (lambda x: x.view(-1, 4).sum(1) + x.transpose(1, 2).reshape(-1, 4).amax(1), (("n", "m", 4),)),
    "heads": (lambda x: x.view(x.shape[0], x.shape[1], 2, 4).transpose(1, 2).softmax(2).sum(3), (("n", "m", 8),)),
    "join": (lambda x, y: torch.cat([x, y]).cumsum(0) * 2, (("n",), ("m",))),
    "join and split": (lambda x, y: torch.cat([x, y])[x.shape[0] :] + y, (("n", 3), ("m", 3))),
    "moments": (lambda x: (x - x.mean(1, keepdim=True)) / (x.var(1, keepdim=True) + 1).sqrt(), (("n", "m"),)),
    "areas": (lambda x: x.mean((1, 2)) * (x.shape[1] * x.shape[2]), ((3, "n", "m"),)),
}


@pytest.mark.parametrize("name", TWO_OPEN)
def test_two_dynamic_sizes(name: str) -> None:
    function, shapes = TWO_OPEN[name]
    programs = Retraced(function, shapes, torch.float32)
    for first, second in AXES:
        programs.check({"n": first, "m": second})
    assert len(programs.traces) <= TRACES.get(name, 2)
    assert all(program.builds <= 2 for program in programs.traces)


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16, torch.float16], ids=str)
@pytest.mark.parametrize("name", ["softmax", "both sums", "moments", "broadcast"])
def test_other_dtypes(name: str, dtype: torch.dtype) -> None:
    function, shapes = TWO_OPEN[name]
    programs = Retraced(function, shapes, dtype)
    for first, second in AXES[:6]:
        programs.check({"n": first, "m": second})


STEPS: list[Callable[[Tensor], Tensor]] = [
    lambda x: x * 3 - 7,
    lambda x: torch.where(x > 0, x, 2),
    lambda x: x.t(),
    lambda x: x.reshape(x.shape[1], x.shape[0]),
    lambda x: x.reshape(-1).view(-1, x.shape[0]),
    lambda x: x[1:],
    lambda x: x[:, ::2],
    lambda x: x.flip(1),
    lambda x: torch.cat([x, x + 1], 0),
    lambda x: torch.cat([x[:, 1:], x], 1),
    lambda x: x.t().contiguous(),
    lambda x: F.pad(x, [1, 0, 0, 2]),
    lambda x: x.tril(1),
    lambda x: x - x.sum(1, keepdim=True),
    lambda x: x + x.sum(0, keepdim=True),
    lambda x: x * x.shape[0] + x.shape[1],
    lambda x: x.unsqueeze(1).expand(x.shape[0], 2, x.shape[1]).reshape(-1, x.shape[1]),
    lambda x: x[: x.shape[0] // 2 + 1],
]
SIZE = st.sampled_from([2, 3, 4, 5, 7, 8, 9, 16, 17, 23, 33])


@pytest.mark.slow
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    steps=st.lists(st.integers(0, len(STEPS) - 1), min_size=1, max_size=4),
    sizes=st.lists(st.tuples(SIZE, SIZE), min_size=2, max_size=4),
)
def test_random_programs_of_integers_bit_for_bit(steps: list[int], sizes: list[tuple[int, int]]) -> None:
    def function(x: Tensor) -> Tensor:
        for step in steps:
            x = STEPS[step](x)
        return x + 0

    traces: list[DynamicProgram] = []
    for first, second in sizes:
        named = {"n": first, "m": second}
        program = next((each for each in traces if each.fits(first, second)), None)
        if program is None:
            program = DynamicProgram.traced(function, [("n", "m")], named, torch.int64)
            traces.append(program)
        x = torch.arange(first * second).reshape(first, second) % 11 - 5
        wanted = function(x)
        for level, (found,) in program.levels([x, first, second]).items():
            assert isinstance(found, Tensor)
            assert same_form(found, wanted), f"{level} at {named}"
            assert torch.equal(found, wanted), f"{level} at {named}"


def test_a_quotient_of_a_loop_that_is_no_multiple_of_its_divisor() -> None:
    def function(x: Tensor) -> Tensor:
        return STEPS[17](STEPS[0](STEPS[16](x))) + 0  # rows 0 to n of n rows twice each

    program = DynamicProgram.traced(function, [("n", "m")], {"n": 2, "m": 2}, torch.int64)
    for first, second in [(2, 2), (5, 3), (8, 2)]:
        x = torch.arange(first * second).reshape(first, second)
        for level, (found,) in program.levels([x, first, second]).items():
            assert torch.equal(found, function(x)), level
