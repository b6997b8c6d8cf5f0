"""Gradients of half precision that cancel inside an operator, or whose zeros come by chance, were called WRONG."""

import pytest
import torch

from plumbline.oracle import check
from plumbline.oracle.numeric.discrete_values import judge_declared
from plumbline.oracle.verdict import VerdictKind


@pytest.mark.cc
@pytest.mark.parametrize("seed", [0, 2, 3, 5, 6, 8, 11])
def test_batch_norm_of_a_plain_sum_is_right(seed):
    """Its gradient is the rounding of float32 inside: the order of three terms decides."""
    torch.manual_seed(seed)
    module = torch.nn.BatchNorm2d(3, affine=bool(seed % 2)).bfloat16()
    x = torch.randn(2, 3, 6, 6).bfloat16().requires_grad_()
    verdict = check(module, (x,), compiler="plumbline", backend="inductor")
    assert not verdict.failed, str(verdict)


def noise(count: int, settled: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return a compiled tensor, eager's, and rounded lanes: zero at the first positions, noise behind them."""
    torch.manual_seed(0)
    actual, eager, lanes = torch.randn(count), torch.randn(count), torch.randn(4, count)
    eager[:settled], lanes[:, :settled] = 0.0, 0.0
    return actual.bfloat16(), eager.bfloat16(), lanes.bfloat16().double()


def test_zeros_at_a_few_positions_are_chance():
    assert judge_declared(*noise(12, settled=2), 0.9, None).kind is VerdictKind.UNSTABLE


def test_zeros_at_most_positions_are_not():
    assert judge_declared(*noise(12, settled=9), 0.9, None).kind is VerdictKind.WRONG


def test_a_value_may_stray_as_often_as_a_lane_does():
    actual, eager, lanes = noise(40, settled=40)
    actual[:38] = 0.0
    assert judge_declared(actual, eager, lanes, 0.9, None).kind is VerdictKind.WRONG
    lanes[2, :4] = 1.0
    assert judge_declared(actual, eager, lanes, 0.9, None).kind is VerdictKind.UNSTABLE
