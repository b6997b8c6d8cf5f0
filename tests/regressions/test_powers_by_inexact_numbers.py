"""Found by `fuzz graphs`: 2147483647 ** 3.7 was 17 units in the last place off.

Single precision has no 3.7.  Eager rounds it in whole vectors, and not in the elements that are left.
"""

import math

import pytest
import torch

import plumbline

SPECIAL = [0.0, -0.0, math.inf, -math.inf, math.nan, -1.0, -2.5, 1.0, 1e-45, 3e38, 1e-38, -1e-40, 2.0, 0.5, 1e10]


@pytest.mark.cc
@pytest.mark.parametrize("exponent", [3.7, -3.7, 1 / 3, 100.1, 1e300, math.inf, math.nan])
def test_the_exponent_is_not_rounded(exponent: float) -> None:
    given = torch.tensor([*SPECIAL, 2147483647.0])
    got = plumbline.compile(lambda x: x**exponent)(given)
    torch.testing.assert_close(got, (given.double() ** exponent).float(), rtol=4e-7, atol=1e-44, equal_nan=True)


@pytest.mark.cc
@pytest.mark.parametrize("exponent", [9999999999.0, 16777217.0, -16777217.0, 1e10, 4e9 + 0.5])
def test_large_exponents(exponent: float) -> None:
    """What is left of 9999999999 is -1: a correction by it means nothing where the power is infinite."""
    given = torch.tensor([*SPECIAL, 5e9, -5e9, 3.0, 1.0000001, -1.0000001, 0.9999999, 1.000005, -0.999995])
    got = plumbline.compile(lambda x: x**exponent)(given)
    torch.testing.assert_close(got, (given.double() ** exponent).float(), rtol=2e-6, atol=1e-44, equal_nan=True)
    assert torch.equal(got.signbit()[~got.isnan()], (given.double() ** exponent).signbit()[~got.isnan()])
