"""Two equal calls of several results: one was given out in place of what the backward had saved of the other."""

import pytest
import torch

import plumbline
from support.torch_release import SAVED_TENSORS_ARE_READ_ONE_BY_ONE


def deviations(x):
    given, _ = torch.std_mean(x * 2, 0)
    used, _ = torch.std_mean(x * 2, 0)
    return used.exp(), given


@pytest.mark.skipif(not SAVED_TENSORS_ARE_READ_ONE_BY_ONE, reason="a write to one result ends the backward of others")
@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
def test_what_is_given_out_may_be_written_to_before_the_backward(backend):
    gradients = []
    for one in (deviations, plumbline.compile(deviations, backend=backend)):
        x = torch.arange(6.0).reshape(3, 2).requires_grad_()
        result, given = one(x)
        with torch.no_grad():
            given.zero_()
        result.sum().backward()
        gradients.append(x.grad)
    torch.testing.assert_close(*gradients)
