"""Exceptions of the compiled program against those of eager."""

import torch

from plumbline.oracle import VerdictKind, check

torch.manual_seed(0)
X = torch.randn(64, 48)


class Backward(torch.autograd.Function):
    """Identity forward of a given result, with a planted backward."""

    @staticmethod
    def forward(ctx, x, result, planted):
        ctx.planted, ctx.shape = planted, x.shape
        return result.clone()

    @staticmethod
    def backward(ctx, grad):
        return ctx.planted(grad).reshape(ctx.shape), None, None


def with_backward(function, planted):
    return lambda x: Backward.apply(x, function(x).detach(), planted)


def first_aspect(verdict):
    return verdict.findings[0].aspect


def test_a_compiled_program_that_raises_is_wrong():
    def raises(x):
        raise RuntimeError("boom")

    verdict = check(lambda x: x * 2, (X,), compiled=raises)
    assert verdict.kind is VerdictKind.WRONG
    assert first_aspect(verdict) == "exceptions"


def test_a_program_that_eager_rejects_is_no_fault_of_the_compiler():
    def invalid(x):
        return x @ x

    assert check(invalid, (X,), compiled=invalid).kind is VerdictKind.EAGER_FAILED


def test_a_compiled_program_that_accepts_what_eager_rejects_is_wrong():
    verdict = check(lambda x: x @ x, (X,), compiled=lambda x: x @ x.T)
    assert verdict.kind is VerdictKind.WRONG
    assert "eager raises RuntimeError" in verdict.sentence


def test_another_exception_class_is_wrong_a_subclass_is_not():
    def raises(kind):
        def function(x):
            raise kind("no")

        return function

    assert check(raises(IndexError), (X,), compiled=raises(RuntimeError)).kind is VerdictKind.WRONG
    assert check(raises(LookupError), (X,), compiled=raises(IndexError)).kind is VerdictKind.EAGER_FAILED


def test_a_backward_that_raises_only_when_compiled_is_wrong():
    def broken(grad):
        raise RuntimeError("no backward")

    x = X.clone().requires_grad_()
    verdict = check(lambda x: x * 2, (x,), compiled=with_backward(lambda x: x * 2, broken))
    assert verdict.kind is VerdictKind.WRONG
    assert verdict.findings[0].where == "exception in the backward"
