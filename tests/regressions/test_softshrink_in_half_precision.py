"""`softshrink` rounded its threshold to half precision, where the kernel rounds its result alone."""

import pytest
import torch

import plumbline
from plumbline.compiler.graph.decompositions import default_decompositions


@pytest.mark.cc
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
@pytest.mark.parametrize("count", [7, 64])
def test_it_is_rounded_once(dtype, count):
    special = torch.tensor([torch.nan, torch.inf, -torch.inf, 1.1, -1.1, 0.0])
    x = torch.cat([special, torch.randn(count, generator=torch.Generator().manual_seed(0)) * 3]).to(dtype)
    compiled = plumbline.compile(lambda x: torch.nn.functional.softshrink(x, 1.1) + 0, backend="inductor")
    torch.testing.assert_close(compiled(x), torch.nn.functional.softshrink(x, 1.1) + 0, rtol=0, atol=0, equal_nan=True)


@pytest.mark.parametrize("number", [True, False, 2])
def test_a_threshold_may_be_true(number):
    """Where ATen runs what it is made of, no truth value may be subtracted."""
    x = torch.linspace(-3, 3, 13)
    made = default_decompositions()[torch.ops.aten.softshrink.default](x, number)
    torch.testing.assert_close(made, torch.nn.functional.softshrink(x, number), rtol=0, atol=0)
