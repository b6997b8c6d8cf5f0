"""A program that fills the stack: our frames met the limit in its place, and their error was the context of its own."""

import pytest
import torch

import plumbline
from support.played_programs import difference_of

PROGRAMS = {
    "a function without an end": """
def inner(n):
    return inner(n)
def step(x):
    inner(x)
    return x + 1
""",
    "behind a break": """
import random
def inner(n):
    return inner(n)
def step(x):
    random.random()
    inner(x)
    return x + 1
""",
    "a module that holds itself": """
net = torch.nn.Sequential(torch.nn.ReLU())
net.extra = net
def step(x):
    net.train(True)
    return x + 1
""",
    "the compiled function calls itself": """
def step(x):
    return step(x + 1)
""",
    "far from the limit of plain Python, but not of two frames a call": """
import random
def inner(n):
    random.random()
    return inner(n - 1) + 1 if n else 0
def step(x):
    random.random()
    return x + 1, inner(500)
""",
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_error_is_the_programs(name: str):
    assert not difference_of(PROGRAMS[name])


@pytest.mark.cc
@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
def test_the_stack_is_full_where_a_kernel_gets_its_arguments(backend):
    """The conversion of sizes fails then, with an error of ctypes that names the other in words alone."""
    with plumbline.config.patch(strict=True):
        endless = plumbline.compile(lambda x: endless(x + 1), backend=backend)
        for size in (2, 3, 4):
            with pytest.raises(RecursionError):
                endless(torch.ones(size, requires_grad=True))
