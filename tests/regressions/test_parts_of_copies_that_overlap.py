"""A part of a copy is replaced where elements of the copy share memory: in eager others change with it."""

import pytest
import torch

import plumbline

OVERLAPPING = {"unfold": lambda x: x.unfold(0, 2, 1), "expand": lambda x: x[:1].expand(5, -1).t()[None][0]}
REPLACED = {
    "select": lambda x: torch.select_scatter(x, x[1] + 1, 0, 1),
    "slice": lambda x: torch.slice_scatter(x, x[1:] + 1, 0, 1),
    "diagonal": lambda x: torch.diagonal_scatter(x, x.diagonal() + 1),
    "as_strided": lambda x: torch.as_strided_scatter(x, torch.full((2,), 7.0), (2,), (1,), 1),
}


@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
@pytest.mark.parametrize("replaced", REPLACED.values(), ids=REPLACED)
@pytest.mark.parametrize("overlapping", OVERLAPPING.values(), ids=OVERLAPPING)
def test_a_part_of_a_copy_that_overlaps_itself(overlapping, replaced, backend):
    x = torch.arange(8.0).reshape(8, 1) if overlapping is OVERLAPPING["unfold"] else torch.arange(6.0).reshape(2, 3)

    def program(x):
        part = overlapping(x)
        return replaced(part.squeeze(1) if part.dim() == 3 else part)

    expected = program(x)
    found = plumbline.compile(program, backend=backend)(x)
    assert torch.equal(found, expected)
    assert found.stride() == expected.stride()


@pytest.mark.parametrize("replaced", [REPLACED["select"], REPLACED["slice"]], ids=["select", "slice"])
def test_an_expanded_gradient_of_a_replaced_part_stays_in_the_graph(replaced):
    """The gradient of a sum repeats one number: eager copies it element by element."""
    x = torch.randn(3, 2, requires_grad=True)

    def program(x):
        part = replaced(x * 1)
        return part.sum(), part.sum(-1)

    with plumbline.config.patch(strict=True):
        whole, _ = plumbline.compile(program, backend="aot_eager")(x)
        (found,) = torch.autograd.grad(whole, x)
    (expected,) = torch.autograd.grad(program(x)[0], x)
    assert torch.equal(found, expected)
