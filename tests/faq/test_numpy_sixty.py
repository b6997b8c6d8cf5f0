"""Sixty programs of NumPy: NumPy's answers, and one graph each but for what the FAQ lets fall back."""

import numpy as np
import pytest
import torch

import plumbline
from support.numpy_sixty import PROGRAMS

IN_SEVERAL = {"by a mask", "reversed"}  # a shape that depends on data; a view with negative strides


def test_there_are_sixty_and_fifty_of_them_take_one_graph():
    """Most constructions of NumPy can be traced: of sixty programs at least fifty are one graph."""
    assert len(PROGRAMS) == 60
    assert len(PROGRAMS) - len(IN_SEVERAL) >= 50


@pytest.mark.parametrize("name", PROGRAMS)
def test_program(name):
    """Each of the sixty programs gives NumPy's answer, type and dtype."""
    function, arguments = PROGRAMS[name]
    compiled = plumbline.compile(function, backend="eager", fullgraph=name not in IN_SEVERAL)
    ours, numpys = compiled(*arguments), function(*arguments)
    assert type(ours) is type(numpys)
    assert ours.dtype == numpys.dtype
    compare = torch.testing.assert_close if isinstance(ours, torch.Tensor) else np.testing.assert_allclose
    compare(ours, numpys, rtol=1e-6, atol=1e-8)


def test_trace_numpy_switches_it_off():
    """`trace_numpy = False` leaves NumPy's code out of graphs."""
    function, arguments = PROGRAMS["softmax"]
    with plumbline.config.patch(trace_numpy=False):
        report = plumbline.explain(function, *arguments)
    assert report.graph_count == 0
    assert plumbline.explain(function, *arguments).graph_count == 1
