"""A later write to an expanded result passed in the backward: it was no view, whose base refuses that in eager."""

import pytest
import torch

import plumbline


def filled_at_once(a, b):
    return torch.sub(b, a).expand(3, -1).fill_(-0.1)


def filled_behind_a_break(a, b):
    wide = torch.sub(b, a).expand(3, -1)
    plumbline.graph_break()
    return wide.fill_(2.0)


def filled_by_the_caller(a, b):
    return (a * b).unsqueeze(0).expand(3, -1)


def not_written(a, b):
    return (a * b).expand(2, 3)


def outcome(program, write):
    a, b = torch.ones((), requires_grad=True), torch.arange(3.0)
    result = program(a, b)
    if write:
        result.zero_()
    try:
        result.sum().backward()
    except RuntimeError as error:
        return str(error)
    return a.grad.item(), result._is_view(), result.stride()


@pytest.mark.parametrize("backend", ["eager", "aot_eager", pytest.param("inductor", marks=pytest.mark.cc)])
@pytest.mark.parametrize(
    ("program", "write"),
    [(filled_at_once, False), (filled_behind_a_break, False), (filled_by_the_caller, True), (not_written, False)],
)
def test_backward_refuses_as_in_eager(program, write, backend):
    expected = outcome(program, write)
    assert outcome(plumbline.compile(program, backend=backend), write) == expected
    assert (program is not_written) or "more than one element of the written-to tensor" in expected
