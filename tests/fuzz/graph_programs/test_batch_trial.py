"""The graph fuzzer: silent on a right compiler, loud on every planted fault, within a small budget and a fixed seed."""

import random
import subprocess
import sys

import pytest
import torch

from plumbline.fuzz.campaign import CampaignReport, CampaignSettings, run_campaign
from plumbline.fuzz.fuzzers import find_fuzzer
from plumbline.fuzz.graph_programs.batch_trial import try_batch
from plumbline.fuzz.graph_programs.drawing import draw_batch
from plumbline.fuzz.graph_programs.graph_program import GraphProgram, GraphStep, ProgramBatch
from plumbline.fuzz.graph_programs.inputs import GraphInput
from plumbline.oracle.harness.known_compilers import find_compiler
from plumbline.oracle.verdict import VerdictKind
from support.graph_faults import (
    OPERATOR_FAULTS,
    ReusingCompiler,
    SharingCompiler,
    StaleNumbersCompiler,
    faulty_operator,
)
from support.planted_compilers import PlantedCompiler

GRAPHS = find_fuzzer("graphs")
STRUCTURAL = {"equal_calls_share": SharingCompiler, "numbers_go_stale": StaleNumbersCompiler, "memory": ReusingCompiler}


def hunt(compiler: PlantedCompiler, examples: int, seed: int) -> CampaignReport:
    options = CampaignSettings(examples, seed=seed, most_failures=1, shrink_tries=300, shrink_seconds=600)
    return run_campaign(GRAPHS, compiler, "eager", options)


def test_no_false_alarm_on_a_right_compiler():
    report = hunt(PlantedCompiler(), 300, 5)
    assert report.failures == [], report.failures[0].script
    assert report.verdicts["EQUAL"] >= 270, report.summary()


@pytest.mark.parametrize("name", [*OPERATOR_FAULTS, *STRUCTURAL])
def test_a_planted_fault_is_found_and_shrunk(name):
    compiler = STRUCTURAL[name]() if name in STRUCTURAL else faulty_operator(name)
    report = hunt(compiler, 5000, 2)
    (found,) = report.failures
    assert found.signature.kind == "WRONG"
    assert found.repeats
    assert len(found.example.programs) == 1
    assert len(found.example.programs[0].steps) <= 3, found.script


def program(*steps: GraphStep, outputs: tuple[int, ...], inputs: tuple[GraphInput, ...]) -> GraphProgram:
    return GraphProgram(inputs, steps, outputs)


SIN = program(GraphStep("sin", (0,)), outputs=(1,), inputs=(GraphInput((3,)),))
CLONE = program(GraphStep("clone", (0,)), outputs=(1,), inputs=(GraphInput((3,)),))


def test_a_batch_names_the_program_that_fails():
    result = try_batch(ProgramBatch((SIN, CLONE, SIN)), faulty_operator("clone_is_input"), "eager")
    assert result.example == ProgramBatch((CLONE,))
    assert (result.programs, dict(result.kinds)) == (3, {"EQUAL": 2, "WRONG": 1})
    assert result.signature is not None
    assert result.signature.involved == ("clone",)


def test_an_error_that_the_compiler_swallows_is_a_failure(monkeypatch):
    """The program runs eagerly and gives the right answer; the fault is in the record."""
    from plumbline.compiler.autograd.forms import traced_form as traced

    def broken(*args: object, **kwargs: object) -> None:
        raise KeyError("planted")

    monkeypatch.setattr(traced, "trace_call", broken)
    result = try_batch(ProgramBatch((SIN,)), find_compiler("plumbline", "aot_eager"), "aot_eager")
    assert result.verdict.kind is VerdictKind.CRASH
    assert result.signature is not None
    assert result.signature.aspect == "internal_error"
    assert "KeyError" in result.signature.detail


def test_the_script_of_a_failure_is_short_and_fails(tmp_path):
    result = try_batch(ProgramBatch((SIN,)), faulty_operator("clone_is_input"), "eager")
    script = GRAPHS.script(ProgramBatch((SIN,)), "plumbline", "eager", result.verdict)
    assert len(script.splitlines()) <= 12
    file = tmp_path / "found.py"
    file.write_text(script)
    assert subprocess.run([sys.executable, file], check=False, capture_output=True).returncode == 0
    file.write_text(script.replace("compiled = plumbline.compile(f, backend='eager')", "compiled = torch.cos"))
    assert subprocess.run([sys.executable, file], check=False, capture_output=True).returncode == 1


def test_plumbline_is_right_on_a_slice():
    """A fixed slice for every run of the tests; campaigns go on from other seeds."""
    for backend, seeds in (("eager", range(1)), ("aot_eager", range(1, 3)), ("inductor", range(3, 5))):
        compiler = find_compiler("plumbline", backend)
        for seed in seeds:
            batch = draw_batch(random.Random(f"slice {seed}"), 10, lambda names: False)
            result = try_batch(batch, compiler, backend)
            assert result.signature is None, (seed, str(result.verdict))
    torch.manual_seed(0)
