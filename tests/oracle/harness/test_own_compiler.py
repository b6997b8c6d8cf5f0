"""Our compiler under test: what its record says becomes statistics."""

import numpy as np
import pytest
import torch

from plumbline.oracle.harness.compilers import LADDER, CompileRequest, CompileStatistics, rungs_below
from plumbline.oracle.harness.own_compiler import OwnCompiler


def statistics_of(function, *calls) -> CompileStatistics:
    candidate = OwnCompiler().compile(function, "eager", CompileRequest(dynamic=False), rng="eager")
    for arguments in calls:
        candidate(*arguments)
    return candidate.statistics()


def branching(x):
    y = x + 1
    if y.sum() > 0:
        return y * 2
    return y - 1


def test_one_graph_is_counted_with_its_operators():
    done = statistics_of(lambda x: (x + 1) * 2, (torch.ones(3),))
    assert (done.graphs, done.ops, done.breaks, done.recompiles) == (1, 2, (), 0)
    assert "stage" in {event.kind for event in done.events}
    assert done.compile_seconds > 0


def test_graph_break_has_its_reason_and_line():
    done = statistics_of(branching, (torch.ones(3),))
    (event,) = (event for event in done.events if event.kind == "graph_break")
    assert done.breaks == (event.what,)
    assert event.where.startswith(f"{__file__}:")


def test_recompile_has_the_guard_that_failed():
    done = statistics_of(lambda x: x + 1, (torch.ones(3),), (torch.ones(4),))
    (event,) = (event for event in done.events if event.kind == "recompile")
    assert done.recompiles == 1
    assert "was" in event.what


@pytest.mark.cc
def test_small_arrays_are_judged_in_compiled_code(monkeypatch):
    """Left to NumPy as in ordinary use, nothing would have been compiled and nothing judged."""
    monkeypatch.setenv("PLUMBLINE_NUMPY_THRESHOLD", "1000000")
    candidate = OwnCompiler().compile(lambda x: x * 2 + 1, "inductor", CompileRequest(), rng="eager")
    for _ in range(2):
        assert np.array_equal(candidate(np.ones(3)), np.full(3, 3.0))
    assert candidate.statistics().graphs == 1


def test_the_rungs_below_are_those_that_do_less():
    assert rungs_below("aot_eager") == ("eager",)
    assert rungs_below("aot_eager_decomp_partition") == ("eager", "aot_eager")
    assert rungs_below("triton") == LADDER
    assert rungs_below("somebody's") == ()
