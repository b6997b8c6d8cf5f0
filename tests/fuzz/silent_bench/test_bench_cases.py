"""The data of SilentBench: whole, in agreement with the programs, and read without mercy."""

import ast
import contextlib
import io
from pathlib import Path

import pytest
import torch

from plumbline.compiler.base.errors import UserError
from plumbline.fuzz.silent_bench.bench_cases import DATA, PROGRAMS, BenchCase, Status, bench_cases, minor_version
from plumbline.fuzz.silent_bench.case_judgement import program_of
from plumbline.oracle.state.scope import seed_everything

CASES = bench_cases()


def functions_of(file: Path) -> list[str]:
    return [node.name for node in ast.parse(file.read_text()).body if isinstance(node, ast.FunctionDef)]


def test_every_program_has_an_entry_and_every_entry_a_program():
    files = [file for file in PROGRAMS.glob("*.py") if file.name != "__init__.py"]
    written = {(file.stem, name) for file in files for name in functions_of(file) if name.startswith("test_")}
    assert {(case.fault, case.test) for case in CASES} == written
    assert len({case.name for case in CASES}) == len(CASES), "one name for one case, over all classes"


def test_the_corpus_is_large_and_wide():
    assert len(CASES) >= 120
    assert len({case.fault for case in CASES}) >= 15
    live = [case for case in CASES if case.torch.get("2.13") is Status.LIVE]
    assert len(live) >= 74, "the others are unknown until somebody has run them: no expectation, no score"
    assert all(case.torch.get("2.13", Status.UNKNOWN) is not Status.UNKNOWN for case in CASES)


def test_every_class_says_what_it_is():
    for fault in {case.fault for case in CASES}:
        sentence = ast.get_docstring(ast.parse((PROGRAMS / f"{fault}.py").read_text()))
        assert sentence, fault


@pytest.mark.parametrize("fault", dict.fromkeys(case.fault for case in CASES))
def test_programs_end_without_a_compiler(fault, monkeypatch):
    """What a program does when nothing is compiled is the yardstick: it must not fail."""

    def uncompiled(target=None, **options):
        return target if target is not None else uncompiled

    monkeypatch.setattr(torch, "compile", uncompiled)
    for case in CASES:
        if case.fault == fault:
            seed_everything(0)
            with contextlib.redirect_stdout(io.StringIO()):
                program_of(case)()


def test_expectation_follows_status_and_backend():
    case = BenchCase("a", "hooks", wrong_at="aot_eager", torch={"2.13": Status.LIVE, "2.15": Status.FIXED})
    assert case.expected("torch", "eager", "2.13.0+cpu") is False  # the fault comes in later
    assert case.expected("torch", "aot_eager", "2.13.0+cpu") is True
    assert case.expected("torch", "inductor", "2.13.1") is True
    assert case.expected("torch", "inductor", "2.15.0") is False
    assert case.expected("torch", "inductor", "2.14.0") is None  # nobody ran it
    assert case.expected("plumbline", "inductor", "2.14.0") is False
    once = BenchCase("b", "hooks", wrong_at="eager", right_at="aot_eager", torch={"2.13": Status.LIVE})
    assert [once.expected("torch", backend, "2.13.0") for backend in ("eager", "aot_eager", "inductor")] == [
        True,
        False,
        False,
    ]
    assert minor_version("2.15.0.dev20260101+cu130") == "2.15"


@pytest.mark.parametrize(
    "entry",
    [
        'torch = { "2.13" = "broken" }',
        'torch = { "2.13" = "live" }',  # wrong where?
        'torch = { "2.13" = "live" }\nwrong_at = "triton"',
        'torch = { "2.13" = "live" }\nwrong_at = "eager"\nright_at = "triton"',
        'colour = "red"',
    ],
)
def test_a_bad_entry_is_refused(tmp_path, entry):
    file = tmp_path / "cases.toml"
    file.write_text(f"[hooks.one]\n{entry}\n")
    with pytest.raises(UserError, match="one"):
        bench_cases(file)


def test_a_missing_program_is_said(tmp_path):
    with pytest.raises(UserError, match="missing"):
        program_of(BenchCase("a", "nothing", folder=tmp_path))
    (tmp_path / "empty.py").write_text("")
    with pytest.raises(UserError, match="test_a"):
        program_of(BenchCase("a", "empty", folder=tmp_path))


def test_each_case_gets_a_fresh_module():
    case = next(case for case in CASES if case.name == "global_number_changes")
    first, second = program_of(case), program_of(case)
    assert first.__globals__ is not second.__globals__
    assert DATA.is_file()
