"""gcc took a float made whole and a float again for `trunc`: -0.0 for 0.0, and 3e10 where int32 has no such number.

It also clipped constants where the instruction, and so eager, gives the smallest number.
"""

import pytest
import torch

import plumbline

FLOATS = [-0.3, 0.3, -0.0, 2.7, -2.7, 3e10, -3e10, 1e30, float("inf"), float("nan")]


@pytest.mark.cc
@pytest.mark.parametrize("size", [1, 3, 40])
@pytest.mark.parametrize("whole", [torch.int32, torch.int64])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_there_and_back(dtype: torch.dtype, whole: torch.dtype, size: int) -> None:
    def f(x: torch.Tensor) -> torch.Tensor:
        return x.to(whole).to(dtype)

    compiled = plumbline.compile(f, backend="inductor", dynamic=False)
    for number in FLOATS:
        x = torch.full((size,), number, dtype=dtype)
        actual, expected = compiled(x), f(x)
        assert torch.equal(actual, expected)
        assert torch.equal(actual.signbit(), expected.signbit())


@pytest.mark.cc
@pytest.mark.parametrize("number", FLOATS)
def test_constants(number: float) -> None:
    def f(x: torch.Tensor) -> torch.Tensor:
        return torch.full((5,), number).to(torch.int32) + x

    x = torch.zeros(5, dtype=torch.int32)
    assert torch.equal(plumbline.compile(f, backend="inductor")(x), f(x))
