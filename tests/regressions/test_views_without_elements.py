"""Views of tensors without elements, and gradients through them, ended in a modulo by zero.

A dimension of size zero has no places, so its digit of a flat position is never asked for.
"""

import pytest
import torch

import plumbline

pytestmark = pytest.mark.cc
PROGRAMS = {
    "amax": (lambda x: x.amax(1), (0, 3)),
    "amax over nothing left": (lambda x: x.amax(0), (3, 0)),
    "amin": (lambda x: x.amin((0, 2)), (3, 0, 2)),
    "einsum": (lambda x: torch.einsum("ij,jk->ik", x, x.t()), (3, 0)),
    "einsum of no rows": (lambda x: torch.einsum("ij,jk->ik", x, x.t()), (0, 3)),
    "einsum of batches": (lambda x: torch.einsum("bij,bjk->bik", x, x.transpose(1, 2)), (2, 3, 0)),
    "view": (lambda x: x.view(0, 2, 3) * 2, (0, 6)),
    "reshape": (lambda x: x.t().reshape(4, 0) * 2, (0, 10)),
    "repeat": (lambda x: x.repeat(2, 3) * 2, (0, 10)),
    "flatten": (lambda x: (x * 2).flatten() + 1, (0, 10)),
    "tile": (lambda x: x.tile(2, 2), (0, 4)),
    "kron": (lambda x: torch.kron(x, x), (0, 4)),
    "tensordot": (lambda x: torch.tensordot(x, x, 2), (0, 4)),
    "unfold": (lambda x: x.unfold(1, 2, 1) + 1, (0, 4)),
}


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("name", PROGRAMS)
def test_values_and_gradients(name: str, dynamic: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLUMBLINE_STRICT", "1")  # an error of ours is an error here
    program, shape = PROGRAMS[name]
    x, twin = (torch.zeros(shape, requires_grad=True) for _ in range(2))
    expected, actual = program(x), plumbline.compile(program, backend="inductor", dynamic=dynamic)(twin)
    assert actual.shape == expected.shape
    assert actual.stride() == expected.stride()
    assert torch.equal(actual, expected)
    expected.sum().backward()
    actual.sum().backward()
    assert twin.grad.shape == x.grad.shape
