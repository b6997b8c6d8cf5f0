"""Training: backward outside and inside, optimizers, hooks, autograd functions, gradients of gradients.

rounding=True: torch.optim keeps its step counts as tensors when it is compiled, so the formula rounds elsewhere.
"""

import copy
import functools

import torch
import torch.nn.functional as F  # noqa: N812 - as everyone writes it
from torch import nn

from support.programs import Corpus, check

corpus = Corpus()
program = corpus.program
A = torch.linspace(-1, 1, 6).reshape(2, 3)
CALLS = []


def seeded(make):
    torch.manual_seed(1)
    return make()


def leaf():
    return (A.clone().requires_grad_(),)


def model():
    return seeded(lambda: nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1)))


def with_model():
    return model(), A.clone()


def stepped(kind, **settings):
    """Return a maker of (optimizer with gradients filled and one step done,)."""

    def make():
        m = model()
        optimizer = kind(m.parameters(), **settings)
        for _ in range(2):
            optimizer.zero_grad()
            m(A).sum().backward()
            optimizer.step()
        return (optimizer,)

    return make


class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * 2 * x


class Straight(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, scale):
        ctx.scale = scale
        return x.round() * scale

    @staticmethod
    def backward(ctx, grad):
        return grad * ctx.scale, None


class Once(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.exp()

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * x.exp()


class WithNumber(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, options):
        ctx.options = options
        return x * 2, 5, None

    @staticmethod
    def backward(ctx, grad, number, nothing):
        assert number is None
        assert nothing is None
        return grad * ctx.options["scale"], None


class Recomputed(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, function):
        ctx.save_for_backward(x)
        ctx.function = function
        return function(x)

    @staticmethod
    def backward(ctx, grad):
        with torch.enable_grad():
            x = ctx.saved_tensors[0].detach().requires_grad_()
            y = ctx.function(x)
        return torch.autograd.grad(y, x, grad)[0], None


@program(make=leaf, backward=True)
def backward_outside(a):
    return (a * 2).sin().sum()


@program(make=leaf, backward=True)
def several_outputs_with_gradients(a):
    b = a * 2
    return b.sum(), b.detach(), (b * b).mean(), b


@program(make=leaf, backward=True)
def partly_without_gradients(a):
    with torch.no_grad():
        k = a.sum()
    return (a * k).sum(), k


@program(make=leaf, backward=True)
def detach_and_requires_grad(a):
    b = a.detach()
    c = (a * 2).detach_()
    return (a * b + c).sum(), b.requires_grad, c.requires_grad


@program(make=with_model, backward=True)
def model_and_loss(m, x):
    return F.mse_loss(m(x), torch.ones(2, 1))


@program(make=with_model)
def training_step_with_backward_inside(m, x):
    loss = m(x).sum()
    loss.backward()
    return loss.detach()


@program(make=lambda: (lambda m: (m, torch.optim.SGD(m.parameters(), 0.1), A.clone()))(model()), stable=False)
def whole_training_step(m, optimizer, x):
    optimizer.zero_grad()
    loss = m(x).sum()
    loss.backward()
    optimizer.step()
    return loss.detach()


@program(make=leaf)
def gradient_inside(a):
    (g,) = torch.autograd.grad((a * a).sum(), a)
    return g


@program(make=leaf, backward=True)
def gradient_of_a_gradient(a):
    (g,) = torch.autograd.grad((a**3).sum(), a, create_graph=True)
    return g.sum()


@program(make=leaf, graphs=1, breaks=0)
def functional_gradient(a):
    return torch.func.grad(lambda x: (x * x).sum())(a)


@program(make=leaf, graphs=1, breaks=0)
def functional_gradient_and_value(a):
    return torch.func.grad_and_value(lambda x: (x.sin()).sum())(a)


@program(A, graphs=1)
def vmap_of_a_function(a):
    return torch.func.vmap(lambda row: row * row.sum())(a)


@program(A, graphs=1)
def jacobian(a):
    return torch.func.jacrev(lambda x: x * 2)(a[0])


@program(make=leaf, graphs=1, backward=True)
def autograd_function(a):
    return Square.apply(a * 2).sum()


@program(make=leaf, graphs=1, backward=True)
def autograd_function_with_constants(a):
    return Straight.apply(a, 3.0).sum()


@program(make=leaf, backward=True)
def autograd_function_for_one_backward(a):
    return Once.apply(a).sum()


@program(make=leaf, backward=True)
def autograd_function_with_a_number(a):
    b, n, nothing = WithNumber.apply(a, {"scale": 3.0})
    return (b * n).sum(), nothing


@program(make=leaf, backward=True)
def autograd_function_that_computes_again(a):
    return Recomputed.apply(a, torch.tanh).sum()


@program(make=leaf)
def gradient_of_an_autograd_function(a):
    (g,) = torch.autograd.grad(Square.apply(a).sum(), a, create_graph=True)
    return torch.autograd.grad(g.sum(), a)[0]


def keep_products(ctx, operator, *args, **kwargs):
    kept = operator is torch.ops.aten.mul.Tensor
    return (
        torch.utils.checkpoint.CheckpointPolicy.MUST_SAVE
        if kept
        else (torch.utils.checkpoint.CheckpointPolicy.PREFER_RECOMPUTE)
    )


@program(make=leaf, backward=True)
def checkpoint_that_keeps_some_results(a):
    contexts = functools.partial(torch.utils.checkpoint.create_selective_checkpoint_contexts, keep_products)
    run = torch.utils.checkpoint.checkpoint
    return run(lambda x: (x * 2).sin(), a, use_reentrant=False, context_fn=contexts).sum()


@program(make=leaf, backward=True)
def reentrant_checkpoint(a):
    return torch.utils.checkpoint.checkpoint(lambda x: (x * 2).sin(), a, use_reentrant=True).sum()


@program(make=with_model, graphs=0, breaks=1)
def reentrant_checkpoint_cuts_the_history(m, x):
    return torch.utils.checkpoint.checkpoint(m, x, use_reentrant=True).requires_grad


@program(make=leaf, backward=True)
def hook_on_an_intermediate(a):
    b = a * 2
    b.register_hook(lambda g: g * 10)
    return (b * 3).sum()


@program(make=leaf, backward=True)
def hook_on_an_input(a):
    a.register_hook(lambda g: g * 10)
    return (a * 3).sum()


@program(make=leaf, graphs=2, breaks=1, backward=True)
def retain_grad(a):
    b = a * 2
    b.retain_grad()
    return (b * 3).sum()


@program(make=leaf, graphs=1, breaks=0)
def reading_gradients(a):
    return a * (1 if a.grad is None else 2)


def leaf_with_gradient():
    (a,) = leaf()
    (a * 3).sum().backward()
    return (a,)


@program(make=leaf_with_gradient, graphs=1)
def using_and_clearing_gradients(a):
    b = a.detach() - 0.1 * a.grad
    a.grad = None
    return b


@program(make=leaf_with_gradient, graphs=1)
def scaling_gradients_in_place(a):
    a.grad.mul_(0.5)
    return a.grad + 1


@program(make=leaf_with_gradient, graphs=1)
def clipping_gradients(a):
    total = torch.nn.utils.clip_grad_norm_([a], 0.1)
    return total


@program(make=leaf_with_gradient, graphs=1)
def manual_step_under_no_grad(a):
    with torch.no_grad():
        a -= 0.1 * a.grad
        a.grad.zero_()
    return a + 1


@program(make=stepped(torch.optim.SGD, lr=0.1))
def sgd_step(optimizer):
    optimizer.step()


@program(make=stepped(torch.optim.SGD, lr=0.1, momentum=0.9, weight_decay=0.01, nesterov=True))
def sgd_with_momentum_step(optimizer):
    optimizer.step()


@program(make=stepped(torch.optim.SGD, lr=0.1, foreach=True))
def sgd_foreach_step(optimizer):
    optimizer.step()


@program(make=stepped(torch.optim.Adam, lr=0.1), rounding=True)
def adam_step(optimizer):
    optimizer.step()


@program(make=stepped(torch.optim.Adam, lr=0.1, foreach=True, amsgrad=True), rounding=True)
def adam_foreach_step(optimizer):
    optimizer.step()


@program(make=stepped(torch.optim.AdamW, lr=0.1), rounding=True)
def adamw_step(optimizer):
    optimizer.step()


@program(make=stepped(torch.optim.AdamW, lr=0.1, foreach=True), rounding=True)
def adamw_foreach_step(optimizer):
    optimizer.step()


@program(make=stepped(torch.optim.RMSprop, lr=0.1), rounding=True)
def rmsprop_step(optimizer):
    optimizer.step()


@program(make=stepped(torch.optim.Adagrad, lr=0.1), rounding=True)
def adagrad_step(optimizer):
    optimizer.step()


@program(make=stepped(torch.optim.SGD, lr=0.1), graphs=0)
def zero_grad_to_none(optimizer):
    optimizer.zero_grad()


@program(make=stepped(torch.optim.SGD, lr=0.1))
def zero_grad_in_place(optimizer):
    optimizer.zero_grad(set_to_none=False)


@program(make=leaf, backward=True, graphs=1)
def checkpointed(a):
    return torch.utils.checkpoint.checkpoint(lambda x: (x * 2).sin(), a, use_reentrant=False).sum()


@program(make=lambda: (copy.deepcopy(model()), A.clone()), backward=True)
def frozen_layers(m, x):
    m[0].weight.requires_grad_(False) if False else None
    return m[2](m[0](x).detach().tanh())


@program(make=leaf, backward=True)
def in_place_with_gradients(a):
    b = a * 2
    b.mul_(3)
    b[0] = 1.0
    return b.sum()


@program(make=leaf, backward=True)
def views_with_gradients(a):
    b = (a * 2).view(3, 2).t()
    return b[1:].sum() + b.flatten()[0]


@program(make=leaf, backward=True, graphs=2, breaks=1)
def gradients_across_a_break(a):
    b = a * 2
    print("here")
    return (b * a).sum()


@program(make=leaf, backward=True)
def dropout_with_gradients(a):
    return F.dropout(a * 2, 0.5, training=True).sum()


@program(make=leaf, backward=True)
def clone_and_expand_with_gradients(a):
    return (a.clone()[None].expand(4, 2, 3) * 2).sum() + a.repeat(2, 1).mean()


@program(make=leaf)
def is_leaf_and_grad_fn(a):
    b = a * 2
    return a.is_leaf, b.is_leaf, a.grad_fn is None, b.requires_grad, b


@program(make=leaf)
def requires_grad_of_a_fresh_tensor(a):
    w = torch.ones(3, requires_grad=True)
    return (a * w).sum()


@program(make=lambda: (nn.Parameter(A.clone()), A.clone()), backward=True)
def parameter_argument(w, x):
    return F.linear(x, w).sum()


@corpus.parametrize()
def test_program(program):
    check(program)
