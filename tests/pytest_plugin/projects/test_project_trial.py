"""Packages run on an engine show what they show in this process, in the order of the list."""

import pytest

from plumbline.compiler.base.errors import UserError
from plumbline.pytest_plugin.projects.project_list import Project
from plumbline.pytest_plugin.projects.project_trial import ProjectTrial, run_trials

INTERPRETER = """#!/bin/sh
for word; do
    case $word in
        --junitxml=*)
            echo '<suite><testcase classname="c" name="t">{mark}</testcase></suite>' > "${{word#--junitxml=}}" ;;
    esac
done
echo {said}
"""
"""Stands for Python in the environment of a package: it runs no test, and reports one."""


@pytest.fixture
def trials(tmp_path):
    """Three packages: one passes and is not judged, one does not pass, and the repository of one is not there."""
    for name, mark in (("passing", ""), ("failing", "<failure/>")):
        python = tmp_path / "work" / f"{name}-1.0" / "env" / "bin" / "python"
        python.parent.mkdir(parents=True)
        python.write_text(INTERPRETER.format(mark=mark, said=f"said of {name}"))
        python.chmod(0o755)
        (tmp_path / "checkouts" / name).mkdir(parents=True)
    (tmp_path / "work" / "nowhere-1.0").mkdir()
    for name in ("passing", "failing", "nowhere"):
        (tmp_path / "work" / f"{name}-1.0" / "prepared").touch()
    projects = [
        Project(name=name, version="1.0", tests=str(tmp_path / "no_repository"), sample=("tests",))
        for name in ("passing", "failing", "nowhere")
    ]
    folders = {"work": tmp_path / "work", "checkouts": tmp_path / "checkouts"}
    return [ProjectTrial(project=one, backends="eager", seconds=300.0, **folders) for one in projects]


def test_an_engine_shows_what_one_process_does(trials):
    alone, together = (list(run_trials(trials, place)) for place in ("", "local:2"))
    assert together == alone
    assert [one.project.name for one in alone] == ["passing", "failing", "nowhere"]
    assert alone[0].trouble == "no test was judged: said of passing"
    assert alone[1].trouble == "no test passes plainly: said of failing"
    assert "nowhere cannot be prepared" in alone[2].trouble


def test_an_engine_that_is_none_is_named(trials):
    with pytest.raises(UserError, match="unknown engine"):
        list(run_trials(trials, "ray://somewhere"))
