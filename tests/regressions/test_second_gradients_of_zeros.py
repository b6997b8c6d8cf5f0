"""Zeros and none are one second gradient: relu and clamp are the same function, and differ in which they give.

The gradient of a bias in front of relu does not depend on anything.  Eager's relu gives zeros for the gradient of it;
written by `clamp` it is not reached at all.  That was called wrong.
"""

import torch
from torch.nn import functional

from plumbline.oracle import VerdictKind, check


def leaves():
    generator = torch.Generator().manual_seed(0)
    x, weight, bias = (torch.randn(shape, generator=generator) for shape in ((5, 4), (3, 4), (3,)))
    return x.requires_grad_(), weight.requires_grad_(), bias.requires_grad_()


def relu(x, weight, bias):
    return functional.relu(x @ weight.t() + bias)


def clamp(x, weight, bias):
    return (x @ weight.t() + bias).clamp(min=0)


def test_none_for_zeros_is_no_fault_in_a_second_gradient():
    verdict = check(relu, leaves(), compiled=clamp)
    assert not verdict.failed, str(verdict)


def test_none_for_numbers_is_a_fault_in_a_second_gradient():
    class Square(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, grad):
            (x,) = ctx.saved_tensors
            return grad * 2 * x.detach()  # its own gradient is lost

    x, y = (torch.randn(4, requires_grad=True) for _ in range(2))
    verdict = check(lambda x, y: x * x + y * y * y, (x, y), compiled=lambda x, y: Square.apply(x) + y * y * y)
    assert verdict.kind is VerdictKind.WRONG
    assert any("None" in finding.sentence for finding in verdict.findings), str(verdict)
