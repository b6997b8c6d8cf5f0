"""A call that writes to an argument and lays out its result in its own way: a graph laid it out as the argument."""

import pytest
import torch
from torch.nn import functional

import plumbline


def rectified(x):
    y = functional.rrelu(x)
    return functional.silu(y), y


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
@pytest.mark.parametrize("shape", [(2, 2), (2, 3), (3, 4, 5)], ids=str)
def test_the_result_lies_as_in_eager(backend, shape):
    x = torch.randn(shape).transpose(0, -1)
    results = plumbline.compile(rectified, backend=backend)(x)
    assert [one.stride() for one in results] == [one.stride() for one in rectified(x)]
