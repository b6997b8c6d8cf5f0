"""A gradient by a result that was computed before a graph break was refused: compiled results lie side by side."""

import pytest
import torch
from torch.autograd import grad

import plumbline
from plumbline.compiler.base.events import FellBack, recording

BACKENDS = ["eager", "aot_eager", pytest.param("inductor", marks=pytest.mark.cc)]


def asked(x):
    y = x * 2
    s = (y * y).sum()
    plumbline.graph_break()
    return torch.autograd.grad(s, y)[0] * 3 + x


def asked_by_a_name(x):
    y = x * 2
    s = (y * y).sum()
    plumbline.graph_break()
    return grad([s], [y])[0]


def slope(s, y):
    return torch.autograd.grad(s, y, create_graph=True)[0]


def asked_in_a_function(x):
    y = x * 2
    s = (y * y * y).sum()
    plumbline.graph_break()
    return slope(s, y).sum()


def asked_by_the_caller(x):
    def results():
        y = x * 2
        z = y.exp()
        plumbline.graph_break()
        return (z * y).sum(), z, y

    s, z, y = results()
    return torch.autograd.grad(s, (z, y, x))


def hooked(x):
    y = x * 2
    s = (y * y).sum()
    plumbline.graph_break()
    y.register_hook(lambda given: given * 10)
    s.backward()
    return x.grad


def kept(x):
    y = x * 2
    s = (y * y).sum()
    plumbline.graph_break()
    y.retain_grad()
    s.backward()
    return y.grad


def backward_to_it(x):
    y = x * 2
    s = (y * y).sum()
    y.retain_grad()
    plumbline.graph_break()
    s.backward(inputs=[y])
    return y.grad


PROGRAMS = [asked, asked_by_a_name, asked_in_a_function, asked_by_the_caller, hooked, kept, backward_to_it]


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("program", PROGRAMS)
def test_as_in_plain_python(program, backend):
    compiled = plumbline.compile(program, backend=backend)
    for _ in range(2):
        given, expected = (run(torch.arange(3.0).requires_grad_()) for run in (compiled, program))
        torch.testing.assert_close(given, expected)


@pytest.mark.cc
def test_what_nobody_asks_for_is_compiled():
    def program(x):
        y = x * 2
        s = (y * y).sum()
        plumbline.graph_break()
        s.backward()
        return y.detach() + x.grad

    with recording() as events:
        plumbline.compile(program)(torch.arange(3.0).requires_grad_())
    assert not [event for event in events if isinstance(event, FellBack)]
