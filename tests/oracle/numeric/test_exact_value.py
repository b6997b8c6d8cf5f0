"""The float64 value beside eager's: what is kept of it is good to a small part of a rounding."""

import pytest
import torch

from plumbline.oracle.numeric.exact_value import ExactValue
from plumbline.oracle.numeric.screen import screened

LARGE = (512, 256)


@pytest.mark.parametrize(("dtype", "roundoff"), [(torch.float32, 2**-24), (torch.bfloat16, 2**-8)])
def test_a_large_value_is_kept_to_a_tenth_of_a_rounding(dtype, roundoff):
    exact = torch.randn(LARGE, dtype=torch.float64)
    eager = (exact * (1 + 4 * roundoff * torch.randn(LARGE, dtype=torch.float64))).to(dtype)
    kept = ExactValue.beside(eager, exact)
    assert kept.number.itemsize == 2
    assert float(((kept.value(eager) - exact) / exact).abs().max()) < 0.1 * roundoff


def test_where_eager_is_far_off_more_bits_are_kept():
    exact = torch.randn(LARGE, dtype=torch.float64)
    eager = (exact * 1.5).float()
    kept = ExactValue.beside(eager, exact)
    assert float(((kept.value(eager) - exact) / exact).abs().max()) < 2**-24


def test_small_values_and_infinite_distances_are_kept_as_they_are():
    exact = torch.randn(8, dtype=torch.float64)
    assert torch.equal(ExactValue.beside(exact.float(), exact).value(exact.float()), exact)
    exact = torch.randn(LARGE, dtype=torch.float64)
    eager = exact.float()
    eager[3, 3] = torch.inf
    assert torch.equal(ExactValue.beside(eager, exact).value(eager), exact)


def test_the_screen_sees_the_rows_that_differ_alone():
    torch.manual_seed(0)
    exact = torch.randn(LARGE, dtype=torch.float64)
    eager, other = ((exact * (1 + 2**-22 * torch.randn(LARGE, dtype=torch.float64))).float() for _ in range(2))
    other[:100] = eager[:100]
    whole, kept = screened(other, eager, exact), screened(other, eager, ExactValue.beside(eager, exact))
    assert whole.decision is not None
    assert kept.decision is not None
    assert kept.error == pytest.approx(whole.error, rel=1e-2)
    other[400] *= 1.001
    assert screened(other, eager, ExactValue.beside(eager, exact)).decision is None
