"""Beside an exact 0 of float64 a unit of noise was 0, distances were infinite, and any wrong value passed as noise."""

import pytest
import torch

from plumbline.oracle import check


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16])
@pytest.mark.parametrize("error", [1.0, 1e-3])
def test_wrong_values_among_zeros_are_wrong(dtype, error):
    x = torch.randn(50, dtype=dtype, generator=torch.Generator().manual_seed(0))
    assert check(torch.floor, (x,), compiled=lambda x: torch.floor(x) + error).failed
    assert check(torch.relu, (x,), compiled=lambda x: torch.relu(x) + error * (x < 0)).failed


def test_what_float64_rounds_is_noise_among_zeros():
    x = torch.randn(50, dtype=torch.float64, generator=torch.Generator().manual_seed(0)).relu()
    assert not check(lambda x: x / 3 * 1.1, (x,), compiled=lambda x: x * 1.1 / 3).failed
