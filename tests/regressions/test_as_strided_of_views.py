"""`as_strided` of a view, without an offset of its own, begins where the view does; beside a write it began at 0."""

import pytest
import torch

import plumbline


def read(x):
    whole = x + 1
    part = whole[3].add_(0.5)
    return part.as_strided((2,), (1,))


def written(x):
    whole = x + 1
    whole[3].as_strided((2,), (2,)).mul_(3)
    return whole


def with_an_offset(x):
    whole = x + 1
    part = whole[3].add_(0.5)
    return part.as_strided((2,), (1,), 1)


def beside_a_write(x):
    whole, other = x + 1, x * 2
    other.add_(1)
    return whole[2:].as_strided(size=(2, 2), stride=(2, 1)), other


def of_bytes(x):
    whole = x.to(torch.int32)
    return whole, whole.view(torch.uint8).as_strided((2, 2), (1, 1), 0)


@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
@pytest.mark.parametrize("program", [read, written, with_an_offset, beside_a_write, of_bytes])
def test_it_begins_where_the_view_begins(program, backend):
    x = torch.arange(8.0)
    values, expected = plumbline.compile(program, backend=backend)(x), program(x)
    assert torch.equal(torch.stack([*map(torch.sum, values)]), torch.stack([*map(torch.sum, expected)]))
    assert [one.tolist() for one in values] == [one.tolist() for one in expected]
