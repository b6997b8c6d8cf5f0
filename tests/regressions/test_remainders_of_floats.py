"""What a remainder of floats decides is asked of the numbers: torch's symbols take `n / 2 % 1` for zero.

The branch of the first call was taken at every later one, and dropout with such a probability drew nothing.
"""

import math

import pytest
import torch
from torch.nn import functional

import plumbline

QUESTIONS = {
    "remainder": lambda n: n / 2 % 1,
    "equal to zero": lambda n: n / 2 % 1 == 0,
    "remainder by a float": lambda n: n / 2 % 1.0 > 0,
    "remainder by minus one": lambda n: n / 2 % -1,
    "quotient": lambda n: n / 2 // 1 == n / 2,
    "divmod": lambda n: divmod(n / 2, 1)[1] == 0,
    "whole numbers": lambda n: n % 2,
    "whole quotient": lambda n: n // 2 * 2 == n,
    "floor": lambda n: math.floor(n / 2) == n / 2,
    "round": lambda n: round(n / 3) == n / 3,
    "whole": lambda n: int(n / 2) == n / 2,
}


@pytest.mark.parametrize("dynamic", [None, True])
@pytest.mark.parametrize("name", QUESTIONS)
def test_a_branch_on_it_is_that_of_python(name, dynamic):
    def program(x, n):
        return x + 1 if QUESTIONS[name](n) else x - 1

    compiled = plumbline.compile(program, backend="eager", dynamic=dynamic)
    for n in (2, 3, 4, 5, 6, 7, 3):
        x = torch.ones(n)
        assert torch.equal(compiled(x, n), program(x, n)), n


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_dropout_with_a_remainder_for_its_probability_draws(backend):
    def program(x, n):
        return functional.dropout(x, n / 2 % 1)

    compiled = plumbline.compile(program, backend=backend)
    for n in (1, 2, 4, 3, 1):
        outcomes = []
        for run in (program, compiled):
            torch.manual_seed(n)
            outcomes.append((run(torch.ones(16), n), torch.rand(1)))
        assert torch.equal(outcomes[0][0], outcomes[1][0])
        assert torch.equal(outcomes[0][1], outcomes[1][1])
