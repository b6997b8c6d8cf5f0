"""An exception that the caller is handling keeps its traceback, whatever the judged program raises meanwhile.

A judged session of a package's tests ended for want of it.
"""

import pytest
import torch

from plumbline.oracle import check


def refused(x):
    raise ValueError("never")


class RefusedBackward(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 1

    @staticmethod
    def backward(ctx, gradient):
        raise ValueError("never")


@pytest.mark.parametrize("program", [refused, RefusedBackward.apply], ids=["forward", "backward"])
def test_it_keeps_its_traceback(program):
    kept = None
    try:
        raise KeyError("the caller's")
    except KeyError as error:
        check(program, (torch.ones(2, requires_grad=True),), backend="eager")
        kept = error.__traceback__
    assert kept is not None
