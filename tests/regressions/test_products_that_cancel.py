"""`rsub` with alpha of numbers that nearly cancel was 8.9 units of noise off: it rounded the product before the sum."""

from fractions import Fraction

import pytest
import torch

import plumbline
from plumbline.compiler.loops.scalar_ops import SCALAR_OPS

PROGRAMS = {
    "add": (lambda a, b: torch.add(a, b, alpha=-65), lambda a, b: a - 65 * b),
    "sub": (lambda a, b: torch.sub(a, b, alpha=65), lambda a, b: a - 65 * b),
    "rsub": (lambda a, b: torch.rsub(b, a, alpha=65), lambda a, b: a - 65 * b),
    "addcmul": (lambda a, b: torch.addcmul(a, b, b), lambda a, b: a + b * b),
    "addcmul of a value": (lambda a, b: torch.addcmul(a, b, b, value=-4), lambda a, b: a - 4 * b * b),
}


def rounded(value, dtype):
    """Return a fraction as the nearest number of a dtype."""
    return torch.tensor(float(value), dtype=torch.float64).to(dtype).item()


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_sum_with_a_product_is_rounded_once(name):
    program, exact = PROGRAMS[name]
    b = torch.randn(67, generator=torch.Generator().manual_seed(0))
    zero = exact(torch.zeros(()).double(), b.double())
    a = (-zero * (1 + 1e-6)).float()
    found = plumbline.compile(program, backend="inductor")(a, b)
    expected = [
        rounded(exact(Fraction(x), Fraction(y)), torch.float32) for x, y in zip(a.tolist(), b.tolist(), strict=True)
    ]
    assert found.tolist() == expected


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_interpreters_meaning_is_rounded_once(dtype):
    generator = torch.Generator().manual_seed(0)
    a, b, noise = (torch.randn(200, generator=generator, dtype=dtype) for _ in range(3))
    c = -(a * b) * (1 + noise * 1e-9)
    found = SCALAR_OPS["fma"].meaning(a, b, c).tolist()
    triples = zip(a.tolist(), b.tolist(), c.tolist(), strict=True)
    assert found == [rounded(Fraction(x) * Fraction(y) + Fraction(z), dtype) for x, y, z in triples]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_interpreters_meaning_at_extremes(dtype):
    most, inf = torch.finfo(dtype).max, float("inf")
    a = torch.tensor([most, inf, float("nan"), 1.0, -inf], dtype=dtype)
    b = torch.tensor([2.0, 1.0, 1.0, most, 2.0], dtype=dtype)
    c = torch.tensor([1.0, -1.0, 1.0, most, 1.0], dtype=dtype)
    torch.testing.assert_close(SCALAR_OPS["fma"].meaning(a, b, c), a * b + c, rtol=0, atol=0, equal_nan=True)
