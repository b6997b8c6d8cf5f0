"""Loops without points are not run; the tensor that one would have written was missing where ATen reads it."""

import pytest
import torch

from plumbline.oracle import VerdictKind, check


@pytest.mark.cc
@pytest.mark.parametrize("shape", [(0,), (0, 3), (3, 0, 2)])
@pytest.mark.parametrize(
    "function",
    [
        lambda x: torch.cat([x * 2, x]),
        lambda x: (x * 2).sum(),
        lambda x: (x.sin() + 1, x.sum(0)),
        lambda x: torch.sort(x.exp(), 0).values * 2,
    ],
    ids=["cat", "sum", "two", "sort"],
)
def test_programs_on_tensors_without_elements(function, shape):
    x = torch.zeros(shape, requires_grad=True)
    verdict = check(function, (x,), compiler="plumbline", backend="inductor")
    assert verdict.kind is VerdictKind.EQUAL, str(verdict)
