"""A backward of fewer results reads what the forward kept, also where it computes one of two equal calls again."""

import pytest
import torch

import plumbline


def twice(x):
    first, second = torch.erfinv(x), torch.erfinv(x)
    return second, torch.nn.functional.logsigmoid(first)


@pytest.mark.cc
@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
@pytest.mark.parametrize("asked", [(0,), (1,), (0, 1)])
def test_each_result_alone_has_its_gradient(backend, asked):
    x = torch.linspace(-0.9, 0.9, 65).requires_grad_()
    found, expected = (
        torch.autograd.grad([function(x)[place].sum() for place in asked], x)
        for function in (plumbline.compile(twice, backend=backend), twice)
    )
    torch.testing.assert_close(found, expected)
