"""What is drawn can be judged: no value grows too large at a later call, whose sizes may be larger."""

import pytest

from plumbline.fuzz.graph_programs import drawing
from plumbline.fuzz.graph_programs.graph_program import GraphProgram, GraphStep
from plumbline.fuzz.graph_programs.inputs import CallPlan, GraphInput


def outer_products(count):
    """Return a program that squares the size of a vector with each step: x.outer(x).flatten()."""
    steps = []
    for number in range(count):
        steps += [GraphStep("outer", (2 * number, 2 * number)), GraphStep("flatten", (2 * number + 1,))]
    return GraphProgram((GraphInput((-1,)),), tuple(steps), (2 * count,), (CallPlan(0, (2, 2)), CallPlan(1, (17, 2))))


def test_a_program_that_grows_at_a_later_call_is_told():
    assert not drawing._raises(outer_products(1), drawing.MOST_LATER)
    with pytest.raises(drawing._GrownTooLarge):
        drawing._raises(outer_products(2), drawing.MOST_LATER)
