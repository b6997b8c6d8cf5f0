"""torch.func transforms and forward-mode differentiation."""

import torch


def test_jvp_uses_custom_rule():
    """A Function with its own jvp (here: zero) must be differentiated by that rule."""

    class FlatSine(torch.autograd.Function):
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

    def tangent(x, dx):
        return torch.func.jvp(FlatSine.apply, (x,), (dx,))[1]

    torch.manual_seed(0)
    torch.compile(tangent)(torch.randn(4), torch.randn(4))


def test_compiled_vjp_function():
    """Compiling the function that torch.func.vjp returned must not give zeros."""
    torch.manual_seed(0)
    weight = torch.randn(4, 1)
    y, pull_back = torch.func.vjp(lambda w: torch.ones(4, 4) @ w, weight)
    torch.compile(pull_back)(torch.ones_like(y))


def test_compiled_vjp_of_functional_call():
    """The same through functional_call over a dictionary of parameters."""
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(4, 1))
    x = torch.randn(4, 4)
    parameters = {k: v.detach() for k, v in model.named_parameters()}
    y, pull_back = torch.func.vjp(lambda p: torch.func.functional_call(model, p, x), parameters)
    torch.compile(pull_back)(torch.ones_like(y))


def test_vmap_of_mutating_gradient():
    """grad under vmap of a function that fills a buffer in place."""

    def energy(x):
        y = torch.zeros_like(x)
        y[1:] += x[:-1] ** 2
        return y.sum()

    torch.compile(lambda x: torch.vmap(torch.func.grad(energy))(x))(torch.arange(12.0).reshape(3, 4))


def test_gradient_of_two_equal_additions():
    """The same column is added twice in place: the gradient counts it twice."""

    def energy(x):
        y = torch.zeros_like(x)
        y[:, 0] += x[:, 2].abs()
        y[:, 0] += x[:, 2].abs()
        return y.sum()

    torch.manual_seed(0)
    torch.compile(lambda x: torch.func.grad(energy)(x))(torch.randn(2, 3))


def test_batched_gradient_of_selected_columns():
    """vmap of grad through index_select: the gradient is that of each row alone."""
    weight = torch.tensor([1.0, -1.0], dtype=torch.float64)
    columns = torch.tensor([0, 2])

    def energy(x):
        stacked = torch.stack([x[..., k] for k in range(4)], -1)
        return (torch.index_select(stacked, -1, columns) * weight).sum(-1)

    torch.manual_seed(0)
    rows = torch.randn(4, 4, dtype=torch.float64)
    torch.compile(torch.func.vmap(torch.func.grad_and_value(energy)), dynamic=True)(rows)


def test_gradient_with_respect_to_the_second_argument():
    """argnums=1."""
    slope = torch.compile(lambda a, b: torch.func.grad(lambda a, b: (a * b * b).sum(), argnums=1)(a, b))
    slope(torch.arange(3.0), torch.arange(3.0) + 1)


def test_hessian_of_a_product():
    """A second derivative off the diagonal."""
    torch.compile(lambda x: torch.func.hessian(lambda x: x[0] * x[1] ** 2)(x))(torch.tensor([2.0, 3.0]))


def test_batched_conditional_value():
    """where under vmap chooses for each row."""
    choose = torch.compile(lambda x, k: torch.vmap(lambda x, k: torch.where(k > 0, x.sum(), x.prod()))(x, k))
    choose(torch.arange(6.0).reshape(3, 2), torch.tensor([1, -1, 0]))


def test_forward_mode_of_a_power():
    """jvp of x ** 3."""
    torch.compile(lambda x, t: torch.func.jvp(lambda x: x**3, (x,), (t,)))(torch.tensor([2.0]), torch.tensor([1.0]))
