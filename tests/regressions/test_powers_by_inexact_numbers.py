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
