"""A float64 gradient that cancels to nothing: exactly 0 in eager and 1e-17 compiled was called wrong."""

import pytest
import torch
from torch.nn.functional import layer_norm

from plumbline.oracle import check


def normalised(x):
    return layer_norm(x, (4,)) + 0


def in_another_order(x):
    """Return the same with the noise of other kernels in its gradient."""
    mean = x.mean(-1, keepdim=True)
    centred = x - mean
    return centred * torch.rsqrt((centred * centred).mean(-1, keepdim=True) + 1e-5)


@pytest.mark.parametrize("seed", range(3))
def test_noise_of_the_terms_is_noise(seed):
    x = torch.randn(2, 3, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(seed), requires_grad=True)
    assert not check(normalised, (x,), compiled=in_another_order).failed


def test_a_gradient_that_does_not_cancel_is_wrong():
    x = torch.randn(2, 3, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(0), requires_grad=True)
    assert check(normalised, (x,), compiled=lambda x: in_another_order(x) + 1e-12 * (x - x.detach())).failed


def test_what_the_rounding_of_float64_fixes_stays_fixed():
    x = torch.randn(50, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    assert check(lambda x: torch.floor(x * 3), (x,), compiled=lambda x: torch.floor(x * 3 + 0.5)).failed
