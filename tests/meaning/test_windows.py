"""Pooling and resizing by windows: bit for bit eager's, places included, on every level."""

import math
from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F  # noqa: N812  the field's name for it

from plumbline.compiler.base.events import FellBack, recording
from plumbline.compiler.graph.tracer import trace
from plumbline.compiler.loops.ir import Loop
from plumbline.compiler.lowering.lower import lower_graph
from support.backend_levels import eager, run_levels, same_form

pytestmark = pytest.mark.cc
Program = Callable[[torch.Tensor], object]
POOLS: dict[str, Program] = {
    "halves": lambda x: F.max_pool2d(x, 2, return_indices=True),
    "border": lambda x: F.max_pool2d(x, 3, 2, 1, return_indices=True),
    "border, every place": lambda x: F.max_pool2d(x, 3, 1, 1, return_indices=True),
    "last windows reach out": lambda x: F.max_pool2d(x, 3, 2, ceil_mode=True, return_indices=True),
    "uneven": lambda x: F.max_pool2d(x, (3, 2), (1, 3), (1, 1), return_indices=True),
    "values only": lambda x: F.max_pool2d(x, 3, 2, 1).exp2(),
    "average": lambda x: F.avg_pool2d(x, 2),
    "average of overlapping windows": lambda x: F.avg_pool2d(x, 3, 1),
    "average, divisor": lambda x: F.avg_pool2d(x, (1, 2), divisor_override=3),
}
SIZES: dict[str, Program] = {
    "doubled": lambda x: F.interpolate(x, scale_factor=2),
    "tripled": lambda x: F.interpolate(x, scale_factor=3),
    "to a size": lambda x: F.interpolate(x, size=(x.shape[-2] * 2, x.shape[-1] * 5)),
}


def hard_image(shape: tuple[int, ...], dtype: torch.dtype, *, last: bool) -> torch.Tensor:
    """Return an image with ties, infinities and NaN; last: with channels innermost in memory."""
    count = math.prod(shape)
    values = torch.randint(-3, 4, (count,)).double()  # so few that windows have their greatest more than once
    values[::17], values[5::19], values[7::23] = float("nan"), -float("inf"), -0.0
    image = values.view(shape).to(dtype)
    return image.to(memory_format=torch.channels_last) if last else image


def assert_levels_equal(program: Program, image: torch.Tensor) -> None:
    wanted = eager(program, (image,))
    for level, outputs in run_levels(program, (image,)).items():
        for found, want in zip(outputs, wanted, strict=True):
            assert isinstance(found, torch.Tensor)
            assert isinstance(want, torch.Tensor)
            assert same_form(found, want), level
            torch.testing.assert_close(found, want, rtol=0, atol=0, equal_nan=True, msg=lambda m, n=level: f"{n}: {m}")


@pytest.mark.parametrize("name", POOLS)
@pytest.mark.parametrize(
    ("shape", "dtype", "last"),
    [
        ((2, 3, 8, 8), torch.float32, False),
        ((2, 3, 9, 41), torch.float32, False),
        ((1, 3, 6, 38), torch.float32, True),
        ((3, 7, 36), torch.float64, False),
        ((1, 2, 5, 40), torch.bfloat16, False),
    ],
)
def test_pooling(name: str, shape: tuple[int, ...], dtype: torch.dtype, last: bool) -> None:
    assert_levels_equal(POOLS[name], hard_image(shape, dtype, last=last))


@pytest.mark.parametrize("name", SIZES)
@pytest.mark.parametrize("last", [False, True])
def test_resizing(name: str, last: bool) -> None:
    assert_levels_equal(SIZES[name], hard_image((2, 3, 4, 18), torch.float32, last=last))


def test_gradient_of_resizing_adds_in_eagers_order() -> None:
    grad = torch.randn(2, 3, 8, 36)
    arguments = ([8, 36], [2, 3, 4, 18])
    assert_levels_equal(lambda g: torch.ops.aten.upsample_nearest2d_backward.default(g, *arguments), grad)


@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("shape", [(2, 3, 8, 8), (1, 16, 5, 7), (2, 4, 1, 18)])
def test_bilinear_resizing(shape: tuple[int, ...], last: bool) -> None:
    """Infinities and NaN where eager has them; else within the rounding of a sum of four products."""

    def program(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        wide = F.interpolate(x, size=(2 * x.shape[-2], 4 * x.shape[-1]), mode="bilinear")
        return F.interpolate(x, scale_factor=2, mode="bilinear"), wide

    image = torch.randn(shape)
    image.view(-1)[1::13], image.view(-1)[5::29] = float("inf"), float("nan")
    image = image.to(memory_format=torch.channels_last) if last else image
    wanted = eager(program, (image,))
    for level, outputs in run_levels(program, (image,)).items():
        for found, want in zip(outputs, wanted, strict=True):
            assert isinstance(found, torch.Tensor)
            assert isinstance(want, torch.Tensor)
            assert same_form(found, want), level
            torch.testing.assert_close(
                found, want, rtol=0, atol=2e-6, equal_nan=True, msg=lambda m, n=level: f"{n}: {m}"
            )


@pytest.mark.parametrize(
    ("program", "reason"),
    [
        (lambda x: F.max_pool2d(x, 7), "a window of many elements, or with gaps"),
        (lambda x: F.max_pool2d(x, 2, dilation=2), "a window of many elements, or with gaps"),
        (lambda x: F.avg_pool2d(x, 3, 1, 1), "an average over a border"),
        (lambda x: F.interpolate(x, size=(11, 20)), "resizing by a dynamic factor or one that is not whole"),
    ],
)
def test_what_is_left_to_aten_says_why(program: Program, reason: str) -> None:

    with recording() as events:
        steps = lower_graph(trace(program, (torch.zeros(1, 1, 20, 20),))).steps
    assert not any(isinstance(step, Loop) for step in steps)
    assert [event.why for event in events if isinstance(event, FellBack)] == [reason]
