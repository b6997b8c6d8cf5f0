"""Gradients of gradients through compiled code are eager's: a slice of torch's operators, and programs of our own."""

import random

import pytest
import torch

import plumbline
from plumbline.compiler.base.events import RanEagerly, recording
from support.double_backward import EQUAL, NOTHING, REFUSED, candidates, outcome

SLICE = random.Random(16).sample(candidates(), 40)

# Their first samples have running statistics, and a graph that writes does not run twice.  Which operators are in the
# slice hangs on how many torch knows.
WRITING = ("nn.functional.batch_norm", "native_batch_norm", "nn.functional.instance_norm")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", SLICE)
def test_operator(name):
    found = outcome(name, "aot_eager")
    if name in WRITING:
        assert found.startswith("Unsupported: a gradient of a compiled graph's gradient is asked for")
        assert "cannot run again where it writes" in found
        return
    assert found in (EQUAL, NOTHING, REFUSED)


def test_most_of_the_slice_has_second_gradients():
    assert sum(outcome(name, "eager") == EQUAL for name in SLICE[:10]) >= 8


def penalty(x, w):
    """A gradient penalty, with all of it inside."""
    with torch.enable_grad():
        y = (x @ w).tanh().sum()
    (gradient,) = torch.autograd.grad(y, x, create_graph=True)
    return (gradient.norm() - 1) ** 2 + y


@pytest.mark.parametrize("backend", ["eager", "aot_eager", pytest.param("inductor", marks=pytest.mark.cc)])
def test_penalty_inside_compiled_code(backend):
    plumbline.reset()
    x, w = torch.randn(4, 3, requires_grad=True), torch.randn(3, 2, requires_grad=True)
    with recording() as events:
        found = torch.autograd.grad(plumbline.compile(penalty, backend=backend)(x, w), (x, w))
    torch.testing.assert_close(found, torch.autograd.grad(penalty(x, w), (x, w)))
    assert not [event for event in events if isinstance(event, RanEagerly)]


@pytest.mark.parametrize("backend", ["eager", "aot_eager", pytest.param("inductor", marks=pytest.mark.cc)])
@pytest.mark.parametrize("order", [2, 3])
def test_orders_from_outside(backend, order):
    plumbline.reset()

    def derivatives(run):
        x = torch.tensor([0.3, -1.2], dtype=torch.float64, requires_grad=True)
        value = run(x)
        for _ in range(order):
            (value,) = torch.autograd.grad(value.sum(), x, create_graph=True)
        return value

    def function(x):
        return x.sin() * x**3

    torch.testing.assert_close(derivatives(plumbline.compile(function, backend=backend)), derivatives(function))
