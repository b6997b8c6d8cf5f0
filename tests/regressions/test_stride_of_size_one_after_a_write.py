"""Found by `fuzz programs`: a write into a tensor with a loose stride in a dimension of size 1 tightened it."""

import pytest
import torch

import plumbline


def added_to(x):
    part = x[:, 1].clone()
    part += 1
    return part


def through_exp(x):
    part = x[:, 1].clone()
    part.exp_()
    return part


def turned(x):
    part = x[:, :1].clone()
    part.mul_(3)
    return part.t()


PROGRAMS = [added_to, through_exp, turned]


@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_it_is_that_of_eager(program, backend) -> None:
    x = torch.tensor([[0.0, 1.0]])
    expected, actual = program(x), plumbline.compile(program, backend=backend)(x)
    assert (actual.stride(), actual.tolist()) == (expected.stride(), expected.tolist())
