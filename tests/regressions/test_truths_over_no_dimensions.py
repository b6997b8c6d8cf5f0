"""`any` and `all` over an empty list of dimensions reduce nothing, unlike `sum`: each element's own truth."""

import pytest
import torch

import plumbline

BACKENDS = ("aot_eager", pytest.param("inductor", marks=pytest.mark.cc))


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("function", [torch.any, torch.all])
@pytest.mark.parametrize("dims", [(), None])
@pytest.mark.parametrize("dtype", [torch.float32, torch.int32, torch.uint8, torch.bool])
def test_nothing_is_reduced(function, dims, dtype, backend):
    def f(x):
        return function(x, dim=dims), function(x, dim=dims, keepdim=True)

    x = torch.tensor([[0.0, 1.0, 2.0], [0.0, 0.0, 3.0]]).to(dtype)
    for result, wanted in zip(plumbline.compile(f, backend=backend)(x), f(x), strict=True):
        assert result.dtype == wanted.dtype
        assert result.shape == wanted.shape
        assert torch.equal(result, wanted)
