"""Other versions of CPython on this machine, to run what needs no torch: on PATH, or kept by pyenv."""

import os
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

Version = tuple[int, int]
VERSIONS: tuple[Version, ...] = ((3, 11), (3, 12), (3, 13))


@cache
def interpreter(version: Version) -> str | None:
    """Return the path of an interpreter that says it has the version, None if there is none."""
    if sys.version_info[:2] == version:
        return sys.executable
    name = f"{version[0]}.{version[1]}"
    kept = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"), "versions")
    on_path = shutil.which(f"python{name}")
    found = [on_path] if on_path else []
    found += [str(folder / "bin" / "python") for folder in sorted(kept.glob(f"{name}.*"))]
    return next((path for path in found if _version_of(path) == name), None)


def _version_of(path: str) -> str:
    command = [path, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"]
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False).stdout.strip()
    except OSError:
        return ""


def with_torch(version: Version) -> str:
    """Return the path of an interpreter that has what the tests of programs import; skips the test without one.

    The variable TEST_PYTHONS may name interpreters, parted as PATH is: environments with torch, numpy and pytest.
    """
    name = f"{version[0]}.{version[1]}"
    named = [path for path in os.environ.get("TEST_PYTHONS", "").split(os.pathsep) if path]
    for path in [*named, *([found] if (found := interpreter(version)) else [])]:
        if _version_of(path) == name and _imports(path, "torch", "numpy", "pytest", "hypothesis"):
            return path
    pytest.skip(f"no Python {name} with torch, numpy, pytest and hypothesis: name one in TEST_PYTHONS")


def _imports(path: str, *modules: str) -> bool:
    command = [path, "-c", f"import {', '.join(modules)}"]
    return subprocess.run(command, capture_output=True, timeout=300, check=False).returncode == 0


def required(version: Version) -> str:
    """Return the path of an interpreter; skips the test where there is none."""
    found = interpreter(version)
    if found is None:
        pytest.skip(f"there is no Python {version[0]}.{version[1]} on this machine, on PATH or under pyenv")
    return found
