"""`backward()` inside compiled code: gradients add up in the leaves; used-up histories refuse another backward."""

import torch
from torch import nn

import plumbline
from support.programs import Corpus, check

corpus = Corpus()
program = corpus.program
A = torch.linspace(-1, 1, 6).reshape(2, 3)


def leaf():
    return (A.clone().requires_grad_(),)


def model():
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))


def with_model():
    return model(), A.clone()


def training(kind, **settings):
    """Return a maker of (a model with gradients, its optimizer, its argument)."""

    def make():
        m = model()
        m(A).sum().backward()
        return m, kind(m.parameters(), **settings), A.clone()

    return make


def with_history():
    (a,) = leaf()
    return a * 2, a


def with_hook():
    (a,) = leaf()
    a.register_hook(lambda g: g * 5)
    return (a,)


def with_late_hook():
    (a,) = leaf()
    a.register_post_accumulate_grad_hook(lambda p: p.grad.add_(1))
    return (a,)


def with_gradient():
    (a,) = leaf()
    a.grad = torch.ones(2, 3)
    return a, a.grad


@program(make=with_model)
def gradients_of_a_model(m, a):
    loss = m(a).sum()
    loss.backward()
    return [p.grad for p in m.parameters()]


@program(make=training(torch.optim.SGD, lr=0.1, momentum=0.9))
def step_of_training(m, optimizer, a):
    optimizer.zero_grad()
    loss = m(a).pow(2).mean()
    loss.backward()
    nn.utils.clip_grad_norm_(m.parameters(), 0.5)
    optimizer.step()
    return loss


@program(make=training(torch.optim.Adam, lr=0.1), rounding=True)
def several_steps_of_training(m, optimizer, a):
    losses = []
    for _ in range(3):
        optimizer.zero_grad()
        loss = m(a).pow(2).mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    return torch.stack(losses)


@program(make=with_gradient)
def gradient_adds_up_in_place(a, g):
    (a**2).sum().backward()
    return g + 1, a.grad is g


@program(make=leaf)
def two_backwards_add_up(a):
    (a**2).sum().backward()
    g = a.grad
    (a**3).sum().backward()
    return a.grad is g, g


@program(make=leaf)
def history_is_kept(a):
    loss = (a**2).sum()
    loss.backward(retain_graph=True)
    loss.backward(torch.tensor(2.0))
    return a.grad


@program(make=leaf, backward=True)
def backward_goes_on_outside(a):
    b = (a**2).sum()
    b.backward(retain_graph=True)
    return b


@program(make=leaf, backward=True)
def used_up_history_refuses_another_backward(a):
    b = a**2
    b.sum().backward()
    return b


@program(make=leaf, backward=True)
def history_without_anything_to_use_up(a):
    b = (a * 2).sum()
    b.backward()
    return b


@program(make=leaf, breaks=1)
def second_backward_is_refused(a):
    loss = (a**2).sum()
    loss.backward()
    loss.backward()


@program(make=leaf, breaks=1)
def gradient_of_many_numbers_is_not_implied(a):
    (a**2).backward()


@program(make=lambda: (*leaf(), *leaf()))
def unused_leaf_keeps_none(a, b):
    (a**2).sum().backward()
    return b.grad is None, a.grad


@program(make=leaf)
def gradient_takes_the_strides_of_its_leaf(a):
    a.sum().backward()
    return a.grad


@program(make=lambda: (torch.arange(12.0).reshape(4, 3)[::2].requires_grad_(),), breaks=1)
def leaf_with_gaps(a):
    (a**2).sum().backward()
    return a.grad


@program(make=leaf)
def leaf_made_inside(a):
    w = torch.ones(3, requires_grad=True)
    (a.detach() * w).sum().backward()
    return w.grad, w


@program(make=leaf)
def step_under_no_grad(a):
    loss = (a**2).sum()
    with torch.no_grad():
        loss.backward()
        a -= a.grad
    return a


@program(make=leaf)
def backward_through_a_hook(a):
    b = a * 2
    b.register_hook(lambda g: g * 3)
    b.sum().backward()
    return a.grad


@program(make=with_history, graphs=1, breaks=1)
def backward_beyond_the_arguments(b, a):
    (b**2).sum().backward()
    return a.grad


@program(make=with_hook, breaks=1)
def backward_through_a_hook_from_outside(a):
    (a**2).sum().backward()
    return a.grad


@program(make=leaf, then=((with_late_hook, True), (with_hook, False), (leaf, False)))
def hooks_come_later(a):
    (a**2).sum().backward()
    return a.grad


@program(make=with_late_hook, breaks=1)
def backward_to_a_late_hook(a):
    (a**2).detach()
    (a**2).sum().backward()
    return a.grad


@program(make=with_model, graphs=2, breaks=1)
def break_after_backward(m, a):
    m(a).sum().backward()
    print("here")
    return m[0].weight.grad * 2


@program(make=with_model)
def frozen_layer_gets_none(m, a):
    m[0].weight.requires_grad_(False)
    m(a).sum().backward()
    return m[0].weight.grad, m[0].bias.grad


@program(make=with_model)
def backward_through_a_checkpoint(m, a):
    torch.utils.checkpoint.checkpoint(m, a, use_reentrant=False).sum().backward()
    return m[0].weight.grad


@corpus.parametrize()
def test_program(program):
    check(program)


def test_a_training_step_is_one_graph_under_every_backend():
    """The traced backends keep the step whole too: the result refuses a second backward in eager's words."""
    for backend in ("eager", "aot_eager"):
        m, optimizer, a = training(torch.optim.SGD, lr=0.1)()
        expected, other, _ = training(torch.optim.SGD, lr=0.1)()
        loss = plumbline.compile(step_of_training, backend=backend, fullgraph=True)(m, optimizer, a)
        torch.testing.assert_close(loss, step_of_training(expected, other, a))
        torch.testing.assert_close(list(m.parameters()), list(expected.parameters()))
        assert loss.requires_grad
