"""`as_strided`: gradients through views of views, writes between the elements of a value, offsets of inputs."""

import pytest
import torch

import plumbline

BACKENDS = ["aot_eager", pytest.param("inductor", marks=pytest.mark.cc)]
PARTS = {
    "gaps": lambda base: base[0, ::2],
    "a row": lambda base: base[1],
    "rows": lambda base: base[1:],
    "a block": lambda base: base[1:, 1:],
    "transposed": lambda base: base.t()[1:],
    "whole": lambda base: base,
}


def doubled_in_place(x):
    part = x.as_strided((2,), (1,))
    part.mul_(2)
    return x.sum(), part + 1


def added_to_itself(x):
    part = x.as_strided((2,), (1,))
    return part.add_(part)


def diagonal(x):
    return x.fill_diagonal_(7)


CASES = [(program, part) for program in (doubled_in_place, added_to_itself) for part in PARTS]
CASES += [(diagonal, part) for part in PARTS if part not in ("gaps", "a row")]  # it takes two dimensions


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(("program", "part"), CASES)
def test_writes_reach_the_memory_that_eager_writes(program, part, backend):
    bases = torch.arange(24.0).reshape(6, 4), torch.arange(24.0).reshape(6, 4)
    eager = program(PARTS[part](bases[0]))
    compiled = plumbline.compile(program, backend=backend)(PARTS[part](bases[1]))
    for one, other in zip(compiled, eager, strict=True):
        assert torch.equal(one, other)
    assert torch.equal(*bases)


@pytest.mark.parametrize("backend", BACKENDS)
def test_the_gradient_of_a_view_by_numbers_ends_at_what_it_is_a_view_of(backend):
    def program(x):
        return x.as_strided((2, 2), (3, 2), 1).as_strided((2, 2), (1, 1), 2)

    gradients = []
    for run in (program, plumbline.compile(program, backend=backend)):
        x = torch.arange(9.0).requires_grad_()
        run(x).sum().backward()
        gradients.append(x.grad)
    assert torch.equal(*gradients)
