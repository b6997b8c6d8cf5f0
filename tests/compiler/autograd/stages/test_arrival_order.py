"""Which gradient of a step arrives first is autograd's to say; the model of its queue is held against the engine."""

import sys

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from plumbline.compiler.autograd.stages.arrival_order import order_of_ends, pushed_for

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the model is of the queue of GNU's library")


class Step(torch.autograd.Function):
    """A step whose inputs all get a gradient."""

    @staticmethod
    def forward(ctx, *inputs):
        ctx.count = len(inputs)
        return torch.ones(1)

    @staticmethod
    def backward(ctx, gradient):
        return (gradient,) * ctx.count


def arrivals(pushed, behind):
    """Return the numbers of leaves in the order in which the engine brings their gradients."""
    found = []
    leaves = {number: torch.ones(1, requires_grad=True) for number in pushed}
    for number, leaf in leaves.items():
        leaf.register_post_accumulate_grad_hook(lambda _, number=number: found.append(number))
    others = [torch.ones(1, requires_grad=True).exp() for _ in range(behind)]
    Step.apply(*others, *leaves.values()).backward()
    return found


@given(st.integers(1, 40).flatmap(lambda count: st.permutations(range(count))), st.integers(0, 3))
def test_gradients_arrive_as_wanted(wanted, behind):
    assert arrivals(pushed_for(wanted, behind), behind) == wanted


def test_the_order_of_inputs_alone_is_another():
    assert arrivals(range(5), 0) != list(range(5))


def test_inputs_with_a_history_come_first_and_those_without_a_gradient_not_at_all():
    ordered = order_of_ends({1, 2, 4, 5}, (4, 1, 5, 2), {1, 4, 5}, before_another=False)
    assert ordered[0] == 2
    assert arrivals(ordered[1:], 1) == [4, 1, 5]
    assert arrivals(order_of_ends({1, 4, 5}, (4, 1, 5), {1, 4, 5}, before_another=True), 1) == [4, 1, 5]
