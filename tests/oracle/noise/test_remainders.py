"""Remainders by divisors so small that the quotient overflows: ATen's vector kernels give NaN there."""

import pytest
import torch

from plumbline.oracle import VerdictKind, check
from plumbline.oracle.noise.shadow import ShadowRun

DIVIDENDS = torch.linspace(-3, 3, 24, dtype=torch.float64)
DIVISORS = torch.tensor([5e-324, 1e-310, -1e-300, -5e-324, 2.0, -2.0, 0.0, 3.0] * 3, dtype=torch.float64)
PROGRAMS = {
    "fmod": torch.fmod,
    "remainder": torch.remainder,
    "in place": lambda a, b: a.clone().remainder_(b),
    "by a number": lambda a, b: torch.remainder(a, 1e-310),
    "of a number": lambda a, b: torch.remainder(2.5, b),
}


def one_by_one(program, a, b):
    """Return the results of the scalar kernel, which takes what does not fill a vector."""
    return torch.cat([program(a[i : i + 1], b[i : i + 1]) for i in range(len(a))])


@pytest.mark.parametrize("name", PROGRAMS)
def test_lanes_hold_the_scalar_kernels_remainder(name):
    with ShadowRun(replicas=2) as run:
        result = PROGRAMS[name](DIVIDENDS, DIVISORS)
    exact, expected = run.lanes_of(result).exact, one_by_one(PROGRAMS[name], DIVIDENDS, DIVISORS)
    assert not run.untrusted
    assert torch.equal(exact.isnan(), expected.isnan())
    assert torch.equal(exact.nan_to_num(), expected.nan_to_num())


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_compiler_may_have_the_remainder_where_eagers_vectors_lose_it(name):
    program = PROGRAMS[name]

    def exact(a, b):
        return one_by_one(program, a, b)

    def wrong(a, b):
        return one_by_one(program, a, b) + (b == 5e-324) * 0.5

    given = (DIVIDENDS, DIVISORS)
    assert not check(program, given, compiled=exact).failed
    assert name == "by a number" or check(program, given, compiled=wrong).kind is VerdictKind.WRONG
