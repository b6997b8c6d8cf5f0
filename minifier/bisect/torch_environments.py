"""Environments with one version of torch each: found, or made with pip and kept, and a case run in them.

They lie in `environments` of the cache folder, one folder a version, and are used again.
"""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from plumbline.compiler.base.errors import UserError
from plumbline.compiler.base.options import Options, default_cache_directory

from .version_search import VersionTrial

INSTALL_SECONDS = 3600.0
RUN_SECONDS = 900.0
_READY = "ready"  # written last, so that an environment whose making was interrupted is made anew


def environments_directory() -> Path:
    """Return the folder of the environments."""
    return default_cache_directory(Options()) / "environments"


@dataclass(frozen=True, slots=True)
class TorchEnvironments:
    """Makes environments and runs a case in them.

    pip_arguments: further ones of `pip install`, such as the index of a build.  python: what makes them.
    """

    root: Path
    pip_arguments: tuple[str, ...] = ()
    python: str = sys.executable
    progress: Callable[[str], None] = lambda _: None

    def made(self) -> list[str]:
        """Return the versions that need no installation."""
        if not self.root.is_dir():
            return []
        found = [place.name.removeprefix("torch-") for place in self.root.glob("torch-*") if (place / _READY).exists()]
        return sorted(found, key=version_key)

    def installable(self) -> list[str]:
        """Return the versions that pip offers for this Python and machine, the oldest first; raises UserError."""
        command = [self.python, "-m", "pip", "index", "versions", "torch", *self.pip_arguments]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
        match = re.search(r"Available versions: (.+)", done.stdout)
        if match is None:
            why = (done.stderr.strip().splitlines() or ["it says nothing"])[-1][:200]
            raise UserError("pip offers no versions of torch", why=why, hint="name them: --versions 2.12.0,2.13.0")
        return sorted((version.strip() for version in match[1].split(",")), key=version_key)

    def interpreter(self, version: str) -> Path | None:
        """Return the Python of an environment with this version, made where it is missing; None if that fails."""
        place = self.root / f"torch-{version}"
        python = place / "bin" / "python"
        if (place / _READY).exists():
            return python
        shutil.rmtree(place, ignore_errors=True)
        self.progress(f"making an environment with torch {version}")
        maker = shutil.which("uv")
        make = [maker, "venv", "-q", "--seed", "--python", self.python, str(place)] if maker else None
        self.root.mkdir(parents=True, exist_ok=True)
        steps = [make or [self.python, "-m", "venv", str(place)]]
        steps.append([str(python), "-m", "pip", "install", "-q", f"torch=={version}", "numpy", *self.pip_arguments])
        for step in steps:
            try:
                done = subprocess.run(step, capture_output=True, text=True, timeout=INSTALL_SECONDS, check=False)
            except (OSError, subprocess.TimeoutExpired) as error:
                self.progress(f"torch {version} cannot be installed: {type(error).__name__}")
                return None
            if done.returncode:
                why = (done.stderr.strip().splitlines() or ["no reason given"])[-1][:200]
                self.progress(f"torch {version} cannot be installed: {why}")
                shutil.rmtree(place, ignore_errors=True)
                return None
        (place / _READY).write_text(f"torch {version}\n", encoding="utf-8")
        return python

    def try_case(self, case: Path, version: str) -> VersionTrial:
        """Run a case under a version: status 0 is good, 1 is bad, anything else says nothing of the failure."""
        python = self.interpreter(version)
        if python is None:
            return VersionTrial.UNTRIED
        answer = run_case([str(python), str(case)])
        self.progress(f"torch {version}: {answer.name.lower()}")
        return answer


def run_case(command: Sequence[str], folder: Path | None = None) -> VersionTrial:
    """Run a command and return what its exit status says; one that does not end says nothing."""
    environment = {**os.environ, "PYTHONPATH": str(folder)} if folder is not None else None
    try:
        done = subprocess.run(
            command, cwd=folder, env=environment, capture_output=True, timeout=RUN_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return VersionTrial.UNTRIED
    return {0: VersionTrial.GOOD, 1: VersionTrial.BAD}.get(done.returncode, VersionTrial.UNTRIED)


def version_key(version: str) -> tuple[tuple[int, ...], bool, str]:
    """Return what sorts versions: by their numbers, those that are no release before the release."""
    numbers = tuple(int(part) for part in re.findall(r"\d+", version.partition("+")[0])[:3])
    return numbers, re.fullmatch(r"[\d.]+", version.partition("+")[0]) is not None, version
