"""Failures of one step of the compiler are one finding, whatever they look like."""

import torch

from plumbline.compiler.lowering.registry import lowering_of, replace_lowering
from plumbline.fuzz.campaign import CampaignSettings, run_campaign
from plumbline.fuzz.fuzzers import find_fuzzer
from plumbline.fuzz.graph_programs.graph_program import GraphProgram, GraphStep, ProgramBatch
from plumbline.fuzz.graph_programs.inputs import CallPlan, GraphInput
from plumbline.oracle.harness.known_compilers import find_compiler

aten = torch.ops.aten


def batch_of(*operators):
    steps = tuple(GraphStep(operator, (number,)) for number, operator in enumerate(operators))
    program = GraphProgram((GraphInput((3,)),), steps, (len(steps),), (CallPlan(0),))
    return ProgramBatch((program,))


def test_the_same_culprit_is_told_once(monkeypatch):
    """Cannot be made smaller, and neither contains the other: by their looks they are two findings."""
    batches = [batch_of("sin", "exp"), batch_of("sin", "tanh"), batch_of("cos", "exp")]

    def drawn(draw, programs, avoided):
        return batches[int(draw.lineage.split(":")[1])]

    fuzzer = find_fuzzer("graphs")
    monkeypatch.setattr("plumbline.fuzz.fuzzers.draw_batch", drawn)
    monkeypatch.setattr("plumbline.fuzz.campaign.shrink", lambda trial, *rest, **named: trial)
    wrong = lowering_of(aten.neg.default)
    with replace_lowering(aten.sin.default, wrong), replace_lowering(aten.cos.default, wrong):
        compiler = find_compiler("plumbline", "inductor")
        report = run_campaign(fuzzer, compiler, "inductor", CampaignSettings(3))
    assert [one.culprit for one in report.failures] == ["lowering aten.sin.default", "lowering aten.cos.default"]
    assert report.duplicates == 1
