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


ELEMENTWISE = {
    "a row as a column": lambda x: x.t() + 1,
    "a row as a column, by a kernel of its own": lambda x: x.t().clamp(0, 3),
    "columns": lambda x: x[:, :1] * 2,
    "columns beside all": lambda x: torch.where(x[:, :1].t() > 0, x.t()[:1], 1.0),
    "in an order of three": lambda x: x.unsqueeze(1).transpose(0, 2).masked_fill(x.t()[:, None] > 2, 0.0),
    "windows of one": lambda x: x.unfold(1, 1, 1) + 0,
    "a row as a column, divided": lambda x: x.t() // 3,
}


@pytest.mark.parametrize("name", ELEMENTWISE)
def test_kernels_are_asked_about_open_sizes(name):
    compiled = plumbline.compile(ELEMENTWISE[name], dynamic=True)
    for sizes in ((1, 6), (4, 3), (1, 4), (3, 5), (6, 1), (0, 3)):
        x = torch.arange(float(sizes[0] * sizes[1])).reshape(sizes)
        expected, result = ELEMENTWISE[name](x), compiled(x)
        assert result.stride() == expected.stride()
        assert torch.equal(result, expected)
