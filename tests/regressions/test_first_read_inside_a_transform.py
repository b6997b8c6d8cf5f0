"""A tensor that is first read inside a transform became no input with open sizes: its twin was refused a gradient."""

import torch

import plumbline
from plumbline.compiler.base.events import Broke, recording


def test_a_tensor_with_a_gradient_may_be_read_first_inside_a_transform():
    x, weight = torch.randn(3, 4), torch.randn(3, 4, requires_grad=True)
    with recording() as events:
        run = plumbline.compile(lambda x: torch.func.grad(lambda y: (y.sin() * weight).sum())(x), dynamic=True)
        found = run(x)
    torch.testing.assert_close(found, x.cos() * weight)
    assert found.requires_grad
    assert not [event for event in events if isinstance(event, Broke)]
