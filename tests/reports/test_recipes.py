"""The recipes of docs/nightly-recipes.md: their commands exist, their options too, and the pull-request ones run."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

PAGE = Path(__file__).parents[2] / "docs" / "nightly-recipes.md"
SUITE = """
import torch

def test_waves():
    assert torch.compile(torch.sin)(torch.ones(3)).shape == (3,)
"""


def recipe_commands(section):
    """Return the command lines of a section: the steps of YAML, the lines of shell scripts."""
    text = PAGE.read_text(encoding="utf-8").split(f"\n## {section}\n")[1].split("\n## ")[0]
    found = []
    for language, block in re.findall(r"```(\w+)\n(.*?)```", text, re.DOTALL):
        for line in block.replace("\\\n", "").splitlines():
            step = re.match(r"\s*- (?:run: )?(?P<command>(?:plumbline|pytest) .*)", line)
            if language == "yaml" and step:
                found.append(step["command"])
            elif language == "sh" and not line.startswith(("#", "cd ")):
                found.append(line)
    assert found, section
    return found


@pytest.mark.parametrize("section", ["GitHub Actions", "GitLab", "cron", "Slurm"])
def test_every_option_exists(section):
    import click

    from plumbline.command import plumbline
    from plumbline.minifier.command_minify import repro_minify
    from plumbline.pytest_plugin.settings import SETTINGS

    ours = {setting.option for setting in SETTINGS}
    for line in recipe_commands(section):
        for part in re.split(r"&&|\|\|?|; do|;", line):
            words = shlex.split(part)
            if words[0] == "plumbline":
                command = plumbline.commands[words[1]]
                known = {name for option in command.params if isinstance(option, click.Option) for name in option.opts}
                assert {word.split("=")[0] for word in words if word.startswith("--")} <= known, line
            elif words[0] == "repro-minify":
                known = {name for option in repro_minify.params for name in option.opts}
                assert {word.split("=")[0] for word in words if word.startswith("--")} <= known, line
            elif words[0] == "pytest":
                assert {word.split("=")[0] for word in words if word.startswith("--compile")} <= ours, line


def test_the_database_is_kept_after_a_red_night():
    """The caches of both places are saved after green jobs only, unless they are told otherwise."""
    github, gate, gitlab = (
        yaml.safe_load(block) for block in re.findall(r"```yaml\n(.*?)```", PAGE.read_text(), re.DOTALL)
    )
    steps = github["jobs"]["nightly"]["steps"]
    (night,) = [n for n, step in enumerate(steps) if "plumbline nightly" in step.get("run", "")]
    (restored,) = [n for n, step in enumerate(steps) if step.get("uses", "").startswith("actions/cache/restore@")]
    (saved,) = [n for n, step in enumerate(steps) if step.get("uses", "").startswith("actions/cache/save@")]
    assert restored < night < saved
    assert steps[saved]["if"] == "always()"
    assert steps[saved]["with"]["key"].startswith(steps[restored]["with"]["restore-keys"])
    assert gitlab["nightly"]["cache"]["when"] == "always"
    assert "plumbline gate" in gate["jobs"]["gate"]["steps"][-1]["run"]


VARIABLES = {
    "GitHub Actions": {"GITHUB_REF_NAME": "main", "GITHUB_STEP_SUMMARY": "summary.md"},
    "GitLab": {"CI_COMMIT_REF_NAME": "main"},
    "cron": {},
    "Slurm": {"SLURM_ARRAY_TASK_ID": "4", "SLURM_ARRAY_JOB_ID": "7"},
}
GREEN = {
    "GitHub Actions": "plumbline gate: green",
    "GitLab": "plumbline gate: green",
    "cron": "gate GREEN: 1 case",
    "Slurm": "gate GREEN: 2 cases",
}
SAID_IN = ("gate.md", "night.txt", "summary.md")


@pytest.mark.slow
@pytest.mark.parametrize("section", VARIABLES)
def test_the_steps_run(tmp_path, section):
    (tmp_path / "tests").mkdir()
    for name in "ab" if section == "Slurm" else "a":
        (tmp_path / "tests" / f"test_{name}.py").write_text(SUITE)
    environment = environment_of(VARIABLES[section])
    lines = [line.replace("--compile-backends=all", "--compile-backends=eager") for line in recipe_commands(section)]
    lines = [re.sub(r"(plumbline nightly \S+)", r"\1 --compile-backends=eager", line) for line in lines]
    if section == "Slurm":  # the tasks one after the other; one machine, and two parts, to save time
        lines = [line.replace("% 4", "% 2").replace("/4", "/2") for line in lines]
        task = [line for line in lines if not line.startswith("plumbline ")]
        for number in (1, 2):
            run_in(tmp_path, task, {**environment, "SLURM_ARRAY_TASK_ID": str(number)})
        lines = [line for line in lines if line not in task]
    output = run_in(tmp_path, lines, environment)
    said = output + "".join((tmp_path / name).read_text() for name in SAID_IN if (tmp_path / name).exists())
    assert GREEN[section] in said, said
    assert "<title>plumbline" in (tmp_path / "site" / "index.html").read_text(encoding="utf-8")


@pytest.mark.slow
def test_what_fails_is_handed_to_the_minimizer(tmp_path):
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_a.py").write_text(
        f"import pytest\n{SUITE}\n@pytest.mark.parametrize('text', ['two words'])\n"
        "def test_fails(text):\n    assert torch.compile(torch.sin)(torch.ones(3)).sum() < 0\n"
    )
    tools = tmp_path / "tools"
    tools.mkdir()
    (tools / "repro-minify").write_text('#!/bin/sh\necho "$1" >> asked.txt\n')
    (tools / "repro-minify").chmod(0o755)
    environment = environment_of({})
    environment["PATH"] = os.pathsep.join([str(tools), environment["PATH"]])
    (step,) = [line for line in recipe_commands("GitHub Actions") if "repro-minify" in line]
    run_in(tmp_path, ["pytest tests --compile-backends=aot_eager,eager || true", step], environment)
    assert (tmp_path / "asked.txt").read_text() == "tests/test_a.py::test_fails[plumbline:eager-two words]\n"


def environment_of(variables):
    folder = str(Path(sys.executable).parent)
    path = os.pathsep.join([folder, os.environ["PATH"]])
    return {**os.environ, **variables, "PATH": path, "PYTEST_ADDOPTS": "-p no:randomly -p no:cacheprovider"}


def run_in(folder, lines, environment):
    script = "set -e\n" + "\n".join(lines)
    done = subprocess.run(
        ["sh", "-c", script], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
