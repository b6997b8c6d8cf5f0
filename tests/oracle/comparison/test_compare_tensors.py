"""Metadata and shared memory of the outputs, and gradients that are missing."""

import pytest
import torch

from plumbline.oracle import VerdictKind, check

torch.manual_seed(0)
X = torch.randn(64, 48)


def first_aspect(verdict):
    return verdict.findings[0].aspect


def test_output_strides_are_compared():
    verdict = check(lambda x: (x * 2).T, (X,), compiled=lambda x: (x * 2).T.contiguous())
    assert verdict.kind is VerdictKind.WRONG
    assert first_aspect(verdict) == "metadata"
    assert "stride" in verdict.sentence


@pytest.mark.parametrize(
    ("eager", "compiled"),
    [(lambda x: x[1:], lambda x: x[1:].clone()), (lambda x: x.clone(), lambda x: x)],
    ids=["alias-lost", "alias-gained"],
)
def test_who_shares_memory_with_whom_is_compared(eager, compiled):
    verdict = check(eager, (X.clone(),), compiled=compiled)
    assert verdict.kind is VerdictKind.WRONG
    assert any(finding.aspect == "aliasing" for finding in verdict.findings)


def test_outputs_that_share_memory_with_each_other_are_compared():
    def eager(x):
        y = x * 2
        return y, y[0]

    assert check(eager, (X,), compiled=lambda x: (x * 2, (x * 2)[0])).kind is VerdictKind.WRONG


def test_requires_grad_of_outputs_is_compared():
    x = X.clone().requires_grad_()
    verdict = check(lambda x: x * 2, (x,), compiled=lambda x: (x * 2).detach())
    assert verdict.kind is VerdictKind.WRONG
    assert "requires_grad" in verdict.sentence


def test_no_gradient_is_not_a_gradient_of_zeros():
    x, w = X.clone().requires_grad_(), torch.ones(48, requires_grad=True)
    verdict = check(lambda x, w: x * 2, (x, w), compiled=lambda x, w: x * 2 + w * 0)
    assert verdict.kind is VerdictKind.WRONG
    assert verdict.findings[0].where == "gradient of w"
