"""A loss that ATen writes as calls of other operators rounds between them, to the dtype of its operands."""

import torch
from torch.nn import functional

from plumbline.oracle.judge import judge_call
from plumbline.oracle.judge_options import JudgeOptions
from plumbline.oracle.verdict import VerdictKind


def loss(x, target, weight):
    return functional.binary_cross_entropy_with_logits(x, target, pos_weight=weight)


def with_a_wider_product(x, target, weight):
    weighed = functional.logsigmoid(x) * ((weight - 1) * target + 1)
    return ((1 - target) * x - weighed).mean()


def with_a_wrong_weight(x, target, weight):
    return loss(x, target, weight * 1.05)


def judged(candidate):
    number = torch.randn((1, 3, 1), generator=torch.Generator().manual_seed(256153))
    x = torch.randn((1, 3, 1), generator=torch.Generator().manual_seed(256156)).half()
    arguments = (x, torch.sigmoid(number), number.flatten()[0])
    return judge_call(loss, candidate, arguments, {}, JudgeOptions(), {"loss": loss}).verdict


def test_a_loss_that_does_not_round_between_is_right():
    verdict = judged(with_a_wider_product)
    assert verdict.kind is VerdictKind.NOISE, verdict.sentence


def test_a_wrong_weight_is_found():
    assert judged(with_a_wrong_weight).kind is VerdictKind.WRONG
