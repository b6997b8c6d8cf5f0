"""A whole number made of arithmetic with a float that varies was an error of ours at every call from the second on."""

import math

import pytest
import torch

import plumbline
from plumbline.compiler.base.events import Captured, recording

PROGRAMS = {
    "int": lambda x, number: x + int(number + 0.5),
    "floor": lambda x, number: x + math.floor(number * 2),
    "trunc": lambda x, number: x + math.trunc(number / 3),
    "ceil": lambda x, number: x + math.ceil(number - 0.25),
    "round": lambda x, number: x + round(number * 1.5),
    "remainder": lambda x, number: x * (int(number * 10) % 3),
    "size": lambda x, number: torch.zeros(int(number + 4)) + x,
    "out of range": lambda x, number: x + float(int(number * 1e18)),
}


@pytest.mark.parametrize("backend", ["eager", "inductor"])
@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS)
def test_one_graph_for_all_floats(program, backend):
    compiled = plumbline.compile(program, backend=backend)
    with recording() as events:
        for number in (1.0, 2.5, 3.25, 7.75, -2.5, 4.5, 20.0):
            assert torch.equal(compiled(torch.ones(1), number), program(torch.ones(1), number))
    assert sum(isinstance(event, Captured) for event in events) <= 3
