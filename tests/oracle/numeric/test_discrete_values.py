"""Tensors whose values rounding decides: what the rounded lanes fix, and what four of them may miss."""

import torch

from plumbline.oracle.numeric.discrete_values import judge_declared
from plumbline.oracle.verdict import VerdictKind


def _judged(moved, positions=1, size=16, strays=0.5):
    """Judge numbers of which the lanes fix all but the first; some positions are off by `moved`."""
    eager = torch.ones(size, dtype=torch.bfloat16)
    rounded = eager.double().expand(4, size).clone()
    rounded[::2, 0] += strays
    actual = eager.clone()
    actual[-positions:] += moved
    return judge_declared(actual, eager, rounded, 0.4, None).kind


def test_one_position_of_few_may_be_a_tie_that_four_lanes_missed():
    assert _judged(0.25) is VerdictKind.UNSTABLE


def test_a_position_that_moved_further_than_rounding_moves_any_is_wrong():
    assert _judged(0.75) is VerdictKind.WRONG
    assert _judged(0.25, strays=0.1) is VerdictKind.WRONG


def test_two_positions_are_no_tie():
    assert _judged(0.25, positions=2) is VerdictKind.WRONG
    assert _judged(0.25, positions=3, size=200) is VerdictKind.WRONG
