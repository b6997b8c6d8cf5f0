"""A checkpoint that does not preserve the random state draws other numbers in backward; compiled, it drew them once."""

import pytest
import torch
from torch.utils.checkpoint import checkpoint

import plumbline

BACKENDS = ["eager", "aot_eager", pytest.param("inductor", marks=pytest.mark.cc)]


def steps(compiler, reentrant, preserved):
    """Return results, gradients and random states of three calls with backward."""

    def block(x):
        return torch.tanh(x) * torch.rand(4)

    function = compiler(lambda x: checkpoint(block, x, use_reentrant=reentrant, preserve_rng_state=preserved) * 2)
    torch.manual_seed(0)
    for _ in range(3):
        x = torch.ones(3, 4, requires_grad=True)
        y = function(x)
        y.sum().backward()
        yield y.detach(), x.grad, torch.get_rng_state()


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("preserved", [True, False])
@pytest.mark.parametrize("reentrant", [True, False])
def test_random_numbers_of_backward(reentrant, preserved, backend):
    expected = list(steps(lambda function: function, reentrant, preserved))
    actual = list(steps(plumbline.compile(backend=backend), reentrant, preserved))
    for ours, eagers in zip(actual, expected, strict=True):
        torch.testing.assert_close(ours, eagers)


def test_what_preserves_or_does_not_draw_stays_one_graph():
    for block, settings in ((torch.sin, {"preserve_rng_state": False}), (torch.rand_like, {})):

        def program(x, block=block, settings=settings):
            return checkpoint(block, x * 2, use_reentrant=False, **settings) * 3

        plumbline.compile(program, backend="eager", fullgraph=True)(torch.ones(3, requires_grad=True))
