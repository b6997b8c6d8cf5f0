"""Found by `sweep operators` with special values: the gradient of smooth_l1_loss at nan was 0, nan in eager."""

import torch

import plumbline


def loss(x, y):
    return torch.nn.functional.smooth_l1_loss(x, y, beta=0.5, reduction="none")


def test_the_gradient_at_nan_is_nan() -> None:
    def gradient(function):
        x = torch.tensor([float("nan"), 0.1, -3.0, 2.0, float("inf")], requires_grad=True)
        function(x, torch.zeros(5)).sum().backward()
        return x.grad

    expected, actual = gradient(loss), gradient(plumbline.compile(loss, backend="inductor"))
    torch.testing.assert_close(actual, expected, rtol=0, atol=0, equal_nan=True)
