"""The judge asked `torch.equal`, which does not know complex numbers of half precision, and died of it."""

import pytest
import torch

from plumbline.oracle import check


def to_half(factor):
    return lambda x: (x * factor).to(torch.complex32)


@pytest.mark.parametrize(("factor", "wrong"), [(1.0, False), (1.0003, False), (1.5, True)])
def test_results_are_judged(factor, wrong):
    x = torch.randn(3, dtype=torch.complex64, generator=torch.Generator().manual_seed(0))
    assert check(to_half(1.0), (x,), compiled=to_half(factor)).failed == wrong


@pytest.mark.parametrize(("factor", "wrong"), [(2.0, False), (3.0, True)])
def test_writes_are_judged(factor, wrong):
    x = torch.randn(3, dtype=torch.complex64, generator=torch.Generator().manual_seed(0)).to(torch.complex32)
    assert check(lambda x: x.mul_(2.0), (x,), compiled=lambda x: x.mul_(factor)).failed == wrong
