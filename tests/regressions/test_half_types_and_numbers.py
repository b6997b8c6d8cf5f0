"""float16 and bfloat16 with a Python number: generated code rounded what eager does not, and the other way round.

Eager divides by a single number in float32 and rounds once (5000 // 3 was 1667), but rounds exponents and `alpha`.
"""

import pytest
import torch

import plumbline

pytestmark = pytest.mark.cc
NUMBERS = [3, 3.0, -7, 0.1, 1 / 3, -0.7, 5.5, 1000, 0, 2, -1]
OPERATIONS = {
    "floor": lambda x, n: torch.div(x, n, rounding_mode="floor"),
    "trunc": lambda x, n: torch.div(x, n, rounding_mode="trunc"),
    "//": lambda x, n: x // n,
    "number //": lambda x, n: n // x,
    "//=": lambda x, n: x.clone().floor_divide_(n),
    "tensor of no dimension": lambda x, n: torch.div(x, torch.tensor(n), rounding_mode="floor"),
    "tensor of one element": lambda x, n: torch.div(x, torch.full((1,), n, dtype=x.dtype), rounding_mode="trunc"),
    "tensor": lambda x, n: torch.div(x, x.flip(0) + n, rounding_mode="floor"),
    "%": lambda x, n: x % n,
    "number %": lambda x, n: n % x,
    "fmod": torch.fmod,
    "**": lambda x, n: x**n,
    "number **": lambda x, n: n**x,
    "/": lambda x, n: x / n,
    "*": lambda x, n: x * n,
    "<": lambda x, n: x < n,
    "clamp": lambda x, n: x.clamp(-n, n),
}


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
@pytest.mark.parametrize("number", NUMBERS)
def test_numbers(dtype: torch.dtype, number: float) -> None:
    extremes = torch.tensor([0.0, -0.0, 5000, 1e-5, float("inf"), -float("inf"), float("nan")])
    steps = torch.arange(-4000, 8000, 13.0)
    x = torch.cat([torch.linspace(-20, 20, 350), steps, steps * 7.5, extremes]).to(dtype)

    def every(x):
        return tuple(operation(x, number) for operation in OPERATIONS.values())

    results = plumbline.compile(every, backend="inductor")(x)
    for name, operation, actual in zip(OPERATIONS, OPERATIONS.values(), results, strict=True):
        expected = operation(x, number)
        different = int(((actual != expected) & ~(actual.isnan() & expected.isnan())).sum())
        assert different <= (5 if "**" in name else 0), name  # powers are not the same in every build of torch


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_the_factor_of_a_sum(dtype: torch.dtype) -> None:
    """8192 elements: eager rounds twice what is left over at the end of its vectors, and all of it without vectors."""
    x, y = torch.linspace(-20, 20, 8192).to(dtype), torch.linspace(900, 50, 8192).to(dtype)

    def scaled(x, y):
        return x.add(y, alpha=0.1), x.sub(y, alpha=1 / 3), torch.rsub(x, y, alpha=-0.7)

    def rounded_once(x, y):
        first, second, third = (float(torch.tensor(alpha, dtype=dtype)) for alpha in (0.1, 1 / 3, -0.7))
        left, right = x.float(), y.float()
        sums = left.add(right, alpha=first), left.sub(right, alpha=second), torch.rsub(left, right, alpha=third)
        return tuple(one.to(dtype) for one in sums)

    has_vectors = torch.backends.cpu.get_cpu_capability() != "DEFAULT"
    eager = (scaled if has_vectors else rounded_once)(x, y)
    for actual, expected in zip(plumbline.compile(scaled, backend="inductor")(x, y), eager, strict=True):
        assert (actual != expected).sum() < 80  # the product is rounded to float32 here, not in eager
