"""Rows without a class, all ignored: the kernel looked up class 0 of none and stopped, where eager gives NaN."""

import pytest
import torch
from torch.nn import functional

import plumbline


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_as_eager(reduction: str) -> None:
    def loss(scores: torch.Tensor) -> torch.Tensor:
        classes = torch.zeros(scores.shape[0], dtype=torch.long) - 100
        return functional.cross_entropy(scores.exp(), classes, reduction=reduction)

    scores = torch.ones(2, 0)
    with plumbline.config.patch(strict=True):
        actual = plumbline.compile(loss, backend="inductor")(scores)
    torch.testing.assert_close(actual, loss(scores), equal_nan=True)
