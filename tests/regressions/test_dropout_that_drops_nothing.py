"""Dropout outside training gives its input, also where sizes or numbers are dynamic: torch's Python rule copies it."""

import pytest
import torch

import plumbline

BACKENDS = ("eager", "aot_eager", pytest.param("inductor", marks=pytest.mark.cc))


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("arguments", [(0.5, False), (0.0, True)])
def test_the_result_is_the_input_at_every_value_of_a_number(backend, arguments):
    def f(x, number):
        return torch.nn.functional.dropout(x, *arguments), x * number

    compiled = plumbline.compile(f, backend=backend)
    for number in (0.1, 0.5, 0.7):
        x = torch.ones(3)
        assert compiled(x, number)[0] is x
    for size in (4, 5, 6):
        x = torch.ones(size)
        assert compiled(x, 0.7)[0] is x
