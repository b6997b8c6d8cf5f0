"""Faults of backwards, each planted and caught: gradients that are wrong where every value is right."""

import pytest
import torch

from plumbline.oracle import VerdictKind, check

X = torch.linspace(-2, 2, 20).reshape(5, 4)
PLANTED = {}


def planted(function):
    PLANTED[function.__name__] = function
    return function


def with_backward(backward, forward=lambda x: x * 2):
    """Return a function of this forward whose gradient is `backward(gradient)`."""

    class Function(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return forward(x)

        @staticmethod
        def backward(ctx, gradient):
            return backward(gradient)

    return Function.apply


def leaf(*shape):
    return torch.randn(*(shape or (4, 4)), generator=torch.Generator().manual_seed(0)).requires_grad_()


WRONG = with_backward(lambda gradient: gradient * 3)


@planted
def output_is_a_leaf():
    weight = leaf()
    return check(lambda x: (x @ weight).sin(), (X,), compiled=lambda x: (x @ weight).sin().detach().requires_grad_())


@planted
def one_of_two_outputs_is_a_leaf():
    weight = leaf()

    def eager(x):
        return (x @ weight).sin(), (x @ weight).cos()

    return check(eager, (X,), compiled=lambda x: (eager(x)[0], eager(x)[1].detach().requires_grad_()))


@planted
def output_does_not_require_grad():
    return check(lambda x: x * 2, (leaf(),), compiled=lambda x: x.detach() * 2)


@planted
def tensor_in_a_list_is_cut_off():
    inner = X @ leaf()
    return check(lambda held: held[0] * 2, ([inner],), compiled=lambda held: held[0].detach().requires_grad_() * 2)


@planted
def tensor_in_a_list_gets_a_wrong_gradient():
    inner = X @ leaf()
    return check(lambda held: held[0] * 2, ([inner],), compiled=lambda held: WRONG(held[0]))


@planted
def tensor_in_a_dict_gets_a_wrong_gradient():
    inner = X @ leaf()
    return check(lambda held: held["h"] * 2, ({"h": inner},), compiled=lambda held: WRONG(held["h"]))


@planted
def tensor_of_an_object_gets_a_wrong_gradient():
    class Holder:
        pass

    holder = Holder()
    holder.inner = X @ leaf()
    return check(lambda held: held.inner * 2, (holder,), compiled=lambda held: WRONG(held.inner))


@planted
def tensor_of_a_closure_gets_a_wrong_gradient():
    inner = X @ leaf()
    return check(lambda x: x + inner * 2, (X,), compiled=lambda x: x + WRONG(inner))


@planted
def wrong_for_an_expanded_cotangent():
    function = with_backward(lambda gradient: gradient * 3 if 0 in gradient.stride() else gradient * 2)
    return check(lambda x: x * 2, (leaf(),), compiled=function)


@planted
def wrong_for_a_transposed_cotangent():
    function = with_backward(lambda gradient: gradient * (2 if gradient.is_contiguous() else 3))
    return check(lambda x: x * 2, (leaf(),), compiled=function)


@planted
def wrong_where_one_output_is_used_alone():
    class Function(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.set_materialize_grads(False)
            return x * 2, x * 3

        @staticmethod
        def backward(ctx, first, second):
            if first is None:
                return second * 5
            return first * 2 if second is None else first * 2 + second * 3

    return check(lambda x: (x * 2, x * 3), (leaf(),), compiled=Function.apply)


@planted
def wrong_at_the_second_backward():
    class Function(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.calls = 0
            return x * 2

        @staticmethod
        def backward(ctx, gradient):
            ctx.calls += 1
            return gradient * (2 if ctx.calls < 2 else 3)

    return check(lambda x: x * 2, (leaf(),), compiled=Function.apply)


@planted
def second_backward_raises():
    class Function(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.calls = 0
            return x * 2

        @staticmethod
        def backward(ctx, gradient):
            ctx.calls += 1
            if ctx.calls == 2:
                raise RuntimeError("freed")
            return gradient * 2

    return check(lambda x: x * 2, (leaf(),), compiled=Function.apply)


@planted
def gradient_of_the_gradient_is_lost():
    class Function(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x.sin()

        @staticmethod
        def backward(ctx, gradient):
            return gradient * ctx.saved_tensors[0].detach().cos()

    return check(lambda x: x.sin(), (leaf(),), compiled=Function.apply)


@planted
def gradient_of_the_gradient_is_wrong():
    class Function(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x.sin()

        @staticmethod
        def backward(ctx, gradient):
            x = ctx.saved_tensors[0]
            return gradient * (x.cos() + (x - x.detach()))

    return check(lambda x: x.sin(), (leaf(),), compiled=Function.apply)


@planted
def zeros_for_none():
    weight, unused = leaf(), leaf()
    return check(lambda x: (unused, x @ weight)[1], (X,), compiled=lambda x: x @ weight + 0 * unused.sum())


@planted
def hook_of_a_parameter_is_bypassed():
    log, weight = [], leaf(4)
    weight.register_hook(lambda gradient: log.append(1))

    class Function(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * weight

        @staticmethod
        def backward(ctx, gradient):
            return gradient * weight

    return check(lambda x: x * weight, (leaf(5, 4),), compiled=Function.apply)


@planted
def hook_inside_is_dropped():
    log = []

    def eager(x):
        y = x * 2
        y.register_hook(lambda gradient: log.append(1))
        return y

    return check(eager, (leaf(),), compiled=lambda x: (log, x * 2)[1])


@planted
def hook_inside_is_called_twice():
    log = []

    def eager(x, times=1):
        y = x * 2
        for _ in range(times):
            y.register_hook(lambda gradient: log.append(1))
        return y

    return check(eager, (leaf(),), compiled=lambda x: eager(x, 2))


@planted
def backward_of_the_programs_own_has_no_effect():
    seen = {"backwards": 0}

    class Function(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, gradient):
            seen["backwards"] += 1
            return gradient * 2

    return check(Function.apply, (leaf(),), compiled=lambda x: (seen, x * 2)[1])


@planted
def backward_draws_random_numbers():
    def drawn(gradient):
        torch.rand(1)
        return gradient * 2

    return check(lambda x: x * 2, (leaf(),), compiled=with_backward(drawn))


@planted
def backward_leaves_a_mode_on():
    def leaves(gradient):
        torch.set_default_dtype(torch.float64)
        return gradient * 2

    return check(lambda x: x * 2, (leaf(),), compiled=with_backward(leaves))


@planted
def only_one_row_is_wrong():
    def rows(gradient):
        result = gradient * 2
        result[2] *= 1.01
        return result

    return check(lambda x: x * 2, (leaf(),), compiled=with_backward(rows))


@planted
def backward_raises():
    def refuse(gradient):
        raise RuntimeError("no")

    return check(lambda x: x * 2, (leaf(),), compiled=with_backward(refuse))


@planted
def backward_raises_nothing():
    def refuse(gradient):
        raise RuntimeError("no")

    return check(with_backward(refuse), (leaf(),), compiled=lambda x: x * 2)


@planted
def tangent_of_forward_mode_is_lost():
    from torch.autograd import forward_ad

    with forward_ad.dual_level():
        dual = forward_ad.make_dual(torch.randn(4), torch.randn(4))
        return check(lambda x: x.sin(), (dual,), compiled=lambda x: forward_ad.unpack_dual(x).primal.sin())


@planted
def tangent_of_forward_mode_is_wrong():
    from torch.autograd import forward_ad

    def wrong(x):
        primal, tangent = forward_ad.unpack_dual(x)
        return forward_ad.make_dual(primal.sin(), tangent * primal.sin())

    with forward_ad.dual_level():
        dual = forward_ad.make_dual(torch.randn(4), torch.randn(4))
        return check(lambda x: x.sin(), (dual,), compiled=wrong)


@pytest.mark.parametrize("name", PLANTED)
def test_it_is_caught(name):
    dtype = torch.get_default_dtype()
    try:
        assert PLANTED[name]().failed
    finally:
        torch.set_default_dtype(dtype)


@pytest.mark.parametrize("shape", [(), (0,), (1,), (2, 3), (2, 1, 3)])
def test_outputs_of_every_shape_have_their_cotangents(shape):
    x = torch.ones(shape, requires_grad=True)
    assert check(lambda x: x * 2, (x,), compiled=lambda x: x * 2).kind is VerdictKind.EQUAL
    assert check(lambda x: x * 2, (x,), compiled=WRONG).failed == bool(x.numel())
