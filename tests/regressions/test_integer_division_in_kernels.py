"""`addcdiv` of bools became a C division of integers, which ended the process where the divisor was zero."""

import pytest
import torch

import plumbline

pytestmark = pytest.mark.cc
INTEGERS = [torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64]
DIVISIONS = {
    "addcdiv": lambda a, b: torch.addcdiv(a, a, b),
    "addcdiv of floats": lambda a, b: torch.addcdiv(a.float(), a, b),
    "true": torch.div,
    "floor": lambda a, b: torch.div(a, b, rounding_mode="floor"),
    "trunc": lambda a, b: torch.div(a, b, rounding_mode="trunc"),
    "remainder": torch.remainder,
    "fmod": torch.fmod,
    "reciprocal": lambda a, b: torch.reciprocal(b),
    "floor_divide": torch.floor_divide,
    "by a number": lambda a, b: (a // 0) + b,
    "remainder of a number": lambda a, b: 5 % b,
    "gcd": torch.gcd,
    "divided and stored": lambda a, b: a.clone().div_(b, rounding_mode="trunc"),
}


def outcome(function, *inputs):
    try:
        return function(*inputs)
    except Exception as error:
        return type(error)


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
@pytest.mark.parametrize("name", DIVISIONS)
def test_divisors_of_zero(name: str, dtype: torch.dtype) -> None:
    a, b = torch.ones(30).to(dtype), (torch.arange(30) % 3).to(dtype)
    expected = outcome(DIVISIONS[name], a, b)
    actual = outcome(plumbline.compile(DIVISIONS[name], backend="inductor"), a, b)
    if isinstance(expected, type):
        assert actual is expected
    else:
        assert torch.equal(actual.nan_to_num(), expected.nan_to_num())


@pytest.mark.parametrize("dtype", [torch.int8, torch.int16, torch.int32, torch.int64], ids=str)
@pytest.mark.parametrize("name", ["floor", "floor_divide", "remainder", "fmod"])
def test_the_least_integer_by_minus_one(name: str, dtype: torch.dtype) -> None:
    a, b = torch.full((30,), torch.iinfo(dtype).min, dtype=dtype), torch.full((30,), -1, dtype=dtype)
    assert torch.equal(plumbline.compile(DIVISIONS[name], backend="inductor")(a, b), DIVISIONS[name](a, b))


@pytest.mark.parametrize("dtype", [torch.int32, torch.int64], ids=str)
def test_the_least_integer_where_eager_ends_the_process(dtype: torch.dtype) -> None:
    """Towards zero, eager divides in hardware, which traps; the kernel wraps, as it does for every other operation."""
    least = torch.iinfo(dtype).min
    a, b = torch.full((30,), least, dtype=dtype), torch.full((30,), -1, dtype=dtype)
    actual = plumbline.compile(lambda a, b: torch.div(a, b, rounding_mode="trunc"), backend="inductor")(a, b)
    assert torch.equal(actual, a)
