"""asinh and acosh of float64 beyond 1.34e154 were infinite in generated code; every function is held to eager there."""

import pytest
import torch

import plumbline

pytestmark = pytest.mark.cc
OF_ONE = (
    "exp exp2 expm1 log log2 log10 log1p sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh erf erfc lgamma"
    " sqrt rsqrt reciprocal sigmoid floor ceil trunc round frac square"
).split()
OF_TWO = "pow atan2 hypot nextafter copysign logaddexp xlogy div mul".split()
BITS = {torch.float32: torch.int32, torch.float64: torch.int64}


def extremes(dtype: torch.dtype) -> torch.Tensor:
    """Return powers of two over the whole range, and numbers around which functions overflow or turn."""
    info = torch.finfo(dtype)
    lowest, highest = (-1074, 1023) if dtype == torch.float64 else (-149, 127)
    powers = [2.0**exponent for exponent in range(lowest, highest + 1, (highest - lowest) // 90)]
    root, most = info.max**0.5, info.max
    turns = [0, info.tiny, info.eps, 0.5, 1 - info.eps, 1, 1 + info.eps, 1.5, 10, 88.8, 104, 709.7, 745.2, 1e19]
    values = torch.tensor(
        [*powers, *turns, root, 1.01 * root, 2 * root, most, torch.inf, torch.nan], dtype=torch.float64
    )
    return torch.cat([values, -values]).to(dtype)


def distance(first: torch.Tensor, second: torch.Tensor) -> float:
    """Return how many numbers of their dtype lie between two tensors at most; infinite for NaN against a number."""
    if not torch.equal(first.isnan(), second.isnan()) or not torch.equal(first.isinf(), second.isinf()):
        return torch.inf

    def place(values: torch.Tensor) -> torch.Tensor:
        bits = values.nan_to_num().view(BITS[values.dtype]).long()
        return torch.where(bits < 0, torch.iinfo(BITS[values.dtype]).min - bits, bits)

    return float((place(first) - place(second)).abs().max())


@pytest.mark.parametrize("dtype", BITS, ids=str)
def test_functions_of_one_number(dtype: torch.dtype) -> None:
    x = extremes(dtype)

    def every(x):
        return tuple(getattr(torch, name)(x) for name in OF_ONE)

    results = plumbline.compile(every, backend="inductor")(x)
    assert {name: d for name, a, e in zip(OF_ONE, results, every(x), strict=True) if (d := distance(a, e)) > 2} == {}


@pytest.mark.parametrize("dtype", BITS, ids=str)
def test_functions_of_two_numbers(dtype: torch.dtype) -> None:
    some = extremes(dtype)[::5]
    x, y = some.repeat_interleave(len(some)), some.repeat(len(some))

    def every(x, y):
        return tuple(getattr(torch, name)(x, y) for name in OF_TWO)

    results = plumbline.compile(every, backend="inductor")(x, y)
    assert {name: d for name, a, e in zip(OF_TWO, results, every(x, y), strict=True) if (d := distance(a, e)) > 2} == {}


def test_the_least_number_is_its_own_asinh() -> None:
    x = torch.full((17,), 5e-324, dtype=torch.float64)
    assert torch.equal(plumbline.compile(torch.asinh, backend="inductor")(x), x)
