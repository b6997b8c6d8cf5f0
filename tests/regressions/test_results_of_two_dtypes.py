"""Operators whose kernels give another dtype for operands of two dtypes than torch's rules for fake tensors say."""

import itertools

import pytest
import torch
from torch.nn import functional

import plumbline

PROGRAMS = {
    "addr": lambda x, y: torch.addr(x.expand(3, 3), y, y, beta=0),
    "ldexp": torch.ldexp,
    "ldexp of one number": lambda x, y: torch.ldexp(x[0], y),
    "soft_margin_loss": lambda x, y: functional.soft_margin_loss(x, y, reduction="none"),
    "huber_loss": lambda x, y: functional.huber_loss(x, y, reduction="none"),
}


@pytest.mark.parametrize("dtypes", itertools.permutations([torch.float16, torch.float32, torch.float64], 2), ids=str)
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_conversion_of_the_result_is_done(name, dtypes):
    def program(x, y):
        result = PROGRAMS[name](x, y)
        return result, *(result.to(dtype) for dtype in (torch.float16, torch.float32, torch.float64))

    x, y = (torch.tensor([1.0, 2.0, 3.0], dtype=dtype) for dtype in dtypes)
    found = plumbline.compile(program, backend="aot_eager")(x, y)
    for one, other in zip(found, program(x, y), strict=True):
        assert one.dtype == other.dtype
        assert torch.equal(one, other)
