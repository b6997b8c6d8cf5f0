"""Chains of frames, handled exceptions and suspended generators go on under each version of Python."""

import json
import os
import subprocess

import pytest

from plumbline.compiler.bytecode.versions import RUNNING
from support.continued_frames import CHECKS
from support.interpreters import VERSIONS, required
from support.link_tree import ROOT, make_link_tree


@pytest.mark.parametrize("name", CHECKS)
def test_running_version(name):
    CHECKS[name]()


@pytest.mark.parametrize("version", [version for version in VERSIONS if version != RUNNING], ids=str)
def test_other_versions(version):
    environment = os.environ | {"PYTHONPATH": str(make_link_tree()), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [required(version), str(ROOT / "tests" / "support" / "continued_frames.py")]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=120, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    report = json.loads(done.stdout)
    assert tuple(report["python"]) == version
    assert report["checks"] == len(CHECKS)
    assert not report["wrong"]
