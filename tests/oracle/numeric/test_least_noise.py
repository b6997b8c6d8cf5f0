"""What passes in units of a last rounding passes in those of any replicas."""

import math

import pytest
import torch

from plumbline.oracle.numeric.float_values import judge_by_exact
from plumbline.oracle.numeric.least_noise import margin_bound
from plumbline.oracle.numeric.noise_units import measured
from plumbline.oracle.verdict import VerdictKind

DTYPES = (torch.float32, torch.float16, torch.bfloat16)
SHAPES = ((), (1,), (7,), (32,), (4, 8), (2, 3, 5))


def drawn(shape, dtype, seed, roundings):
    """Return a compiled value, eager's and the exact one; errors are uniform, in u of the value."""
    generator = torch.Generator().manual_seed(seed)
    exact = torch.randn(shape, generator=generator, dtype=torch.float64)
    u = torch.finfo(dtype).eps / 2

    def off(scale):
        xi = torch.rand(shape, generator=generator, dtype=torch.float64) * 2 - 1
        return (exact * (1 + scale * u * xi)).to(dtype)

    return off(roundings), off(1.0), exact


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_the_bound_is_never_below_the_margin_of_replicas(dtype):
    known = 0
    for seed in range(120):
        actual, eager, exact = drawn(SHAPES[seed % len(SHAPES)], dtype, seed, 1.0 + seed % 5)
        bound = margin_bound(actual, eager, exact)
        known += math.isfinite(bound)
        generator = torch.Generator().manual_seed(seed)
        for scale in (0.0, 1e-12, 2.0**-24, 1e-3):
            xi = torch.rand((8, *exact.shape), generator=generator, dtype=torch.float64) * 2 - 1
            _, statistics = measured(actual, eager, exact, exact * (1 + scale * xi))
            assert statistics.margin <= bound * (1 + 1e-9)
    assert known > 60


def test_a_number_two_roundings_off_needs_no_replicas():
    exact = torch.tensor([1.3], dtype=torch.float64)
    eager = exact.float()
    actual = torch.nextafter(torch.nextafter(eager, torch.tensor([2.0])), torch.tensor([2.0]))
    assert float((eager.double() - exact).abs()) > 0
    assert judge_by_exact(actual, eager, exact).kind is not VerdictKind.NOISE  # four u off: too much for one number
    assert judge_by_exact(torch.nextafter(eager, torch.tensor([2.0])), eager, exact).kind is VerdictKind.NOISE


def test_nothing_is_accepted_where_eager_is_exact_or_far_off_or_not_finite():
    exact = torch.tensor([1.5, 2.5], dtype=torch.float64)
    eager = exact.float()
    assert margin_bound(eager * (1 + 2.0**-21), eager, exact) > 1
    assert margin_bound(eager, eager * (1 + 2.0**-20), exact) == math.inf
    assert margin_bound(torch.full((2,), math.nan), eager, exact) == math.inf
    assert margin_bound(eager, torch.full((2,), math.nan), exact) == math.inf
