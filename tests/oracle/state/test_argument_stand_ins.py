"""A backward inside a judged call that goes on into what was before it has no reference: stand-ins cut it there."""

import pytest
import torch

from plumbline.oracle import VerdictKind, check


def given():
    leaf = torch.tensor([1.0, 2.0], requires_grad=True)
    return leaf * 3, leaf


def beyond(made, leaf):
    return torch.autograd.grad((made**2).sum(), leaf, allow_unused=True)[0] + 1


def beside(made, leaf):
    return torch.autograd.grad((made**2).sum() + (leaf * 2).sum(), leaf)[0] + 1


def behind(made, leaf):
    ((made**2).sum() + (leaf * 2).sum()).backward(inputs=[leaf])
    return made + 1


def with_zeros(made, leaf):
    return torch.autograd.grad((made**2).sum(), (leaf,), materialize_grads=True)[0] + 1


def up_to(made, leaf):
    return torch.autograd.grad((made * leaf.detach()).sum(), made)[0] + 1


def apart(made, leaf):
    return torch.autograd.grad((leaf * 2).sum() + made.detach().sum(), leaf)[0] + 1


def through(made, leaf):
    mixed = made.detach() * 0.5 + made * 0.5
    return torch.autograd.grad((mixed**2).sum(), mixed)[0] + 1


@pytest.mark.parametrize("program", [beyond, beside, behind, with_zeros])
def test_the_history_of_an_argument_is_asked(program):
    verdict = check(program, given(), compiled=program)
    assert verdict.kind is VerdictKind.NO_REFERENCE
    assert "was made before the call" in verdict.sentence


@pytest.mark.parametrize("program", [up_to, apart, through])
def test_it_is_not(program):
    assert check(program, given(), compiled=program).kind is VerdictKind.EQUAL


def test_the_functions_of_torch_are_themselves_again():
    before = torch.autograd.grad, torch.autograd.backward
    check(beyond, given(), compiled=beyond)
    assert (torch.autograd.grad, torch.autograd.backward) == before
