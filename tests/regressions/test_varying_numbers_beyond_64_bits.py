"""Whole numbers that vary are held to 64 bits where they enter a graph: eager raises, or Python's number counts."""

import pytest
import torch

import plumbline

PROGRAMS = {
    "itself": lambda y, n: y.add(n),
    "power": lambda y, n: y.add(n**8),
    "product": lambda y, n: y * (n * n),
    "sum": lambda y, n: y + (n + 1),
    "difference of products": lambda y, n: y + (n * n - n),
    "floor quotient": lambda y, n: y + (n * n * n) // 3,
    "remainder": lambda y, n: y + (n * n * n) % 1000003,
    "quotient": lambda y, n: y * (n * n * n / 7),
    "made a float": lambda y, n: y * float(n * n * n),
    "greatest": lambda y, n: y + max(n * n, 3),
    "compared": lambda y, n: y < n * n * n,
    "filled": lambda y, n: torch.full((2,), n * n),
    "of a size": lambda y, n: y + y.shape[0] ** 8 * n * n * n,
}
NUMBERS = (2, 3, 3000001, 2**61 + 1, -(2**70))


def _outcome(call, number):
    try:
        return repr(call(torch.tensor([1, -1, 0]), number))
    except OverflowError as error:
        return str(error)


@pytest.mark.parametrize("name", PROGRAMS)
def test_numbers_are_those_of_python(name):
    program = PROGRAMS[name]
    compiled = plumbline.compile(program, backend="inductor")
    for number in NUMBERS:
        assert _outcome(compiled, number) == _outcome(program, number), number
