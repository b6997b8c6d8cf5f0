"""Found by `sweep operators` with special values: the gradient of smooth_l1_loss at nan was 0, nan in eager."""

import pytest
import torch

import plumbline
from plumbline.compiler.graph.decompositions import default_decompositions


def loss(x, y):
    return torch.nn.functional.smooth_l1_loss(x, y, beta=0.5, reduction="none")


def test_the_gradient_at_nan_is_nan() -> None:
    def gradient(function):
        x = torch.tensor([float("nan"), 0.1, -3.0, 2.0, float("inf")], requires_grad=True)
        function(x, torch.zeros(5)).sum().backward()
        return x.grad

    expected, actual = gradient(loss), gradient(plumbline.compile(loss, backend="inductor"))
    torch.testing.assert_close(actual, expected, rtol=0, atol=0, equal_nan=True)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_halves_are_rounded_once(dtype: torch.dtype) -> None:
    """As in the kernel, but for how one step of float32 falls; rounded at every step, one in seven differs."""
    gradient, x, y = (torch.randn(2000).to(dtype) for _ in range(3))
    operator = torch.ops.aten.smooth_l1_loss_backward.default
    expected = operator(gradient, x, y, 1, 0.7)
    actual = default_decompositions()[operator](gradient, x, y, 1, 0.7)
    assert actual.dtype is dtype
    assert int((actual != expected).sum()) <= 20
