"""Half-precision values below 6.1e-5 have one rounding error whatever their size: the judge took a share of it."""

import torch

from plumbline import compile as compiled_form
from plumbline.oracle.judge import judge_call
from plumbline.oracle.judge_options import JudgeOptions
from plumbline.oracle.verdict import VerdictKind


def shares(x):
    return torch.softmax(x, 0, dtype=torch.float16)


def shares_without_the_small_ones(x):
    y = shares(x)
    return torch.where(y < 3e-4, y * 0.5, y)


def judged(candidate):
    x = torch.randn((1000, 1), generator=torch.Generator().manual_seed(9581)).to(torch.bfloat16).requires_grad_()
    return judge_call(shares, candidate, (x,), {}, JudgeOptions(), {"shares": shares, "x": x}).verdict


def test_another_order_is_within_the_noise():
    verdict = judged(compiled_form(shares, backend="inductor"))
    assert verdict.kind in (VerdictKind.NOISE, VerdictKind.BETTER), verdict.sentence


def test_small_shares_that_are_half_of_what_they_should_be_are_found():
    assert judged(shares_without_the_small_ones).kind is VerdictKind.WRONG
