"""The command: a few cases with our compiler, planted faults, processes that die, other tools' results."""

import json
import subprocess
import sys

import pytest
import torch

from plumbline import command
from plumbline.compiler.base.errors import UserError
from plumbline.fuzz.silent_bench.bench_cases import BenchCase, Status, bench_cases
from plumbline.fuzz.silent_bench.bench_run import chosen_cases, judge_cases
from plumbline.fuzz.silent_bench.bench_scores import BenchReport
from plumbline.fuzz.silent_bench.other_tools import export_programs, flagged_tests
from plumbline.testing import lowering_of, replace_lowering


@pytest.fixture
def call(monkeypatch, capsys, tmp_path):
    """Run the command line in this process, in an empty directory; return status, stdout, stderr."""
    monkeypatch.chdir(tmp_path)

    def run(*words: object) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["plumbline", "bench", "silent", *map(str, words)])
        with pytest.raises(SystemExit) as end:
            command.main()
        out, err = capsys.readouterr()
        return int(end.value.code or 0), out, err

    return run


def test_a_class_of_cases_with_our_compiler(call, tmp_path):
    words = (
        "--compiler",
        "plumbline",
        "--backend",
        "eager",
        "--backend",
        "aot_eager",
        "--case",
        "^side_effects/.*list",
    )
    status, out, _ = call(*words, "--json", "r.json")
    assert status == 0, out
    assert "plumbline's judge on plumbline aot_eager, torch" in out
    first, second = json.loads((tmp_path / "r.json").read_text())
    assert (first["backend"], second["backend"]) == ("eager", "aot_eager")
    names = [case["name"] for case in first["cases"]]
    assert names == [case.name for case in chosen_cases("^side_effects/.*list")]
    assert {case["verdict"] for case in first["cases"]} == {"EQUAL"}


@pytest.mark.cc
def test_a_wrong_compiler_is_flagged(call):
    words = ("--compiler", "plumbline", "--case", "no_grad_survives_graph_break")
    with replace_lowering(torch.ops.aten.sin.default, lowering_of(torch.ops.aten.cos.default)):
        status, out, _ = call(*words)
    assert status == 1
    assert "false alarm: modes/no_grad_survives_graph_break: WRONG" in out
    assert call(*words)[0] == 0


PROGRAMS = """
import os, torch
def test_dies():
    os._exit(3)
def test_fails():
    raise ValueError("by itself")
def test_idle():
    pass
def test_plain():
    torch.compile(lambda x: x + 1)(torch.ones(2))
"""


def test_processes_that_die_do_not_take_others_along(tmp_path):
    (tmp_path / "odd.py").write_text(PROGRAMS)
    cases = [BenchCase(name, "odd", folder=tmp_path) for name in ("dies", "fails", "idle", "plain")]
    report = BenchReport("judge", "plumbline", "eager", torch.__version__, len(cases))
    judge_cases(report, cases, lambda line: None)
    dies, fails, idle, plain = report.outcomes
    assert (dies.flagged, dies.verdict) == (True, "CRASH")
    assert (fails.flagged, fails.remark) == (False, "the program ends with ValueError: by itself")
    assert (idle.flagged, idle.remark) == (False, "VACUOUS")
    assert (plain.flagged, plain.verdict, plain.remark) == (False, "EQUAL", "")


def test_cases_are_listed_without_running(call):
    status, out, _ = call("--list", "--case", "^hooks/backward")
    assert status == 0
    assert "hooks/backward_hook_registered_between_calls" in out
    assert "pytorch/pytorch#115750" in out


@pytest.mark.parametrize("words", [("--case", "("), ("--case", "no such case"), ("--compiler", "gcc")])
def test_wrong_requests_are_refused(call, words):
    status, _, err = call(*words)
    assert status == 2
    assert err.startswith("plumbline: ")


def test_another_tool_is_scored(call, tmp_path, monkeypatch):
    """The programs run as plain pytest files; what fails there is what that tool flags."""
    monkeypatch.setattr(torch, "__version__", "2.13.0")  # what is known of a program is known by release
    status, out, _ = call("--export", "bench")
    assert status == 0
    assert "files of programs" in out
    conftest = "import pytest\n@pytest.hookimpl(tryfirst=True)\ndef pytest_runtest_call(item):\n"
    conftest += "    assert 'grown' not in item.name and 'grows' not in item.name\n"
    (tmp_path / "bench" / "conftest.py").write_text(conftest)
    pytest_words = ["-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", "argument_list_grows or attribute_is_deleted"]
    made = [sys.executable, *pytest_words, "--junitxml", str(tmp_path / "r.xml"), str(tmp_path / "bench")]
    subprocess.run([*made, "test_side_effects.py"], cwd=tmp_path / "bench", check=False, capture_output=True)
    status, out, _ = call("--score", "r.xml", "--case", "argument_list_grows|attribute_is_deleted")
    assert status == 1
    assert "false alarm: side_effects/argument_list_grows: flagged" in out
    assert "attribute_is_deleted" not in out


def test_junit_of_several_variants(tmp_path):
    file = tmp_path / "r.xml"
    tests = '<testcase name="test_a[x]"/><testcase name="test_a[y]"><failure/></testcase><testcase name="test_b"/>'
    tests += '<testcase name="test_c"><skipped/></testcase><testcase name="test_d"><error/></testcase>'
    file.write_text(f"<testsuites><testsuite>{tests}</testsuite></testsuites>")
    assert flagged_tests(file) == {"a": True, "b": False, "d": True}
    file.write_text("no xml")
    with pytest.raises(UserError, match="JUnit"):
        flagged_tests(file)


def test_export_spares_a_folder_with_files(tmp_path):
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(UserError, match="empty"):
        export_programs(tmp_path)
    assert export_programs(tmp_path / "new") == len({case.fault for case in bench_cases()})
    assert Status.LIVE.is_fault


@pytest.mark.cc
def test_the_yardstick_compares_results(call):
    words = ("--compiler", "plumbline", "--judge", "assert_close", "--case", "no_grad_survives_graph_break")
    assert call(*words)[0] == 0
    with replace_lowering(torch.ops.aten.sin.default, lowering_of(torch.ops.aten.cos.default)):
        status, out, _ = call(*words)
    assert status == 1
    assert "assert_close on plumbline inductor" in out
    assert "false alarm: modes/no_grad_survives_graph_break: WRONG: Tensor-likes are not close" in out


def test_the_yardstick_is_quiet_about_a_right_compiler(call):
    words = ("--compiler", "plumbline", "--backend", "eager", "--judge", "assert_close")
    for fault in ("numpy_code", "shared_memory", "errors_raised", "side_effects"):
        status, out, _ = call(*words, "--case", f"^{fault}/")
        assert status == 0, out
