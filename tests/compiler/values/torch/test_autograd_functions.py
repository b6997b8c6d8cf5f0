"""An autograd.Function is one node, right under every backend, guarded by what its Python reads."""

import pytest
import torch
from torch.utils.checkpoint import checkpoint

from plumbline.compiler import api
from plumbline.compiler.base.events import Broke, Captured, Recompiled, recording
from plumbline.compiler.base.options import Options

FORWARD, BACKWARD = 2.0, 3.0
SEEN = []


class Scale(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, power):
        ctx.save_for_backward(x)
        ctx.power = power
        return x**power * FORWARD

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * x * ctx.power * BACKWARD, None


class Split(torch.autograd.Function):
    @staticmethod
    def forward(x):
        return x.sin(), x.cos()

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx, first, second):
        (x,) = ctx.saved_tensors
        return first * x - second


class Noting(Scale):
    @staticmethod
    def forward(ctx, x, power):
        SEEN.append(1)
        return x * power

    @staticmethod
    def backward(ctx, grad):
        return grad, None


class Clipped(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.mark_dirty(x)
        return x.clamp_(max=0.5)

    @staticmethod
    def backward(ctx, grad):
        return grad * 7


def both(function, backend="eager"):
    """Return (results and gradient under eager, the same compiled, events)."""
    found = []
    run = api.compile(function, backend=backend, options=Options(strict=True))
    for call in (function, run):
        x = torch.linspace(-1, 1, 6).reshape(2, 3).requires_grad_()
        with recording() as events:
            y = call(x)
        y.sum().backward()
        found.append((y.detach(), x.grad))
    return (*found, events)


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize(
    "function",
    [
        lambda x: Scale.apply(x * 2, 2) + 1,
        lambda x: Split.apply(x)[0] * Split.apply(x + 1)[1],
        lambda x: Clipped.apply(x * 2) * 3,
        lambda x: checkpoint(lambda y: (y * 2).sin(), x, use_reentrant=False) * 3,
        lambda x: Scale.apply(x.detach(), 3) * x,
    ],
    ids=["scale", "two_outputs", "in_place", "checkpoint", "no_gradient"],
)
def test_one_graph_and_eagers_gradients(function, backend):
    expected, actual, events = both(function, backend)
    torch.testing.assert_close(actual[0], expected[0])
    torch.testing.assert_close(actual[1], expected[1])
    assert sum(isinstance(event, Captured) for event in events) == 1
    assert not [event for event in events if isinstance(event, Broke)]


@pytest.mark.parametrize("side", ["FORWARD", "BACKWARD"])
@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_what_forward_and_backward_read_is_guarded(side, backend, monkeypatch):
    def function(x):
        return Scale.apply(x, 2)

    run = api.compile(function, backend=backend, options=Options(strict=True))

    def gradient(call):
        x = torch.ones(3, requires_grad=True)
        y = call(x)
        y.sum().backward()
        return torch.cat([y.detach(), x.grad])

    assert torch.equal(gradient(run), gradient(function))
    with recording() as events:
        assert torch.equal(gradient(run), gradient(function))
    assert not [event for event in events if isinstance(event, Recompiled)]
    monkeypatch.setitem(globals(), side, 11.0)
    with recording() as events:
        assert torch.equal(gradient(run), gradient(function))
    assert [event for event in events if isinstance(event, Recompiled)]


def test_a_backward_that_reads_state_is_a_break_that_says_so():
    table = {"scale": 2.0}

    class Reading(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, grad):
            return grad * table["scale"]

    with recording() as events:
        api.compile(lambda x: Reading.apply(x) + 1, backend="eager")(torch.ones(2, requires_grad=True))
        api.compile(lambda x: Reading.apply(x) + 1, backend="eager")(torch.ones(2))  # which has no backward
    broken = [event for event in events if isinstance(event, Broke)]
    assert [event.reason for event in broken] == ["backward-state"]
    assert "reads 'table'" in broken[0].what


def test_effects_are_not_lost():
    SEEN.clear()
    run = api.compile(lambda x: Noting.apply(x, 2.0) + 1, backend="eager", options=Options(strict=True))
    for _ in range(3):
        run(torch.ones(2, requires_grad=True))
    assert len(SEEN) == 3
