"""Values of float16 below 2^-14 lie 2^-24 apart, however small: a step of that size was called wrong."""

import pytest
import torch

from plumbline.oracle.noise.consistency import _departure
from plumbline.oracle.numeric.discrete_values import judge_declared
from plumbline.oracle.numeric.value_decision import Need
from plumbline.oracle.verdict import VerdictKind

STEP = 2.0**-24


@pytest.mark.parametrize(("steps", "kind"), [(1, VerdictKind.UNSTABLE), (40, VerdictKind.WRONG)])
def test_one_step_is_rounding_and_forty_are_not(steps, kind):
    eager = torch.full((60,), 84 * STEP, dtype=torch.float16)
    actual = torch.full((60,), (84 + steps) * STEP, dtype=torch.float16)
    decision = judge_declared(actual, eager, eager.double().expand(4, 60), 0.1, None)
    assert not isinstance(decision.kind, Need)
    assert decision.kind is kind


@pytest.mark.parametrize(("steps", "departs"), [(1, False), (200, True)])
def test_a_tensor_of_subnormals_departs_from_float64_by_its_spacing(steps, departs):
    real = torch.full((8,), 3 * STEP, dtype=torch.float16)
    assert (_departure((3 + steps) * STEP * torch.ones(8), real) is not None) is departs
