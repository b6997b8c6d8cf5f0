"""The sign of a NaN that arithmetic makes was judged: kernels of eager itself differ in it."""

import torch

from plumbline.oracle import check


def other_signs(x):
    return torch.where(x.isnan(), -x, x)


def test_what_reads_the_sign_of_a_made_nan_is_not_judged_by_it():
    x = torch.tensor([0.0, 1.0])
    assert not check(lambda x: (x / x).signbit(), (x,), compiled=lambda x: other_signs(x / x).signbit()).failed
    ones = torch.ones(2)
    copied = lambda x: torch.copysign(ones, x / x)  # noqa: E731 - a program among programs
    assert not check(copied, (x,), compiled=lambda x: torch.copysign(ones, other_signs(x / x))).failed


def test_the_other_elements_are_judged_as_ever():
    x = torch.tensor([0.0, 1.0])
    assert check(lambda x: (x / x).signbit(), (x,), compiled=lambda x: ~(x / x).signbit()).failed
    assert check(lambda x: torch.copysign(x, x / x), (x,), compiled=lambda x: -torch.copysign(x, x / x)).failed


def test_the_sign_of_a_nan_that_was_given_counts():
    x = torch.tensor([float("nan"), 1.0])
    assert check(lambda x: x.signbit(), (x,), compiled=lambda x: other_signs(x).signbit()).failed
