"""The larger one of 0.0 and -0.0 is the first or the last, by operator and place in a vector: no one's promise."""

import pytest
import torch

from plumbline.oracle import VerdictKind, check

BOTH, ONE = torch.tensor([0.0, -0.0, -1.0, 0.0]), torch.tensor([-0.0, -0.0, -1.0, -0.0])
PROGRAMS = {
    "max": lambda x: 1 / x.max(),
    "amax": lambda x: x.amax(0).reciprocal() * 2,
    "maximum": lambda x: 1 / torch.maximum(x, x.flip(0)),
    "min": lambda x: (1 / (-x).min(dim=0).values).clamp(-5, 5),
    "fmin": lambda x: torch.fmin(-x, x.flip(0)).pow(-1),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_both_infinities_may_come_of_both_zeros(name):
    program = PROGRAMS[name]
    assert not check(program, (BOTH,), compiled=lambda x: torch.where(program(x).abs() > 4, -1, 1) * program(x)).failed


@pytest.mark.parametrize("name", ["max", "amax"])
def test_zeros_of_one_sign_have_that_sign(name):
    program = PROGRAMS[name]
    assert check(program, (ONE,), compiled=lambda x: -program(x)).kind is VerdictKind.WRONG


@pytest.mark.parametrize("name", ["max", "amax"])
def test_other_values_are_wrong(name):
    program = PROGRAMS[name]
    assert check(program, (BOTH,), compiled=lambda x: program(x) * 0 + 3).kind is VerdictKind.WRONG
    assert check(program, (BOTH,), compiled=lambda x: program(-x.abs() - 1)).kind is VerdictKind.WRONG
    assert check(program, (BOTH + 1,), compiled=lambda x: program(x) * 2).kind is VerdictKind.WRONG
