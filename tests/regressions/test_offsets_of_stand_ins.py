"""A view that is no leaf and begins inside its memory was judged with a copy that began at 0: always wrong."""

import pytest
import torch

from plumbline.oracle import check


@pytest.mark.parametrize("offset", [0, 1, 2])
def test_a_program_is_equal_to_itself(offset):
    leaf = torch.randn(4)[offset:].requires_grad_()

    def program(x):
        return x, x.expand_as(x), x * 2

    assert not check(program, (leaf.view_as(leaf),), compiled=program).failed
    assert check(program, (leaf.view_as(leaf),), compiled=lambda x: (x, x.clone(), x * 2)).failed
    assert check(program, (leaf * 2,), compiled=lambda x: (x, x.expand_as(x), x.detach() * 2)).failed
