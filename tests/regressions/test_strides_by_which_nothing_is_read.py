"""Strides of dimensions of one place, and of tensors without elements: programs see them, though nothing is read."""

import pytest
import torch

import plumbline

PROGRAMS = {
    "one number, cloned": lambda x: x[:1, 0].clone(),
    "one number, filled": lambda x: torch.full_like(x[:1, 0], 2),
    "one number, turned round": lambda x: x[:1, 0].flip(0),
    "one number, sorted": lambda x: x[:1, 0].sort().values,
    "one number, compared": lambda x: x[:1, 0] + 1,
    "no rows, summed": lambda x: x[:, :0].sum(0, keepdim=True),
    "no columns, cloned": lambda x: x[:, :0].clone(),
    "rows filled by index": lambda x: x[:, ::2].t().index_fill(0, torch.tensor([0]), 1.0),
}


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("name", PROGRAMS)
def test_strides_are_those_of_eager(name, dynamic):
    program = PROGRAMS[name]
    compiled = plumbline.compile(program, dynamic=dynamic)
    for sizes in ((4, 3), (3, 5)):
        x = torch.arange(float(sizes[0] * sizes[1])).reshape(sizes)
        expected = program(x)
        result = compiled(x)
        assert result.stride() == expected.stride()
        assert torch.equal(result, expected)


def test_strides_of_a_sum_of_no_rows():
    compiled = plumbline.compile(lambda x: x.unsqueeze(1) + 1, dynamic=False)
    assert compiled(torch.empty(0, 3)).stride() == (torch.empty(0, 3).unsqueeze(1) + 1).stride()
