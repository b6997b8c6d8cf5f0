"""Graphs with more tensors than a function can be called with from Python."""

import pytest
import torch

import plumbline
from plumbline.compiler.base.config import CONFIG


@pytest.mark.cc
@pytest.mark.parametrize("dynamic", [False, True])
def test_a_graph_of_more_tensors_than_ctypes_passes(dynamic):
    """Results that a graph keeps for its backward count: a training step of some hundred layers has more than 1024."""

    def program(x):
        return [(x + number).sin() for number in range(1100)]

    x = torch.randn(3, 4)
    with CONFIG.patch({"strict": True}):
        found = plumbline.compile(program, dynamic=dynamic)(x)
    torch.testing.assert_close(found, program(x))
