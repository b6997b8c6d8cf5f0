"""Sizes that are made from other sizes through floats, as resizing by a factor does: kernels are compiled for them."""

import math

import pytest
import torch

import plumbline
from plumbline.compiler.base.events import FellBack, recording
from plumbline.compiler.symbolic.scaled_sizes import SCALED, bits_of
from plumbline.compiler.symbolic.symbolic_sizes import lowest_of, scaled, symbol

PROGRAMS = {
    "resized": lambda x: torch.nn.functional.interpolate(x, scale_factor=1.7, mode="bilinear") * 2,
    "truncated": lambda x: (x[:, :, : int(x.shape[2] * 0.6)] + 1).sum(2),
    "floored": lambda x: x[:, :, : math.floor(x.shape[2] * 0.7)] + 1,
    "raised": lambda x: torch.ones(math.ceil(x.shape[2] * 0.3)) + x.sum(),
    "quotient": lambda x: x[:, :, int(x.shape[2] / 3) :] + 1,
    "half": lambda x: torch.ones(round(x.shape[2] / 2)) + x.sum(),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_graphs_with_such_sizes_are_compiled(name):
    program = PROGRAMS[name]
    compiled = plumbline.compile(program, dynamic=True)
    with recording() as events:
        for size in (5, 7, 10, 13, 2):
            x = torch.arange(2.0 * 3 * size * 4).reshape(2, 3, size, 4)
            expected = program(x)
            result = compiled(x)
            assert result.shape == expected.shape
            assert result.stride() == expected.stride()
            assert torch.allclose(result, expected)
    assert not [event.why for event in events if isinstance(event, FellBack) and event.operation == "graph"]


@pytest.mark.parametrize("function", SCALED)
@pytest.mark.parametrize("argument", [0.1, 0.5, 1.7, 2.0])
def test_no_size_makes_less_than_the_least(function, argument):
    second = bits_of(argument) if function.endswith("_product") else int(argument * 10)
    size = scaled(function, symbol("s", 9, lowest=3), second)
    assert size.hint == SCALED[function](9, second)
    assert lowest_of(size) == min(SCALED[function](count, second) for count in range(3, 50))


def test_halves_are_rounded_to_even_numbers():
    assert [SCALED["rounded_quotient"](count, 2) for count in (1, 3, 5, 7)] == [0, 2, 2, 4]
    assert [SCALED["rounded_product"](count, bits_of(0.5)) for count in (1, 3, 5, 7)] == [0, 2, 2, 4]
