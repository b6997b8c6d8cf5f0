"""A failing batch names the stage of our compiler that departs, and the graph it departs in."""

import pytest
import torch

from plumbline.compiler.codegen.triton import triton_library
from plumbline.compiler.lowering.registry import lowering_of, replace_lowering
from plumbline.compiler.runtime.triton_interpreter import why_unavailable
from plumbline.fuzz.campaign import CampaignSettings, run_campaign
from plumbline.fuzz.fuzzers import find_fuzzer
from plumbline.fuzz.graph_programs.departing_stage import departing_stage
from plumbline.fuzz.graph_programs.graph_program import GraphProgram, GraphStep, ProgramBatch
from plumbline.fuzz.graph_programs.inputs import CallPlan, GraphInput
from plumbline.oracle.harness.known_compilers import find_compiler

aten = torch.ops.aten


def batch_of(operator: str, calls: int = 1, *, requires_grad: bool = False) -> ProgramBatch:
    plans = tuple(CallPlan(seed) for seed in range(calls))
    one = GraphInput((3,), requires_grad=requires_grad)
    return ProgramBatch((GraphProgram((one,), (GraphStep(operator, (0,)),), (1,), plans),))


def test_right_stages_are_silent():
    assert departing_stage(batch_of("sin", calls=2, requires_grad=True)) == ""


def test_the_lowering_is_named_with_its_operator():
    with replace_lowering(aten.sin.default, lowering_of(aten.cos.default)):
        text = departing_stage(batch_of("sin"))
    assert text.startswith("lowering, after ")
    assert "output 0" in text
    assert "sin" in text.split("(graph of ")[1]


def test_a_finding_of_a_campaign_names_its_stage(monkeypatch):
    fuzzer = find_fuzzer("graphs")
    monkeypatch.setattr("plumbline.fuzz.fuzzers.draw_batch", lambda draw, programs, avoided: batch_of("sin"))
    with replace_lowering(aten.sin.default, lowering_of(aten.cos.default)):
        report = run_campaign(fuzzer, find_compiler("plumbline", "inductor"), "inductor", CampaignSettings(1))
    (failure,) = report.failures
    assert failure.stage == "inductor"
    assert failure.departing_stage.startswith("lowering, after ")


@pytest.mark.skipif(bool(why_unavailable()), reason=f"kernels cannot be interpreted: {why_unavailable()}")
def test_a_fault_of_triton_alone_is_named_as_its_own(monkeypatch):
    """The rungs below are right, and the stage that departs is the generated code in Triton."""
    broken = triton_library.LIBRARY.replace("return a + b", "return a + b + b * 0.01")
    monkeypatch.setattr("plumbline.compiler.codegen.triton.interpreted_segments.LIBRARY", broken)
    batch = batch_of("sum_all", requires_grad=True)
    assert departing_stage(batch) == ""
    assert departing_stage(batch, "triton").startswith("generated code, after schedule")
    monkeypatch.setattr("plumbline.fuzz.fuzzers.draw_batch", lambda draw, programs, avoided: batch)
    report = run_campaign(find_fuzzer("graphs"), find_compiler("plumbline", "triton"), "triton", CampaignSettings(1))
    (failure,) = report.failures
    assert failure.stage == "triton"
    assert failure.departing_stage.startswith("generated code, after schedule")
