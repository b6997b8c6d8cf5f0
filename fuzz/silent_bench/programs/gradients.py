"""Gradients: wrong values, lost ones, ones that belong to another tensor."""

import torch


def test_function_applied_to_same_tensor_twice():
    """Fn.apply(x, x) with backward (None, 3g): x.grad is 3."""

    class Weighted(torch.autograd.Function):
        @staticmethod
        def forward(ctx, a, c):
            return a * 2 + c * 3

        @staticmethod
        def backward(ctx, g):
            return None, g * 3

    x = torch.ones(3, requires_grad=True)
    torch.compile(lambda x: Weighted.apply(x, x))(x).sum().backward()


def test_gradient_through_mutated_input_with_detached_alias():
    """t = a.detach(); a.mul_(2): the leaf behind a still gets its gradient."""

    def double(a):
        t = a.detach()
        a.mul_(2)
        return a, t

    leaf = torch.ones(3, requires_grad=True)
    out, _ = torch.compile(double)(leaf.mul(2))
    out.sum().backward()


def test_shared_modulation_of_two_layer_norms():
    """One scale/shift table modulates two norms in a row; its gradient sums both uses."""

    def block(x, table):
        s1, b1, s2, b2 = table.chunk(4, dim=-1)
        h = torch.nn.functional.layer_norm(x, (64,)) * (1 + s1) + b1
        return torch.nn.functional.layer_norm(h, (64,)) * (1 + s2) + b2

    torch.manual_seed(0)
    x = torch.randn(32, 16, 64, requires_grad=True)
    table = torch.randn(1, 1, 256, requires_grad=True)
    torch.compile(block)(x, table).square().sum().backward()


def test_retained_gradient_of_nonleaf_input():
    """retain_grad on a non-leaf argument, set by the caller, is filled by backward."""
    leaf = torch.ones(4, requires_grad=True)
    middle = leaf * 3
    middle.retain_grad()
    torch.compile(lambda m: (m * m).sum())(middle).backward()


def test_retained_gradient_inside():
    """retain_grad on a tensor made inside, which is returned: backward fills its grad."""

    def keep(x):
        y = x * 2
        y.retain_grad()
        return y * 3, y

    x = torch.ones(3, requires_grad=True)
    z, y = torch.compile(keep)(x)
    z.sum().backward()
    assert y is not None


def test_function_that_writes_to_its_own_result():
    """An autograd.Function adds to its result in place; its gradient is 3 wherever it comes from."""

    class Shifted(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            y = x * 3
            y += 1
            return y

        @staticmethod
        def backward(ctx, g):
            return g * 3

    x = torch.ones(4, requires_grad=True)
    torch.compile(lambda x: Shifted.apply(x) * 2)(x).sum().backward()


def test_linear_used_twice_in_a_row():
    """The same weight twice: its gradient sums both uses."""
    torch.manual_seed(0)
    layer = torch.nn.Linear(4, 4)
    torch.compile(lambda x: layer(layer(x)))(torch.randn(3, 4)).sum().backward()


def test_gradient_of_clamped_at_the_bound():
    """At the bound itself clamp passes the gradient on."""
    x = torch.tensor([-1.0, 0.0, 0.5, 1.0, 2.0], requires_grad=True)
    torch.compile(lambda x: x.clamp(0.0, 1.0))(x).sum().backward()


def test_gradient_of_maximum_at_a_tie():
    """maximum(x, y) at a tie gives each half of the gradient."""
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = torch.tensor([1.0, 3.0], requires_grad=True)
    torch.compile(lambda x, y: torch.maximum(x, y))(x, y).sum().backward()


def test_gradient_of_amax_at_a_tie():
    """amax spreads its gradient evenly over equal maxima."""
    x = torch.tensor([[2.0, 2.0, 1.0]], requires_grad=True)
    torch.compile(lambda x: x.amax(1))(x).sum().backward()


def test_gradient_of_norm_at_zero():
    """The gradient of a norm at zero is zero, not NaN."""
    x = torch.zeros(3, requires_grad=True)
    torch.compile(lambda x: x.norm())(x).backward()


def test_gradient_where_the_other_branch_is_nan():
    """where() hides a value, not the gradient of it: 0 * inf is NaN in eager, and stays NaN."""
    x = torch.tensor([0.0, 4.0], requires_grad=True)
    torch.compile(lambda x: torch.where(x > 0, x.sqrt(), torch.zeros(())))(x).sum().backward()


def test_gradient_by_detached_branch():
    """The detached factor gets no gradient: the straight-through estimator."""

    def rounded(x):
        return x + (x.round() - x).detach()

    x = torch.tensor([0.3, 0.7], requires_grad=True)
    torch.compile(rounded)(x).sum().backward()


def test_gradient_accumulates_over_calls():
    """Two backward passes add up in grad."""
    weight = torch.ones(3, requires_grad=True)
    run = torch.compile(lambda x: (x * weight).sum())
    run(torch.ones(3)).backward()
    run(torch.full((3,), 2.0)).backward()
