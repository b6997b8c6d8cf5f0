"""The parts of a gradient may be added in any order, and cancel before or after a small one comes."""

import torch

from plumbline.oracle import VerdictKind, check


def whole_numbers_first(x, y):
    view = x.view_as(x)
    return torch.atan2(y, view), 2.0 - view, view


def whole_numbers_apart(x, y):
    view = x.view_as(x)
    return torch.atan2(y, x), 2.0 - x, view


def one_part_missing(x, y):
    view = x.view_as(x)
    return torch.atan2(y, x.detach()) + 0 * view.detach(), 2.0 - x, view


def judged(other):
    x = torch.tensor([[0.31, -1.7], [2.3, 0.77]], requires_grad=True)
    return check(whole_numbers_first, (x, torch.tensor(0.013)), compiled=other)


def test_parts_that_cancel_may_do_so_last():
    verdict = judged(whole_numbers_apart)
    assert not verdict.failed, verdict.sentence


def test_a_part_is_not_lost_beside_those_that_cancel():
    assert judged(one_part_missing).kind is VerdictKind.WRONG
