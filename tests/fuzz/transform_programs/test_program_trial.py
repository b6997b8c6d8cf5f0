"""The transform fuzzer: silent on a right compiler, loud on a wrong vmap rule, and the laws."""

from dataclasses import replace

import pytest
import torch

from plumbline.fuzz.campaign import CampaignSettings, run_campaign
from plumbline.fuzz.fuzzers import find_fuzzer
from plumbline.fuzz.transform_programs.laws import broken_law
from plumbline.fuzz.transform_programs.program_trial import try_program
from plumbline.fuzz.transform_programs.programs import OperatorStep, TransformLevel, TransformProgram
from plumbline.fuzz.transform_programs.tensors import TensorSpec
from plumbline.oracle.harness.compilers import CompileStatistics
from plumbline.oracle.harness.known_compilers import find_compiler
from plumbline.oracle.verdict import VerdictKind
from support.planted_compilers import PlantedCompiler
from support.planted_faults import faulty_compiler

SUM = OperatorStep("sum", (0,), (("dim", 0), ("keepdim", False)))
BATCHED_SUM = TransformProgram(
    (TensorSpec((2, 3, 3)),), 1, (SUM,), (1,), nest=(TransformLevel("vmap", 1, in_dims=(0,)),), compiled=1
)
TRANSFORMS = find_fuzzer("transforms")


def test_no_false_alarm_on_a_right_compiler():
    report = run_campaign(TRANSFORMS, PlantedCompiler(), "eager", CampaignSettings(250, seed=11))
    assert report.failures == []
    assert report.examples == 250
    assert report.verdicts["EQUAL"] >= 230, report.summary()


def test_a_planted_wrong_vmap_rule_is_caught_and_shrunk():
    compiler = faulty_compiler("vmap_takes_the_first_sample_for_all")
    report = run_campaign(TRANSFORMS, compiler, "eager", CampaignSettings(400, seed=1, most_failures=1))
    (found,) = report.failures
    assert found.repeats
    assert "vmap" in found.signature.involved
    assert {"sin", "cos", "exp", "tanh"} & set(found.signature.involved)
    assert len(found.example.steps) <= 3
    assert report.examples < 200


@pytest.mark.parametrize("level", [0, 1])
def test_one_program_with_the_fault_inside_or_around_the_compiled_function(level):
    program = replace(BATCHED_SUM, compiled=level)
    assert try_program(program, PlantedCompiler(), "eager").verdict.kind is VerdictKind.EQUAL
    tried = try_program(program, faulty_compiler("vmap_counts_dims_with_the_batch"), "eager")
    assert tried.signature is not None
    assert (tried.signature.kind, tried.signature.aspect) == ("WRONG", "values")
    assert tried.signature.involved == ("sum", "vmap")


def test_without_a_transform_a_wrong_vmap_rule_cannot_show():
    program = replace(BATCHED_SUM, nest=(), compiled=0)
    assert try_program(program, faulty_compiler("vmap_counts_dims_with_the_batch"), "eager").signature is None


def test_stock_eager_runs_clean_on_a_few():
    report = run_campaign(TRANSFORMS, find_compiler("torch", "eager"), "eager", CampaignSettings(8, seed=5))
    assert report.failures == [], report.failures[0].script
    assert report.verdicts["EQUAL"] >= 4


def test_eager_errors_are_not_failures():
    program = TransformProgram((TensorSpec((2,)), TensorSpec((3,))), 2, (OperatorStep("add", (0, 1)),), (2,))
    tried = try_program(program, PlantedCompiler(), "eager")
    assert tried.verdict.kind is VerdictKind.EAGER_FAILED
    assert tried.signature is None


def test_a_compiler_that_compiles_nothing_is_vacuous():
    class Lazy(PlantedCompiler):
        def compile(self, target, backend, request, *, rng):
            candidate = super().compile(target, backend, request, rng=rng)
            candidate.statistics = CompileStatistics
            return candidate

    assert try_program(BATCHED_SUM, Lazy(), "eager").verdict.kind is VerdictKind.VACUOUS


@pytest.mark.parametrize(
    "level",
    [
        TransformLevel("vmap", 1, in_dims=(-1,), out_dim=1),
        TransformLevel("jacrev", 1),
        TransformLevel("jacfwd", 1),
        TransformLevel("vjp", 1),
        TransformLevel("jvp", 1),
    ],
)
def test_laws_hold_in_eager_and_break_when_a_rule_is_wrong(level, monkeypatch):
    extra = (TensorSpec((2, 3), seed=3),) if level.takes_vector else ()
    program = TransformProgram(
        (TensorSpec((2, 3), seed=1), *extra), 1, (OperatorStep("sin", (0,)),), (1,), nest=(level,), compiled=1
    )
    assert broken_law(program) is None
    # A wrong rule of torch itself: forward mode, reverse mode or a batched call gives another answer than the rest.
    wrong = {
        "vmap": ("vmap", lambda f, **k: lambda x: right(f, **k)(x) * 2),
        "jacrev": ("func.jacrev", lambda f, **k: lambda x: right(f, **k)(x) * 2),
        "jacfwd": ("func.jacfwd", lambda f, **k: lambda x: right(f, **k)(x) * 2),
        "vjp": ("func.jvp", lambda f, x, v: (right(f, x, v)[0], right(f, x, v)[1] * 2)),
        "jvp": ("func.jvp", lambda f, x, v: (right(f, x, v)[0], right(f, x, v)[1] * 2)),
    }[level.transform]
    place = f"torch.{wrong[0]}"
    right = torch.vmap if wrong[0] == "vmap" else getattr(torch.func, wrong[0].split(".")[1])
    monkeypatch.setattr(place, wrong[1])
    broken = broken_law(program)
    assert broken is not None
    assert broken.failed
    assert "law" in {finding.aspect for finding in broken.findings}
