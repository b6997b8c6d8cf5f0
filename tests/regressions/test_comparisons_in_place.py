"""The shape rule of `lt_` and its like gives the tensor the broadcast size, which eager refuses; kernels then wrote."""

import pytest
import torch

import plumbline


@pytest.mark.parametrize("backend", ["eager", "aot_eager", pytest.param("inductor", marks=pytest.mark.cc)])
@pytest.mark.parametrize("name", ["lt_", "eq_", "ge_"])
def test_a_comparison_that_does_not_fit_is_refused(name, backend):
    x = torch.full((5, 1), 0.5)
    with pytest.raises(RuntimeError, match="broadcast"):
        plumbline.compile(lambda x, y: getattr(x, name)(y), backend=backend)(x, torch.rand(5, 5))
    assert x.tolist() == [[0.5]] * 5
