"""Squares of very small and very large numbers: eager's kernels of variance keep them in double precision."""

import pytest
import torch

import plumbline

SCALES = [1e-40, 1e-30, 1e25, 7e37]


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("name", ["std", "var", "std_mean", "var_mean"])
def test_deviations_neither_vanish_nor_overflow(name: str, scale: float) -> None:
    x = torch.linspace(1, 2, 40).reshape(2, 20) * scale

    def deviation(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        result = getattr(torch, name)(x, dim=1)
        return result if isinstance(result, tuple) else (result,)

    expected = deviation(x)
    assert torch.isfinite(expected[0]).all() or name.startswith("var")
    found = plumbline.compile(deviation, backend="inductor")(x)
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-44)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
def test_squared_errors_of_halves_are_rounded_at_every_step(dtype: torch.dtype, reduction: str) -> None:
    x, target = (torch.tensor(values, dtype=dtype) for values in ([300.0, 1.4, -7.3, 2.6], [1.0, 9.9, 0.1, -3.3]))

    def loss(x: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.mse_loss(x, target, reduction=reduction)

    assert torch.equal(plumbline.compile(loss, backend="inductor")(x, target), loss(x, target))
