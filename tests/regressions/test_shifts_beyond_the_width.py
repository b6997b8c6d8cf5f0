"""uint8 shifted right by eight bits or more kept its highest bit in generated code."""

import pytest
import torch

import plumbline

INTEGERS = [torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64]
AMOUNTS = [0, 1, 7, 8, 9, 15, 16, 31, 32, 33, 63, 64, 100, 255, -1, -2, -128]


@pytest.mark.cc
@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
def test_every_amount(dtype: torch.dtype) -> None:
    info = torch.iinfo(dtype)
    amounts = [amount for amount in [*AMOUNTS, info.min, info.max] if info.min <= amount <= info.max]
    values = torch.tensor([info.min, info.max, 0, 1, 3, info.max // 2], dtype=dtype)
    x, y = values.repeat_interleave(len(amounts)), torch.tensor(amounts, dtype=dtype).repeat(len(values))

    def shifts(x, y):
        both = torch.bitwise_left_shift(x, y), torch.bitwise_right_shift(x, y)
        by_numbers = [shift(x, n) for n in amounts for shift in (torch.bitwise_left_shift, torch.bitwise_right_shift)]
        return *both, *by_numbers, x << y, x >> y, torch.bitwise_right_shift(info.max, y)

    results = plumbline.compile(shifts, backend="inductor")(x, y)
    for actual, expected in zip(results, shifts(x, y), strict=True):
        assert actual.dtype == expected.dtype
        assert torch.equal(actual, expected)
