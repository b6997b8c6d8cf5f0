"""Two loops of no iterations were joined into one, by a quotient by 0: an internal error, and a fallback."""

import pytest
import torch

import plumbline


@pytest.mark.parametrize("shape", [(0, 0), (0, 3), (3, 0), (0, 0, 0)])
def test_a_reduction_of_nothing(shape):
    x = torch.zeros(shape, dtype=torch.bool)
    compiled = plumbline.compile(lambda x: torch.float_power(x, 0).all(), options={"strict": True})
    assert bool(compiled(x))
