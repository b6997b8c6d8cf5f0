"""`softshrink` rounded its threshold to half precision, where the kernel rounds its result alone."""

import pytest
import torch

import plumbline


@pytest.mark.cc
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
@pytest.mark.parametrize("count", [7, 64])
def test_it_is_rounded_once(dtype, count):
    special = torch.tensor([torch.nan, torch.inf, -torch.inf, 1.1, -1.1, 0.0])
    x = torch.cat([special, torch.randn(count, generator=torch.Generator().manual_seed(0)) * 3]).to(dtype)
    compiled = plumbline.compile(lambda x: torch.nn.functional.softshrink(x, 1.1) + 0, backend="inductor")
    torch.testing.assert_close(compiled(x), torch.nn.functional.softshrink(x, 1.1) + 0, rtol=0, atol=0, equal_nan=True)
