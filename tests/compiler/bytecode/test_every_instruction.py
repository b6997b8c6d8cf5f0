"""Sample functions go on from each of their instructions as if nothing had happened, under each version of Python."""

import json
import os
import subprocess

import pytest

from plumbline.compiler.bytecode.resume_code import ResumeLayout
from plumbline.compiler.bytecode.versions import RUNNING
from support import every_instruction
from support.every_instruction import wrong_continuations, wrong_tables
from support.frame_states import State
from support.interpreters import VERSIONS, Version, required
from support.link_tree import ROOT, make_link_tree
from support.sample_functions import SAMPLES


@pytest.mark.parametrize("name", SAMPLES)
def test_running_version(name: str) -> None:
    stops, wrong = wrong_continuations(name)
    assert stops >= 8
    assert not wrong
    assert not wrong_tables(name)


@pytest.mark.parametrize("version", [version for version in VERSIONS if version != RUNNING], ids=str)
def test_other_versions(version: Version) -> None:
    environment = os.environ | {"PYTHONPATH": str(make_link_tree()), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [required(version), str(ROOT / "tests" / "support" / "every_instruction.py")]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=240, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    report = json.loads(done.stdout)
    assert tuple(report["python"]) == version
    assert report["stops"] > 3000
    assert not report["wrong"]


def test_a_wrong_value_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = every_instruction.continuation

    def planted(state: State, names: set[str]) -> tuple[ResumeLayout, tuple[object, ...]]:
        layout, values = honest(state, names)
        return layout, (*values[:-1], 7) if layout.locals else values

    monkeypatch.setattr(every_instruction, "continuation", planted)
    assert wrong_continuations("loop")[1]
    assert not wrong_continuations("no_locals")[1]
