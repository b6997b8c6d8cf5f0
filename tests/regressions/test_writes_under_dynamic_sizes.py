"""Writes to parts whose place depends on a dynamic size, and to tensors without elements."""

import pytest
import torch

import plumbline

PARTS = {
    "first of two": lambda x: x.chunk(2)[0],
    "last of three": lambda x: x.chunk(3)[-1],
    "second of given sizes": lambda x: x.split([x.shape[0] - 3, 2, 1])[1],
    "columns": lambda x: x.T.chunk(2, 1)[1],
}


@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
@pytest.mark.parametrize("part", PARTS)
def test_a_piece_of_an_input_is_written(part, backend):
    def program(x):
        piece = PARTS[part](x)
        piece[::2] = 7
        return piece.double()

    compiled = plumbline.compile(program, backend=backend, dynamic=True)
    with plumbline.config.patch(strict=True):
        for rows in (6, 8, 11):
            x = torch.arange(rows * 4.0).reshape(rows, 4)
            mine = x.clone()
            assert torch.equal(compiled(mine), program(x))
            assert torch.equal(mine, x)


@pytest.mark.parametrize("dynamic", [True, False])
@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
def test_a_written_tensor_without_elements_keeps_its_strides(backend, dynamic):
    def program(x):
        y = x.slice_scatter(x.narrow(-1, 0, 1), -1, 0, 1)
        y.add_(y)
        return y

    x = torch.zeros(0, 3, 5).transpose(1, 2)
    assert plumbline.compile(program, backend=backend, dynamic=dynamic)(x).stride() == program(x).stride() == (15, 1, 5)
