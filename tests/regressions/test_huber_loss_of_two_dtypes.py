"""The Huber loss of two dtypes has the dtype of its input, also where it is decomposed."""

import pytest
import torch

import plumbline

BACKENDS = ("aot_eager", pytest.param("inductor", marks=pytest.mark.cc))


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("reduction", ["none", "mean"])
@pytest.mark.parametrize("dtypes", [(torch.float32, torch.float64), (torch.float32, torch.float32)])
def test_the_dtype_is_that_of_eager(dtypes, reduction, backend):
    def f(x, y):
        return torch.nn.functional.huber_loss(x, y, reduction=reduction)

    x, y = torch.tensor([0.5, 3.0], dtype=dtypes[0]), torch.tensor([1.0, 0.0], dtype=dtypes[1])
    result, wanted = plumbline.compile(f, backend=backend)(x, y), f(x, y)
    assert result.dtype == wanted.dtype
    torch.testing.assert_close(result, wanted)
