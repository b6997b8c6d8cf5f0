"""Global state of torch at a break: what runs there sees it, and what goes on afterwards leaves it as eager does."""

import pytest
import torch

import plumbline
from support.programs import Corpus, check, compiled

corpus = Corpus()
program = corpus.program
A = torch.linspace(-1, 1, 6).reshape(2, 3)


class Problem(Exception):
    pass


@plumbline.disable
def state():
    return (torch.is_autocast_enabled("cpu"), torch.get_autocast_dtype("cpu"), torch.is_grad_enabled(), depth())


def depth():
    torch.autocast_increment_nesting()
    return torch.autocast_decrement_nesting()


def product(x):
    y = x @ x.T
    plumbline.graph_break()
    return y @ x


@program(A, graphs=2, breaks=1)
def autocast_is_on_at_the_break(a):
    with torch.autocast("cpu"):
        b = a @ a.T
        inside = state()
        c = b @ a
    return b, c, c.dtype, a @ a.T, inside


@program(A, graphs=2, breaks=1, backend="aot_eager")
def autocast_with_a_traced_graph(a):
    with torch.autocast("cpu"):
        b = a @ a.T
        inside = state()
        c = b @ a
    return b, c, c.dtype, a @ a.T, inside


@program(A, graphs=3, breaks=2)
def autocast_is_off_in_an_inner_block(a):
    with torch.autocast("cpu"):
        with torch.autocast("cpu", enabled=False):
            b = a @ a.T
            inner = state()
        outer = state()
        c = b @ a
    return b.dtype, c.dtype, inner, outer


@program(A, graphs=2, breaks=1)
def autocast_of_the_caller(a):
    with torch.autocast("cpu", dtype=torch.float16):
        b = product(a)
    return b, b @ a.T


@program(A, graphs=2, breaks=1)
def autocast_of_the_callee(a):
    def f(x):
        with torch.autocast("cpu"):
            return product(x)

    return f(a).dtype, a @ a.T, f(a.float()).dtype if a.dim() == 9 else None


@program(A, graphs=2, breaks=1)
def exception_leaves_an_autocast_block_after_a_break(a):
    try:
        with torch.autocast("cpu"):
            b = a @ a.T
            plumbline.graph_break()
            b = b @ a
            raise Problem
    except Problem:
        return b, a @ a.T


@program(A, graphs=3, breaks=2)
def grad_mode_and_autocast(a):
    a = a.clone().requires_grad_()
    with torch.no_grad(), torch.autocast("cpu"):
        b = a @ a.T
        first = state()
        with torch.enable_grad():
            c = b @ a
            second = state()
    return b, c.requires_grad, (a @ a.T).requires_grad, first, second


@corpus.parametrize()
def test_program(program):
    check(program)


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_casts_are_dropped_when_the_last_block_is_left(backend):
    net, x = torch.nn.Linear(3, 3), A.clone()

    def f(x):
        with torch.autocast("cpu"):
            y = net(x)
            plumbline.graph_break()
            return net(y.float())

    run = compiled(f, backend=backend)
    for _ in range(3):
        assert torch.equal(run(x), f(x))
        assert depth() == 0
        with torch.no_grad():
            net.weight.add_(1)


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_graph_is_traced_under_the_grad_mode_it_is_called_under(backend):
    weight = torch.ones(3, requires_grad=True)

    def f(x):
        y = x * weight
        with torch.no_grad():
            z = y * 2
            plumbline.graph_break()
            z = z + weight
        return y + z * weight

    results = [compiled(f, backend=backend)(A), f(A)]
    grads = [torch.autograd.grad(result.sum(), weight)[0] for result in results]
    assert torch.equal(*results)
    assert torch.equal(*grads)
