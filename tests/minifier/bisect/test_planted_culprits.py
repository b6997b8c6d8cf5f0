"""Real faults, planted one at a time: a slice of `benchmarks/bisect_faults.py`, one of each kind of application."""

import os
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

import plumbline
from plumbline.minifier.bisect.bisected_cases import CallableCase, InChild
from plumbline.minifier.bisect.culprit import culprit_of
from support.bisect_plants import BisectPlant, answer, differs, is_wrong, plants, surrounded

pytestmark = pytest.mark.cc
KINDS = ("decomposition", "pass", "lowering", "fusion", "reuse", "guard")
PLANTS = {plant.kind: plant for plant in plants() if plant.kind in KINDS}  # the last of each


def case_of(plant: BisectPlant, operators: int) -> CallableCase:
    program = surrounded(plant.snippet, operators, seed=3)
    expected = answer(plant, program)
    return CallableCase(lambda: is_wrong(lambda: answer(plant, plumbline.compile(program)), expected))


@pytest.mark.parametrize("kind", PLANTS)
def test_the_culprit_is_named(kind: str, tmp_path: Path) -> None:
    plant = PLANTS[kind]
    case = case_of(plant, 6)
    assert not case.fails(), "it fails without the fault"
    with plant.plant():
        culprit = culprit_of(case, tmp_path)
        assert culprit is not None
        assert culprit.application is not None
        assert culprit.application.kind == kind
        assert plant.word in culprit.sentence
        with plumbline.config.patch(bisect=culprit.switches):
            assert not case.fails()
    if culprit.before is not None and culprit.before.suffix == ".py":
        assert culprit.after is not None
        assert culprit.before.read_text() != culprit.after.read_text()


def test_the_files_run_and_differ(tmp_path: Path) -> None:
    plant = next(plant for plant in plants() if plant.name == "lowering of aten.relu.default")
    with plant.plant():
        culprit = culprit_of(case_of(plant, 3), tmp_path)
    assert culprit is not None
    assert culprit.before is not None
    assert culprit.after is not None
    texts = [file.read_text() for file in (culprit.before, culprit.after)]
    assert ["torch.ops.aten.relu.default(" in text for text in texts] == [True, False]
    results = []
    for file in (culprit.before, culprit.after):
        scope = runpy.run_path(str(file))
        inputs = [scope["made_up"](text) for text in ("float32[8, 12]", "float32[8, 12]")]
        results.append(scope["forward"](*inputs)[0])
    assert differs(results[:1], results[1:])


def test_what_dies_is_asked_in_a_child() -> None:
    plant = next(plant for plant in plants() if plant.name == "lowering of aten.relu.default")
    program = surrounded(plant.snippet, 3, seed=3)
    expected = answer(plant, program)

    def dies() -> bool:
        if differs(answer(plant, plumbline.compile(program)), expected):
            os.abort()
        return False

    with plant.plant():
        culprit = culprit_of(InChild(CallableCase(dies)))
    assert culprit is not None
    assert "aten.relu.default" in culprit.sentence


SCRIPT = """
import torch
import plumbline
from plumbline.compiler.frontend.guards import guard_table
from plumbline.compiler.frontend.guards.steps import GuardStep, StepOp
from plumbline.compiler.values.guard import GuardKind
from dataclasses import replace

rule = guard_table.RULE_OF_KIND[GuardKind.EQUALS]
accepts = lambda guard, slots: [GuardStep(StepOp.PYTHON, slots.value, operand=lambda *_: True, extra=())]
guard_table.RULE_OF_KIND[GuardKind.EQUALS] = replace(rule, steps=accepts)

@torch.compile
def scaled(x, by):
    return x * by

for by in (2.0, 3.0):
    scaled(torch.ones(3), by)
"""


def test_a_failure_that_needs_two_calls_is_asked_for_whole(tmp_path: Path) -> None:
    script = tmp_path / "stale.py"
    script.write_text(SCRIPT)
    command = [sys.executable, "-m", "plumbline.command", "bisect", str(script)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "checked in C that by equals 2.0" in done.stdout
    assert "stale.py:15" in done.stdout
