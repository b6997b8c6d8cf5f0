"""Answers of an earlier run: found under equal circumstances, not found under others, and never of a hang."""

import os
from dataclasses import replace
from pathlib import Path

import pytest

from plumbline.minifier.failure_signature import FailureSignature
from plumbline.minifier.source.kept_answers import KeptAnswers, kept_answers
from plumbline.minifier.source.source_run import RunReport, SourceSettings

SETTINGS = SourceSettings(compiler="plumbline", backend="eager")
WRONG = RunReport(FailureSignature("WRONG", "values", band="gross"), "wrong", line=3, lines=frozenset({1, 2}))
HANG = RunReport(FailureSignature("CRASH", "exceptions", "run", "hang"), "the call does not return")


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))


def asked(kept: KeptAnswers, text: str, report: RunReport) -> list[str]:
    """Return the questions that were asked, and check the answer."""
    questions: list[str] = []

    def ask() -> RunReport:
        questions.append(text)
        return report

    assert kept.answer(text, ask) == report
    return questions


def test_the_next_run_finds_what_this_one_was_told() -> None:
    assert asked(kept_answers(SETTINGS), "x = 1", WRONG) == ["x = 1"]
    later = kept_answers(SETTINGS)
    assert asked(later, "x = 1", WRONG) == []
    assert later.found == 1
    assert asked(later, "x = 2", WRONG) == ["x = 2"]


@pytest.mark.parametrize("change", [{"backend": "inductor"}, {"sought": WRONG.signature}, {"seed": 1}])
def test_other_settings_ask_again(change: dict[str, object]) -> None:
    asked(kept_answers(SETTINGS), "x = 1", WRONG)
    assert asked(kept_answers(replace(SETTINGS, **change)), "x = 1", WRONG) == ["x = 1"]


@pytest.fixture(autouse=True)
def own_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The working directory is looked at too: not that of the test run, whose modules change meanwhile."""
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    monkeypatch.delenv("PYTHONPATH", raising=False)


@pytest.mark.parametrize("where", ["mine.py", "package/inner/mine.py"])
@pytest.mark.parametrize("place", ["folder", "directory", "path"])
def test_a_module_of_the_users_that_changed_asks_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str, place: str
) -> None:
    home = Path.cwd() if place == "directory" else tmp_path / "home"
    module, settings = home / where, replace(SETTINGS, folder=str(home) if place == "folder" else "")
    module.parent.mkdir(parents=True, exist_ok=True)
    module.write_text("a = 1")
    if place == "path":
        monkeypatch.setenv("PYTHONPATH", str(home))
    asked(kept_answers(settings), "import mine", WRONG)
    assert asked(kept_answers(settings), "import mine", WRONG) == []
    os.utime(module, ns=(1, 1))
    assert asked(kept_answers(settings), "import mine", WRONG) == ["import mine"]


def test_the_script_that_a_run_writes_is_no_module() -> None:
    script = Path("repro.py")
    asked(kept_answers(SETTINGS, script), "x = 1", WRONG)
    script.write_text("a = 1")
    assert asked(kept_answers(SETTINGS, script), "x = 1", WRONG) == []


def test_nothing_is_kept_where_there_are_too_many_modules(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("plumbline.minifier.source.kept_answers.MOST_MODULES", 0)
    Path("mine.py").write_text("a = 1")
    asked(kept_answers(SETTINGS), "x = 1", WRONG)
    assert asked(kept_answers(SETTINGS), "x = 1", WRONG) == ["x = 1"]


def test_what_a_busy_machine_could_have_said_is_not_kept() -> None:
    asked(kept_answers(SETTINGS), "x = 1", HANG)
    assert asked(kept_answers(SETTINGS), "x = 1", HANG) == ["x = 1"]


def test_nothing_is_kept_of_a_failure_that_comes_now_and_then() -> None:
    flaky = replace(SETTINGS, repeat=9)
    asked(kept_answers(flaky), "x = 1", WRONG)
    assert asked(kept_answers(flaky), "x = 1", WRONG) == ["x = 1"]


def test_a_line_that_was_cut_short_is_passed_over() -> None:
    asked(kept_answers(SETTINGS), "x = 1", WRONG)
    file = kept_answers(SETTINGS).file
    assert file is not None
    with file.open("a", encoding="utf-8") as lines:
        lines.write('{"key": "a", "sig')
    assert asked(kept_answers(SETTINGS), "x = 1", WRONG) == []


def test_forgotten_answers_are_asked_again() -> None:
    kept = kept_answers(SETTINGS)
    asked(kept, "x = 1", WRONG)
    kept.forget()
    assert asked(kept_answers(SETTINGS), "x = 1", WRONG) == ["x = 1"]
