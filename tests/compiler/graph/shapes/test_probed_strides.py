"""Kernels are asked for strides at primes where every size that is calculated tells of itself."""

import pytest
import torch

from plumbline.compiler.base.fake_mode_start import make_fake
from plumbline.compiler.base.symbol_facts import make_shape_environment, make_symbolic_fake
from plumbline.compiler.base.torch_facts import WatchedFakeMode, without_dispatch_modes
from plumbline.compiler.graph.shapes.probed_strides import strides_at_primes


def asked_product(args, kwargs):
    with without_dispatch_modes():
        return torch.mul(*args, **kwargs)


def parts(size, cut):
    """Return fakes of (2, 8, 1, part), row by row, with a part calculated from a varying size, and of (2, 8, 1, 1)."""
    mode = WatchedFakeMode(shape_env=make_shape_environment())
    varying = make_symbolic_fake(mode, torch.empty(size), frozenset({0}), (0,)).shape[0]
    with mode:
        whole = torch.empty_strided((2, 8, 1, cut(varying)), (8 * cut(varying), cut(varying), cut(varying), 1))
    return mode, whole, make_fake(mode, torch.empty(2, 8, 1, 1))


CUTS = {
    "one_at_eleven": lambda size: size // 4 - 1,
    "none_at_eleven": lambda size: size // 8 - 1,
    "eight_at_eleven": lambda size: size - 3,
    "plain": lambda size: size,
}


@pytest.mark.parametrize("cut", CUTS.values(), ids=CUTS)
def test_strides_are_those_of_the_kernel_at_the_size_of_now(cut):
    mode, whole, row = parts(200, cut)
    with mode:
        result = torch.empty_strided(whole.shape, whole.stride())
    strides = strides_at_primes(asked_product, (whole, row), {}, result)
    assert strides is not None
    now = cut(200)
    expected = torch.mul(torch.empty(2, 8, 1, now), torch.empty(2, 8, 1, 1)).stride()
    assert tuple(step if type(step) is int else step.node.hint for step in strides) == expected


def test_sizes_that_stay_small_say_nothing():
    mode, whole, row = parts(200, lambda size: size % 2 + 1)
    with mode:
        result = torch.empty_strided(whole.shape, whole.stride())
    assert strides_at_primes(asked_product, (whole, row), {}, result) is None  # 2 is also the first size
