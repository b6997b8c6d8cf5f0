"""Nobody is held to memory that eager makes and does not write."""

import pytest
import torch

from plumbline.oracle import VerdictKind, check
from plumbline.oracle.state.unwritten_memory import FilledMemory, with_filled_memory

X = torch.arange(6.0).reshape(2, 3)
MADE = {
    "empty": lambda: torch.empty(2, 3),
    "empty_like": lambda: torch.empty_like(X),
    "transposed": lambda: torch.empty_like(X.t()),
    "empty_strided": lambda: torch.empty_strided((2, 3), (7, 2)),
    "new_empty": lambda: X.new_empty(4, dtype=torch.int64),
    "truth": lambda: torch.empty(3, dtype=torch.bool),
    "complex": lambda: torch.empty(3, dtype=torch.complex64),
    "nothing": lambda: torch.empty(0),
}


@pytest.mark.parametrize("name", MADE)
def test_what_is_made_is_filled(name):
    for number in (0, 1):
        with FilledMemory(number) as filled:
            made = MADE[name]()
        assert filled.made
        assert (made == number).all()


def test_what_is_written_keeps_its_numbers():
    with FilledMemory(1) as filled:
        result = torch.zeros(3), X * 2, torch.empty(2, 3).copy_(X)
    assert filled.made
    assert [tensor.sum().item() for tensor in result] == [0, 30, 15]


def from_the_system():
    """Give memory that eager always finds to be zero: so much comes from the system each time."""
    return torch.empty(40 << 20, dtype=torch.uint8)[:5]


def joined(x):
    return torch.cat([x, from_the_system()]), x * 2


def multiplied(x):
    return x[0] * from_the_system()


@pytest.mark.parametrize("program", [joined, multiplied])
def test_numbers_of_unwritten_memory_are_no_fault(program):
    compiled = with_filled_memory(program, FilledMemory(4))
    verdict = check(program, (torch.ones(3, requires_grad=True),), compiled=compiled)
    assert verdict.kind is VerdictKind.NO_REFERENCE, verdict


def test_a_fault_beside_them_is_found():
    compiled = with_filled_memory(lambda x: (torch.cat([x, from_the_system()]), x * 3), FilledMemory(4))
    verdict = check(joined, (torch.ones(3),), compiled=compiled)
    assert verdict.kind is VerdictKind.WRONG
    assert verdict.worst.where == "output[1]"
