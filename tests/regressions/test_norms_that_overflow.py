"""Squares of a norm overflow: eager's NaN came of the order of its sums, and what counted by it was held for fixed."""

import torch
from torch.nn import functional

from plumbline.oracle import VerdictKind, check

BOUNDARIES = torch.tensor([-1.0, 0.0, 2.5])


def rows():
    small = torch.randn(1, 5, generator=torch.Generator().manual_seed(0))
    return torch.cat([small, small * 1e25, small * 1e26, small + 1])


def program(x):
    return torch.bucketize(functional.layer_norm(x, (5,)), BOUNDARIES, out_int32=True)


def in_two_passes(x):
    centred = x - x.mean(-1, keepdim=True)
    normal = centred * torch.rsqrt(centred.square().mean(-1, keepdim=True) + 1e-5)
    return torch.bucketize(normal, BOUNDARIES, out_int32=True)


def test_another_order_of_steps_is_no_fault():
    verdict = check(program, (rows(),), compiled=in_two_passes)
    assert not verdict.failed, str(verdict)


def test_rows_that_do_not_overflow_are_judged():
    def wrong(x):
        found = in_two_passes(x)
        return torch.cat([found[:3], 3 - found[3:]])

    assert check(program, (rows(),), compiled=wrong).kind is VerdictKind.WRONG
