"""Tasks tried in this process: what is right passes, and planted faults are found in the case that has them."""

import pytest
import torch

from plumbline.compiler.backends import replaced_backend
from plumbline.fuzz.operator_sweep.case_trial import SWALLOWED
from plumbline.fuzz.operator_sweep.cases import SweepTask, read_case
from plumbline.fuzz.operator_sweep.task_trial import TaskRequest, try_task
from plumbline.oracle.harness.known_compilers import find_compiler
from plumbline.testing import lowering_of, replace_lowering

aten = torch.ops.aten


def tried(operator, dtype="float32", backend="aot_eager", *, dynamic=False, **more):
    task = SweepTask(operator, dtype, dynamic, backend)
    return try_task(
        TaskRequest(task, samples=2, seed=0, **more), find_compiler("plumbline", backend), lambda text: None
    )


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "int64"])
def test_a_right_operator_has_no_faults(dtype, dynamic):
    row = tried("add", dtype, dynamic=dynamic)
    assert row["faults"] == []
    assert row["cases"] == sum(row["kinds"].values()) > 10
    assert row["refused"] > 0
    assert row["vacuous"] < row["cases"] / 2


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_modules_are_compared_with_their_buffers(dtype):
    row = tried("module:nn.BatchNorm1d", dtype)
    assert row["faults"] == []
    assert row["cases"] > 2


@pytest.mark.cc
def test_a_planted_lowering_is_found_where_it_is_and_nowhere_else():
    with replace_lowering(aten.sin.default, lowering_of(aten.cos.default)):
        wrong, right = tried("sin", backend="inductor"), tried("exp", backend="inductor")
    assert right["faults"] == []
    kinds = {(fault["kind"], fault["aspect"]) for fault in wrong["faults"]}
    assert ("WRONG", "values") in kinds
    assert {read_case(fault["case"]).task.operator for fault in wrong["faults"]} == {"sin"}


def test_an_error_of_ours_that_nobody_sees_is_found():
    def fails(graph, inputs, options):
        raise KeyError("planted")

    with replaced_backend("aot_eager", fails):
        row = tried("sin", only=("sin float32 static aot_eager alone 0",))
    (fault,) = row["faults"]
    assert (fault["kind"], fault["aspect"]) == ("SWALLOWED", SWALLOWED)
    assert "planted" in fault["sentence"]


def test_a_silent_result_where_eager_raises_is_found():
    def forgives(graph, inputs, options):
        def run(*tensors):
            try:
                return graph.forward(*tensors)
            except IndexError:
                return (tensors[0],)

        return run

    name = "index_select float32 static aot_eager far_index 0"
    with replaced_backend("aot_eager", forgives):
        row = tried("index_select", only=(name,))
    aspects = {fault["aspect"] for fault in row["faults"]}
    assert "exceptions" in aspects


def test_cases_are_named_without_being_tried():
    row = tried("sin", listed=True)
    assert row["cases"] == 0
    assert "sin float32 static aot_eager alone 0" in row["names"] or len(row["names"]) > 10
    left = tried("sin", listed=True, without=(row["names"][0],))
    assert set(row["names"]) - set(left["names"]) == {row["names"][0]}
