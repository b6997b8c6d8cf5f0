"""A number that a trace fixed became a whole number, and lost the sign of its zero: a division by it was refused."""

import pytest
import torch

import plumbline

PROGRAMS = {
    "remainder": lambda x, n: (torch.div(x, n % 3, rounding_mode="floor"), torch.tensor(n)),
    "difference": lambda x, n: (torch.div(x, n - 3.0, rounding_mode="trunc"), torch.tensor(n)),
    "negative": lambda x, n: (torch.div(x, -(n - 3.0), rounding_mode="floor"), torch.tensor(n)),
    "itself": lambda x, n: (torch.div(x, n, rounding_mode="floor"), torch.tensor(n)),
}


@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS)
@pytest.mark.parametrize("dtype", [torch.uint8, torch.float32])
def test_a_divisor_that_is_zero_at_one_call(program, backend, dtype):
    x = torch.arange(6).to(dtype)
    compiled = plumbline.compile(program, backend=backend)
    for number in (3.5, 3.0, 6.0, 0.0, -0.0):
        for found, expected in zip(compiled(x, number), program(x, number), strict=True):
            assert found.dtype == expected.dtype
            torch.testing.assert_close(found, expected, rtol=0, atol=0, equal_nan=True)
            assert torch.equal(found.nan_to_num(1).signbit(), expected.nan_to_num(1).signbit())
