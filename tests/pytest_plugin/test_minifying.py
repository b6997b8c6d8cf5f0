"""`--compile-minify`: which failures are minimized, and a planted one that is, from the plugin to the script."""

import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from plumbline.pytest_plugin.minifying import FEW, _outcome, failures_to_minify, mended_by
from plumbline.reports.rows import CaseRow

pytest_plugins = ["pytester"]


def case(test: str, backend: str, stage: str | None, line: int, *, verdict: str = "WRONG") -> CaseRow:
    outcome = "failed" if verdict == "WRONG" else "passed"
    return CaseRow(
        run_id="r",
        case_id=f"{test}{backend}",
        test=test,
        compiler="torch",
        backend=backend,
        outcome=outcome,
        verdict=verdict,
        stage=stage,
        user_file="t.py",
        user_line=line,
    )


CASES = [
    case("capture", "eager", "eager", 1),
    case("capture", "inductor", "eager", 1),
    case("traced", "aot_eager", "aot_eager", 2),
    case("traced", "inductor", "aot_eager", 2),
    case("same line", "aot_eager", "aot_eager", 2),
    *(case(f"built {n}", "inductor", "inductor", 10 + n) for n in range(5)),
    case("fine", "inductor", None, 99, verdict="NOISE"),
]


def test_auto_takes_the_first_few_places_where_a_fault_begins() -> None:
    assert [found.test for found in failures_to_minify(CASES, "auto")] == ["capture", "traced", "built 0"]
    assert len(failures_to_minify(CASES, "auto")) == FEW


def test_always_takes_every_test() -> None:
    found = [each.test for each in failures_to_minify(CASES, "always")]
    assert found == ["capture", "traced", "same line", *(f"built {n}" for n in range(5))]


def test_the_commands_last_line_is_what_is_told() -> None:
    assert _outcome('noise\n{"sentence": "REPRODUCES 3/3", "reproduces": true}\n', "") == ("REPRODUCES 3/3", True, "")
    assert _outcome("", "progress\nrepro-minify: nothing to minify\n") == ("repro-minify: nothing to minify", False, "")
    assert _outcome("", "") == ("repro-minify printed nothing", False, "")


GATES = """
import pytest
import torch
from plumbline.testing import lowering_of, replace_lowering

aten = torch.ops.aten

@pytest.mark.parametrize("size", [2, 3])
def test_tanh(size):
    with replace_lowering(aten.tanh.default, lowering_of(aten.sin.default)):
        torch.compile(lambda x: torch.tanh(x) + 1)(torch.ones(size))

def test_sigmoid():
    with replace_lowering(aten.sigmoid.default, lowering_of(aten.sin.default)):
        torch.compile(lambda x: torch.sigmoid(x) + 1)(torch.ones(2))
"""


@pytest.mark.cc
def test_failures_that_pass_without_the_guilty_rule_have_its_cause(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(test_gates=GATES)
    tests = ["test_gates.py::test_tanh[2]", "test_gates.py::test_tanh[3]", "test_gates.py::test_sigmoid"]
    cases = [replace(case(test, "inductor", "inductor", 1), compiler="plumbline") for test in tests]
    found = mended_by("lowering:@aten.tanh.default", cases, pytester.path)
    assert [each.test for each in found] == tests[:2]
    assert mended_by("aten.tanh.default", cases, pytester.path) == []  # operators that are left are no switch


@pytest.mark.slow
@pytest.mark.cc
def test_a_planted_lowering_is_caught_blamed_on_inductor_and_made_small(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        test_planted="""
import torch
from plumbline.testing import lowering_of, replace_lowering

aten = torch.ops.aten

def program(x, w):
    y = torch.tanh(x @ w) + x
    z = torch.sigmoid(y) * torch.exp(-y.abs())
    return torch.softmax(z, -1).sum(0) + z.mean(0)

def test_program():
    torch.manual_seed(0)
    with replace_lowering(aten.tanh.default, lowering_of(aten.sin.default)):
        torch.compile(program)(torch.randn(4, 8), torch.randn(8, 8))

def test_same_cause():
    with replace_lowering(aten.tanh.default, lowering_of(aten.sin.default)):
        torch.compile(torch.tanh)(torch.ones(3))
"""
    )
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-p",
            "no:randomly",
            "-p",
            "no:cacheprovider",
            "--compile-backends=all",
            "--compile-compilers=plumbline",
            "--compile-minify=auto",
        ],
        cwd=pytester.path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1, done.stdout + done.stderr
    assert "stage    first wrong at inductor (eager and aot_eager are right)" in done.stdout
    told = re.search(r"minified: .*REPRODUCES 5/5: (\d+) -> (\d+) operators? in (\d+) queries", done.stdout)
    assert told is not None, done.stdout
    assert int(told[2]) <= 3
    assert int(told[3]) <= 15
    assert "(the cause of 1 more: test_planted.py::test_same_cause [plumbline:inductor])" in done.stdout
    (script,) = (Path(pytester.path) / ".plumbline" / "repros").glob("*.py")
    assert "aten.tanh" in script.read_text()
