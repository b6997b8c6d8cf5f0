"""A kernel that stopped where eager goes on left no trace: the graph ran operator by operator each time."""

import pytest
import torch

import plumbline
from plumbline.compiler.lowering import indexing


@pytest.mark.cc
def test_a_kernel_that_stops_for_nothing_is_on_record(monkeypatch):
    from plumbline.oracle.harness.compilers import CompileRequest
    from plumbline.oracle.harness.known_compilers import find_compiler

    right = indexing.looked_up
    monkeypatch.setattr(indexing, "looked_up", lambda value, size, number: right(value, 1, number))
    plumbline.reset()
    candidate = find_compiler("plumbline", "inductor").compile(
        lambda x, places: x.index_select(0, places) + 1, "inductor", CompileRequest(), rng="eager"
    )
    x = torch.arange(5.0)
    assert candidate(x, torch.tensor([3, 1])).tolist() == [4.0, 2.0]
    (event,) = [event for event in candidate.statistics().events if event.kind == "internal_error"]
    assert "a kernel stops where eager does not" in event.what
