"""A sum that is asked for in bool counted in bytes: two truths gave a false one."""

import pytest
import torch

import plumbline


@pytest.mark.parametrize("shape", [(2, 2), (3, 4, 17), (256,), (2, 0)])
@pytest.mark.parametrize("dims", [(0,), None])
def test_a_sum_in_bool(shape, dims):
    x = torch.ones(shape)
    x.flatten()[:1] = 0

    def program(x):
        return torch.sum(x, dims, dtype=torch.bool), torch.sum(x > 0, dims, dtype=torch.bool)

    for value, expected in zip(plumbline.compile(program)(x), program(x), strict=True):
        assert value.tolist() == expected.tolist()
