"""`prelu` and `threshold` were left to ATen, which ends a loop before and behind each."""

from collections.abc import Callable

import pytest
import torch
from torch.nn import functional

import plumbline

HARD = [float("nan"), float("inf"), -float("inf"), 0.0, -0.0, 0.3, -0.3, 1e-30]
DTYPES = [torch.float32, torch.float64, torch.bfloat16, torch.float16]


def hard_values(dtype: torch.dtype, *shape: int) -> torch.Tensor:
    count = torch.Size(shape).numel()
    drawn = torch.randn(count, generator=torch.Generator().manual_seed(0))
    return torch.cat([torch.tensor(HARD), drawn])[:count].to(dtype).view(shape)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("weights", [1, 3])
@pytest.mark.parametrize("layout", [torch.contiguous_format, torch.channels_last])
def test_values_and_gradients(dtype: torch.dtype, weights: int, layout: torch.memory_format) -> None:
    def run(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        return functional.prelu(x + 0, weight)

    x = hard_values(dtype, 2, 3, 4, 5).to(memory_format=layout).requires_grad_()
    weight = torch.linspace(-1, 0.3, weights).to(dtype).requires_grad_()
    left, right = plumbline.compile(run, backend="inductor")(x, weight), run(x, weight)
    assert left.stride() == right.stride()
    torch.testing.assert_close(left, right, rtol=0, atol=0, equal_nan=True)
    gradient = torch.linspace(-1, 1, x.numel()).to(dtype).view(x.shape)
    ours, eagers = (torch.autograd.grad(value, (x, weight), gradient) for value in (left, right))
    torch.testing.assert_close(ours[0], eagers[0], rtol=0, atol=0, equal_nan=True)
    torch.testing.assert_close(ours[1], eagers[1], equal_nan=True)


@pytest.mark.parametrize("numbers", [(0.3, 0.7), (-1.5, -2.5), (2, 300), (-1, 3)])
@pytest.mark.parametrize("dtype", [*DTYPES, torch.int32, torch.int8, torch.uint8], ids=str)
def test_a_threshold_is_not_rounded_to_half(dtype: torch.dtype, numbers: tuple[float, float]) -> None:
    def run(x: torch.Tensor) -> torch.Tensor:
        return functional.threshold(x + 0, *numbers) * 2

    x = hard_values(dtype, 40) if dtype.is_floating_point else torch.arange(-5, 5).to(dtype)
    compiled = plumbline.compile(run, backend="inductor")
    left, right = outcome(compiled, x), outcome(run, x)
    if isinstance(right, str):
        assert left == right
    else:
        torch.testing.assert_close(left, right, rtol=0, atol=0, equal_nan=True)


def outcome(call: Callable[[torch.Tensor], torch.Tensor], x: torch.Tensor) -> torch.Tensor | str:
    """Return the result, or what eager says of numbers that do not fit an integer dtype."""
    try:
        return call(x)
    except RuntimeError as error:
        return str(error).splitlines()[0]
