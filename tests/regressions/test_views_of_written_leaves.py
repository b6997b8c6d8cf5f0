"""Asking for the history of a view of a leaf that was written to ends in an assertion of torch's own."""

import torch

import plumbline
from plumbline.oracle.harness.compilers import CompileRequest
from plumbline.oracle.harness.known_compilers import find_compiler


def inverted(leaf, view):
    torch.atleast_3d(view)
    leaf.logical_not_()
    return leaf


def test_the_graph_is_compiled_without_an_error_of_ours():
    plumbline.reset()
    candidate = find_compiler("plumbline", "eager").compile(inverted, "eager", CompileRequest(), rng="eager")
    leaf = torch.randn(4)[::2].requires_grad_()
    assert candidate(leaf, leaf[1:]).tolist() == [0.0, 0.0]
    assert [event for event in candidate.statistics().events if event.kind == "internal_error"] == []
