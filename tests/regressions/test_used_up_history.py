"""A captured training step gave a loss that took a second backward without a word; eager refuses."""

import pytest
import torch
from torch import nn

import plumbline
from plumbline.oracle import check
from support.torch_release import since_release


def step(model, optimizer, x):
    optimizer.zero_grad()
    loss = model(x).pow(2).mean()
    loss.backward()
    optimizer.step()
    return loss


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_the_judge_finds_nothing(backend):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    assert not check(step, (model, optimizer, torch.randn(2, 3)), compiler="plumbline", backend=backend).failed


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_a_leaf_that_is_first_used_after_the_backward(backend):
    """An operator without a derivative: the leaf was not known when the engine ran, and its gradient came out None."""

    def program(x, y):
        leaf = x.detach().clone().requires_grad_()
        (gradient,) = torch.autograd.grad(leaf.pow(3).sum(), leaf)
        return gradient, 0.5 // y

    x, y = torch.ones(3), torch.ones(3, requires_grad=True)
    assert not check(program, (x, y), compiler="plumbline", backend=backend).failed


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_a_history_that_fake_tensors_of_dynamic_sizes_refuse(backend):
    """The rule for the derivative of `trace` takes no dynamic size: that was taken for eager's refusal."""

    def program(x, y):
        leaf = y.detach().clone().requires_grad_()
        (gradient,) = torch.autograd.grad(leaf.pow(3).sum(), leaf)
        return gradient, torch.trace(x)

    compiled = plumbline.compile(program, backend=backend)
    for size in (4, 8, 9):
        x = torch.randn(size, 2, requires_grad=True)
        (gradient,) = torch.autograd.grad(compiled(x, torch.randn(size))[1], x)
        (expected,) = torch.autograd.grad(torch.trace(x), x)
        assert torch.equal(gradient, expected)
        assert (expected.sum() == 2) == since_release("2.13")  # before, one more for each time the diagonal wraps
