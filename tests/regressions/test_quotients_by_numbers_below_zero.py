"""Found by `fuzz programs`: `x * (7 // n)` was an internal error once `n` varied and was below zero."""

import pytest
import torch

import plumbline

PROGRAMS = {
    "quotient": lambda x, n: x * (7 // n),
    "remainder": lambda x, n: x + 7 % n,
    "of the number": lambda x, n: x * (n // -3) + n % -4,
    "of two": lambda x, n: x * ((n * n + 1) // n) + (x.shape[0] * n) % (n - 20),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_they_are_those_of_python(name: str) -> None:
    compiled = plumbline.compile(PROGRAMS[name], backend="inductor")
    for number in (1, -1, 3, -2, 5, -7):
        x = torch.ones(4)
        with plumbline.config.patch(strict=True):
            actual = compiled(x, number)
        assert actual.tolist() == PROGRAMS[name](x, number).tolist(), number
