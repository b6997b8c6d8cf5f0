"""A call on numbers only, one of them a size that varies, was computed while compiling, of a stand-in for that size."""

import pytest
import torch

import plumbline

BACKENDS = ["eager", "aot_eager", pytest.param("inductor", marks=pytest.mark.cc)]

PROGRAMS = {
    "quotient": lambda x: torch.div(x.shape[0], 2, rounding_mode="trunc") - 1,
    "fraction": lambda x: torch.true_divide(x.shape[0], 2) * 3,
    "sum": lambda x: torch.add(x.shape[0], 1) * 2,
    "filled": lambda x: torch.full((), x.shape[0]) * 2 - 1,
    "size": lambda x: x.new_zeros((3, torch.div(x.shape[0], 2, rounding_mode="trunc") + 1)),
}


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name", PROGRAMS)
def test_eagers_number(name, backend):
    program = PROGRAMS[name]
    compiled = plumbline.compile(program, backend=backend, dynamic=True)
    for size in (4, 7, 9):
        x = torch.ones(size, 3)
        expected, actual = program(x), compiled(x)
        assert torch.equal(actual, expected)
        assert actual.dtype == expected.dtype
