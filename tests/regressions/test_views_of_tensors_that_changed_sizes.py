"""A tensor changes its own sizes in place, and a view of it leaves the graph beside it."""

import pytest
import torch

import plumbline
from plumbline.compiler.base.events import recording, swallowed_error

CHANGES = {
    "squeeze_": lambda x: x.squeeze_(-2),
    "t_": lambda x: x.t_(),
    "unsqueeze_": lambda x: x.unsqueeze_(1),
    "swapaxes_": lambda x: x.swapaxes_(0, -1),
}
VIEWS = {"first": lambda x: x[0], "expanded": lambda x: x.expand(3, *x.shape), "last": lambda x: x.unbind(0)[-1]}


@pytest.mark.parametrize("fresh", [True, False])
@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
@pytest.mark.parametrize("view", VIEWS.values(), ids=VIEWS)
def test_a_view_of_a_tensor_that_changed_its_sizes(view, change, fresh):
    def program(x):
        y = x * 1 if fresh else x
        before = view(y)
        if before.dim() < 3:
            before.mul_(7)
        change(y)
        return y, before, view(y)

    with recording() as events:
        found = plumbline.compile(program, backend="aot_eager")(torch.arange(3.0).reshape(1, 3))
    assert [error for event in events if (error := swallowed_error(event))] == []
    for one, other in zip(found, program(torch.arange(3.0).reshape(1, 3)), strict=True):
        assert torch.equal(one, other)
        assert one.stride() == other.stride()


def test_a_part_is_written_before_the_input_changes_its_sizes():
    def program(x):
        first, second = x.chunk(2, -1)
        second.mul_(0.5)
        x.unsqueeze_(0)
        return first

    with recording() as events:
        found = plumbline.compile(program, backend="aot_eager")(torch.arange(2.0))
    assert [error for event in events if (error := swallowed_error(event))] == []
    assert torch.equal(found, program(torch.arange(2.0)))
