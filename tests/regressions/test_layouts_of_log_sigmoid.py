"""The logarithm of the sigmoid is contiguous whatever the strides of its input, also where it is decomposed."""

import pytest
import torch

import plumbline

BACKENDS = ("aot_eager", pytest.param("inductor", marks=pytest.mark.cc))


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("requires_grad", [False, True])
def test_strides_are_those_of_eager(requires_grad, backend):
    x = torch.randn(2, 3, 4, requires_grad=requires_grad).permute(2, 0, 1)
    result = plumbline.compile(torch.nn.functional.logsigmoid, backend=backend)(x)
    wanted = torch.nn.functional.logsigmoid(x)
    assert result.stride() == wanted.stride()
    torch.testing.assert_close(result, wanted)
