"""The corpus of programs under the other versions of Python, where the machine has one with torch."""

import os
import subprocess

import pytest

from plumbline.compiler.bytecode.versions import RUNNING
from support.interpreters import VERSIONS, Version, with_torch
from support.link_tree import ROOT, make_link_tree

FILES = ("tests/programs", "tests/compiler/bytecode", "tests/regressions/test_stale_specialisations.py")


@pytest.mark.slow
@pytest.mark.parametrize("version", [version for version in VERSIONS if version != RUNNING], ids=str)
def test_programs(version: Version) -> None:
    interpreter = with_torch(version)
    environment = os.environ | {"PYTHONPATH": str(make_link_tree()), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [interpreter, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", "not slow", *FILES]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, env=environment, timeout=1200, check=False)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
