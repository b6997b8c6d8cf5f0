"""The recipes of docs/nightly-recipes.md: their commands exist, their options too, and the pull-request ones run."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

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
    from plumbline.pytest_plugin.settings import SETTINGS

    ours = {setting.option for setting in SETTINGS}
    for line in recipe_commands(section):
        for part in re.split(r"&&|\|\|", line):
            words = shlex.split(part)
            if words[0] == "plumbline":
                command = plumbline.commands[words[1]]
                known = {name for option in command.params if isinstance(option, click.Option) for name in option.opts}
                assert {word.split("=")[0] for word in words if word.startswith("--")} <= known, line
            elif words[0] == "pytest":
                assert {word.split("=")[0] for word in words if word.startswith("--compile")} <= ours, line


@pytest.mark.slow
@pytest.mark.parametrize(
    ("section", "variables"),
    [
        ("GitLab", {"CI_COMMIT_REF_NAME": "main"}),
        ("Slurm", {"SLURM_ARRAY_TASK_ID": "4", "SLURM_ARRAY_JOB_ID": "7"}),
    ],
)
def test_the_steps_run(tmp_path, section, variables):
    (tmp_path / "tests").mkdir()
    for name in "ab" if section == "Slurm" else "a":
        (tmp_path / "tests" / f"test_{name}.py").write_text(SUITE)
    folder = str(Path(sys.executable).parent)
    environment = {**os.environ, **variables, "PATH": os.pathsep.join([folder, os.environ["PATH"]])}
    environment["PYTEST_ADDOPTS"] = "-p no:randomly -p no:cacheprovider"
    lines = [line.replace("--compile-backends=all", "--compile-backends=eager") for line in recipe_commands(section)]
    lines = [re.sub(r"(plumbline nightly \S+)", r"\1 --compile-backends=eager", line) for line in lines]
    if section == "Slurm":  # the tasks one after the other; one machine, and two parts, to save time
        *task, judge = [line.replace("% 4", "% 2").replace("/4", "/2") for line in lines]
        for number in (1, 2):
            run_in(tmp_path, task, {**environment, "SLURM_ARRAY_TASK_ID": str(number)})
        lines = [judge]
    output = run_in(tmp_path, lines, environment)
    said = output + ((tmp_path / "gate.md").read_text() if section == "GitLab" else "")
    assert ("plumbline gate: green" if section == "GitLab" else "gate GREEN: 2 cases") in said, said


def run_in(folder, lines, environment):
    script = "set -e\n" + "\n".join(lines)
    done = subprocess.run(
        ["sh", "-c", script], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
