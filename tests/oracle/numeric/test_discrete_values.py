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


def _judged_by_errors(ours, eagers, size=2000):
    """Judge numbers that all lanes repeat, where eager is off by roundings of its own from the float64 values."""
    drawn = torch.Generator().manual_seed(0)
    exact = torch.randn(size, generator=drawn, dtype=torch.float64)
    draws = [torch.randn(size, generator=drawn, dtype=torch.float64) for _ in range(2)]
    eager, actual = ((exact + change(draw)).bfloat16() for change, draw in zip((eagers, ours), draws, strict=True))
    return judge_declared(actual, eager, eager.double().expand(4, size), 0.1, None, exact).kind


def test_other_roundings_as_large_as_eagers_are_no_error():
    assert _judged_by_errors(lambda draw: 0.1 * draw, lambda draw: 0.1 * draw) is VerdictKind.UNSTABLE


def test_larger_errors_than_eagers_are_wrong():
    assert _judged_by_errors(lambda draw: 0.15 * draw, lambda draw: 0.1 * draw) is VerdictKind.WRONG
    assert _judged_by_errors(lambda draw: 0.1 + 0.1 * draw, lambda draw: 0.1 * draw) is VerdictKind.WRONG


def test_errors_everywhere_are_wrong_where_eager_errs_at_few_positions():
    assert _judged_by_errors(lambda draw: 0.05 * draw, lambda draw: (draw.abs() > 2) * draw) is VerdictKind.WRONG


def test_values_that_eager_computes_exactly_are_fixed():
    assert _judged_by_errors(lambda draw: 0.05 * draw, torch.zeros_like) is VerdictKind.WRONG
