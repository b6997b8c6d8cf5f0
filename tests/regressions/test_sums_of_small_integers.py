"""A sum in a type of 8 or 16 bits that code in the same kernel reads: it went on in 32 bits."""

import pytest
import torch

import plumbline

pytestmark = pytest.mark.cc


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int8, torch.int16])
@pytest.mark.parametrize("rows", [4, 40])
@pytest.mark.parametrize("reduce", [torch.sum, torch.prod])
def test_what_reads_a_small_sum_reads_it_wrapped(dtype, rows, reduce):
    def program(x):
        total = reduce(x, 0, dtype=dtype)
        return torch.maximum(total, torch.tensor(99)), total / 2, total.to(torch.int64), total < 100

    values = torch.arange(37 * rows).reshape(rows, 37) % 121 + 1
    x = values.to(dtype) if reduce is torch.prod else values
    for compiled, eager in zip(plumbline.compile(program, backend="inductor")(x), program(x), strict=True):
        assert torch.equal(compiled, eager)
