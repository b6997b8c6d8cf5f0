"""Hooks on the node that adds up a leaf's gradient run in a captured backward, too: for as long as the node lives."""

import pytest
import torch

import plumbline

BACKENDS = pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])


def node_of(leaf):
    return leaf.expand_as(leaf).grad_fn.next_functions[0][0]


def hooked_inside(leaf):
    seen = []
    node = node_of(leaf)
    node.register_hook(lambda *given: seen.append(len(given)))
    (leaf * 3).sum().backward()
    return seen


def hooked_before(leaf):
    seen = []
    node = node_of(leaf)
    node.register_prehook(lambda *given: seen.append(len(given)))
    leaf.sum().backward()
    return seen


def beside_another_graph(leaf):
    seen = []
    saved = leaf * 2
    other = (saved * saved).sum()
    node = node_of(leaf)
    node.register_hook(lambda *given: seen.append(len(given)))
    (leaf * 3).sum().backward()
    return seen, other.item()


def let_go_of(leaf):
    seen = []
    node = node_of(leaf)
    node.register_hook(lambda *given: seen.append(len(given)))
    del node
    (leaf * 3).sum().backward()
    return seen


@BACKENDS
@pytest.mark.parametrize("program", [hooked_inside, hooked_before, beside_another_graph, let_go_of])
def test_registered_by_the_program(program, backend):
    compiled = plumbline.compile(program, backend=backend)
    for _ in range(2):
        assert compiled(torch.ones(4, requires_grad=True)) == program(torch.ones(4, requires_grad=True))


@BACKENDS
def test_registered_by_the_caller(backend):
    leaf, seen = torch.nn.Parameter(torch.ones(4)), []

    def step(x):
        (leaf * x).sum().backward()
        return x + 1

    compiled = plumbline.compile(step, backend=backend)
    compiled(torch.ones(4))
    node = torch.autograd.graph.get_gradient_edge(leaf).node
    handle = node.register_hook(lambda *given: seen.append("ran"))
    compiled(torch.ones(4))
    compiled(torch.ones(4))
    handle.remove()
    compiled(torch.ones(4))
    assert seen == ["ran", "ran"]
    assert leaf.grad.tolist() == [4.0] * 4
