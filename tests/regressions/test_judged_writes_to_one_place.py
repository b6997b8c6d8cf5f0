"""A program that fills an expanded tensor keeps its float64 reference: a lane was written to in several places at once.

Without a reference, a gradient that differs by rounding was called wrong; in a light run the judge failed.
"""

import pytest
import torch

from plumbline.oracle.harness.boundary import call_roots
from plumbline.oracle.judge import judge_call
from plumbline.oracle.judge_options import JudgeOptions
from plumbline.oracle.verdict import Verdict, VerdictKind


def judged(program, other) -> Verdict:
    args = (torch.tensor([0.3, -1.2], requires_grad=True), torch.tensor([1.0, 2.0]))
    return judge_call(program, other, args, {}, JudgeOptions(), call_roots(program, "program", args, {})).verdict


def filled(x, y):
    y.expand(2, -1).fill_(1.0)
    return torch.nn.functional.layer_norm(x, (2,)) * y


def filled_another_way(x, y, scale=1.0):
    y.fill_(1.0)
    middle = x.mean()
    return (x - middle) * torch.rsqrt(((x - middle) ** 2).mean() + 1e-5) * y * scale


def test_rounding_is_told_from_a_fault():
    assert not judged(filled, filled_another_way).failed
    assert judged(filled, lambda x, y: filled_another_way(x, y, 1.001)).kind is VerdictKind.WRONG


@pytest.mark.parametrize("dtype", [torch.int16, torch.float64])
def test_memory_of_the_programs_own(dtype):
    def program(x):
        counts = torch.zeros(3, dtype=dtype)
        counts.expand(4, 3).fill_(2)
        return x.sum() * counts.sum()

    def other(x):
        return x.flip(0).sum() * torch.full((3,), 2, dtype=dtype).sum()

    args = (torch.rand(7, requires_grad=True),)
    assert not judge_call(program, other, args, {}, JudgeOptions(), {}).verdict.failed
