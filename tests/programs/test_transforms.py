"""torch.func: vjp, jvp, vmap and their like in one graph, made inside and outside, over closures and modules."""

import warnings

import torch
from torch import nn
from torch.func import functional_call, grad, hessian, jacfwd, jacrev, jvp, stack_module_state, vjp, vmap

from support.programs import Corpus, check

corpus = Corpus()
program = corpus.program
A = torch.linspace(-1, 1, 6).reshape(2, 3)
V = torch.tensor([0.5, -1.0, 2.0])
OUTER_GRADIENT = grad(lambda z: (z**2).sum())
OUTER_ROWS = torch.vmap(torch.sin)
with warnings.catch_warnings():  # the first use of a forward-mode rule loads torch's own, with warnings
    warnings.simplefilter("ignore")
    jvp(torch.sin, (V,), (V,))


class Flat(torch.autograd.Function):
    """A sine whose derivatives are nought, by a rule of its own."""

    @staticmethod
    def forward(x):
        return torch.sin(x)

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_forward(*inputs)
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx, g):
        return torch.zeros_like(g)

    @staticmethod
    def jvp(ctx, dx):
        return torch.zeros_like(dx)


class Normed(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(3, 3)
        self.norm = nn.BatchNorm1d(3)

    def forward(self, x):
        return self.norm(self.linear(x))


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(3, 3)
        self.second = nn.Linear(3, 3)
        self.second.weight = self.first.weight

    def forward(self, x):
        return self.second(self.first(x))


class OneUnderTwoNames(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(3, 3)
        self.second = self.first

    def forward(self, x):
        return self.second(self.first(x))


def seeded(make):
    torch.manual_seed(1)
    return make()


def with_module(kind):
    return lambda: (seeded(kind), A.clone())


def linear():
    return nn.Linear(3, 2)


def ensemble():
    models = [seeded(linear) for _ in range(3)]
    return models[0], *stack_module_state(models), A.clone()


@program(V, V)
def tangents(x, t):
    return jvp(torch.sin, (x,), (t,))


@program(V, V)
def tangents_with_something_beside(x, t):
    return jvp(lambda z: ((z * x).sin(), z.cos()), (x,), (t,), has_aux=True)


@program(V, V)
def tangents_by_a_rule_of_its_own(x, t):
    return jvp(Flat.apply, (x,), (t,))[1]


@program(V)
def gradient_by_a_rule_of_its_own(x):
    return grad(lambda z: Flat.apply(z).sum())(x)


@program(V)
def pull_back(x):
    y, pull = vjp(torch.sin, x)
    return y, pull(torch.ones_like(y)), pull(y * 2)


@program(V, V)
def pull_back_of_two(x, w):
    y, pull, beside = vjp(lambda a, b: (a * b, a + b), x, w, has_aux=True)
    return pull(y), beside


@program(V)
def pull_back_of_a_dictionary(x):
    _, pull = vjp(lambda d: {"s": d["a"].sin()}, {"a": x})
    return pull({"s": x})


@program(V, graphs=0, eager=1)
def pull_back_is_returned(x):
    return vjp(torch.sin, x)[1].__name__


@program(make=lambda: (V.clone().requires_grad_(),), backward=True)
def pull_back_with_an_outer_gradient(x):
    y, pull = vjp(lambda z: z**3, x)
    return pull(y)[0].sum() + y.sum()


@program(V)
def jacobian_in_chunks(x):
    return jacrev(torch.sin, chunk_size=2)(x), jacfwd(torch.cos)(x), hessian(lambda z: (z**3).sum())(x)


@program(A)
def rows_in_chunks(a):
    return vmap(lambda row: row.sum() * row, chunk_size=1)(a)


@program(A)
def rows_of_a_dictionary(a):
    return vmap(lambda d: {"double": d["a"] * 2}, in_dims=({"a": 0},))({"a": a})


@program(A)
def dimensions_by_position(a):
    return vmap(lambda x, y: (x * y, x.sum()), (1, None), (1, 0))(a, torch.ones(2))


@program(A)
def rows_with_draws(a):
    each = vmap(lambda row: row + torch.rand(3), randomness="different")(a)
    return each, vmap(lambda row: row + torch.rand(3), randomness="same")(a)


@program(A, graphs=0, breaks=1)
def rows_with_draws_that_are_refused(a):
    return vmap(lambda row: row + torch.rand(3))(a)


@program(A, graphs=0, breaks=1)
def rows_that_give_no_tensor(a):
    return vmap(lambda row: 3)(a)


@program(A)
def transforms_made_outside(a):
    return OUTER_ROWS(a), OUTER_GRADIENT(a)


@program(make=lambda: (OUTER_GRADIENT, V.clone()), changed=lambda: (grad(torch.sum), V.clone()))
def transform_as_an_argument(f, x):
    return f(x)


@program(make=with_module(linear))
def gradient_of_the_parameters(m, x):
    return grad(lambda p: functional_call(m, p, (x,)).sum())(dict(m.named_parameters()))


@program(make=with_module(linear))
def gradient_per_sample(m, x):
    def loss(p, row):
        return functional_call(m, p, (row[None],)).pow(2).sum()

    return vmap(grad(loss), in_dims=(None, 0))({k: v.detach() for k, v in m.named_parameters()}, x)


@program(make=ensemble)
def ensemble_of_models(base, parameters, buffers, x):
    return vmap(lambda p, b: functional_call(base, (p, b), (x,)))(parameters, buffers)


@program(make=with_module(Normed))
def module_with_other_buffers(m, x):
    state = {name: value.clone() for name, value in [*m.named_parameters(), *m.named_buffers()]}
    return functional_call(m, state, x), state


@program(make=with_module(Tied))
def tied_weights_change_together(m, x):
    return functional_call(m, {"first.weight": m.first.weight * 2}, (x,))


def untied():
    m, x = with_module(Tied)()
    m.second.weight = nn.Parameter(m.second.weight.detach() * 3)
    return m, x


@program(make=with_module(Tied), changed=untied)
def weights_are_tied_no_longer(m, x):
    return functional_call(m, {"first.weight": torch.ones(3, 3)}, (x,))


@program(make=with_module(OneUnderTwoNames), graphs=1, breaks=1, stable=False)
def module_under_two_names(m, x):
    return functional_call(m, {"first.weight": m.first.weight * 2}, (x,))


@program(A, dynamic=True, then=((lambda: (torch.ones(4, 3),), True), (lambda: (torch.zeros(4, 3),), False)))
def open_size_is_fixed_under_a_transform(a):
    return vmap(grad(lambda row: (row**2).sum() * a.shape[0]))(a)


@program(A, dynamic=True, then=((lambda: (torch.ones(4, 3),), False),))
def open_size_around_a_transform(a):
    y, pull = vjp(torch.sin, a)
    return pull(y)[0] * a.shape[0]


@corpus.parametrize()
def test_program(program):
    check(program)
