"""A write that gave a zero of the other sign was a mutation that eager does not have; eager's own kernels mix them."""

import pytest
import torch

from plumbline.oracle import check


@pytest.mark.parametrize("values", [[0.0, -0.0], [-0.0, float("nan")], [0.0]])
def test_signs_are_no_mutation(values):
    x = torch.tensor(values)
    assert not check(lambda x: (x.neg_(), 1)[1], (x,), compiled=lambda x: 1).failed
    assert not check(lambda x: 1, (x,), compiled=lambda x: (x.neg_(), 1)[1]).failed


@pytest.mark.parametrize("dtype", [torch.float32, torch.int64, torch.complex64])
def test_other_numbers_are_one(dtype):
    x = torch.tensor([0.0, 1.0]).to(dtype)
    assert check(lambda x: (x.neg_(), 1)[1], (x,), compiled=lambda x: 1).failed
    assert check(lambda x: 1, (x,), compiled=lambda x: (x.neg_(), 1)[1]).failed


def test_integers_in_the_same_memory_are_looked_at_bit_by_bit():
    x = torch.tensor([0.0, 1.0])
    bits = x.view(torch.int32)
    assert check(lambda x, bits: (x[:1].neg_(), 1)[1], (x, bits), compiled=lambda x, bits: 1).failed
