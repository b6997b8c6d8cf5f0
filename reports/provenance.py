"""The circumstances of a run: versions, commit, machine; without importing torch."""

import os
import platform
import shlex
import subprocess
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path

from .passwords import without_password
from .rows import RunRow, new_run_id, utc_now

GIT_SECONDS = 10.0  # a slow or locked repository must not hold up a test run


_BRANCH_VARIABLES = ("PLUMBLINE_BRANCH", "GITHUB_HEAD_REF", "GITHUB_REF_NAME", "CI_COMMIT_REF_NAME")
"""Where CI systems say which branch is tested: what they check out has none."""


def describe_run(
    command: Sequence[str], root: Path, *, threads: int | None = None, kind: str = "local", suite: str = ""
) -> RunRow:
    """Return the row of a run that starts now.

    command: the words of the command line.  root: directory of the project under test, whose commit
    is recorded.  threads: of torch when the caller knows; by default OMP_NUM_THREADS or the cores.
    kind, suite: as in RunRow.
    """
    commit, dirty = _commit(root)
    return RunRow(
        run_id=new_run_id(),
        utc=utc_now(),
        commit=commit,
        dirty=dirty,
        plumbline=installed_version("plumbline"),
        torch=installed_version("torch"),
        python=platform.python_version(),
        platform=platform.platform(),
        threads=default_threads() if threads is None else threads,
        command=shlex.join(map(without_password, command)),
        kind=kind,
        suite=suite,
        branch=_branch(root),
        machine=machine_text(),
        cache=cache_state(),
    )


def installed_version(distribution: str) -> str:
    """Return the version of an installed distribution, empty when it is not installed."""
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return ""


def default_threads() -> int:
    """Return how many threads torch takes by default: OMP_NUM_THREADS, else the cores we may use."""
    text = os.environ.get("OMP_NUM_THREADS", "").split(",")[0].strip()
    return int(text) if text.isdigit() and int(text) > 0 else usable_cores()


def usable_cores() -> int:
    """Return how many cores this process may run on."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # macOS has no affinities
        return os.cpu_count() or 1


def _commit(root: Path) -> tuple[str, bool]:
    commit = _git(root, "rev-parse", "HEAD")
    if not commit:
        return "", False
    # Untracked files do not count: results and caches are among them.
    return commit, bool(_git(root, "status", "--porcelain", "--untracked-files=no"))


def _git(root: Path, *words: str) -> str:
    command = ["git", "-C", str(root), "--no-optional-locks", *words]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=GIT_SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def _branch(root: Path) -> str:
    named = (os.environ.get(name, "") for name in _BRANCH_VARIABLES)
    return next(filter(None, named), "") or _git(root, "symbolic-ref", "--short", "-q", "HEAD")


def machine_text() -> str:
    """Return what of this machine results may depend on: processor and cores; not whose machine it is."""
    name = platform.processor() or platform.machine()
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
        name = next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), name)
    except OSError:  # not Linux
        pass
    return f"{name}, {usable_cores()} cores"


def cache_state() -> str:
    """Return "cold" when the caches of both compilers are named and empty, else "warm"; without torch."""
    folders = [os.environ.get(name) for name in ("PLUMBLINE_CACHE_DIRECTORY", "TORCHINDUCTOR_CACHE_DIR")]
    return "cold" if all(folder and not _holds_anything(Path(folder)) for folder in folders) else "warm"


def _holds_anything(folder: Path) -> bool:
    try:
        return next(folder.iterdir(), None) is not None
    except OSError:
        return False
