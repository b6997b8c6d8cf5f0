"""What came in between two nights: commits where the repository is at hand, else the two versions."""

import subprocess
from pathlib import Path

from ..history import Night
from .page_data import Commit

MOST_COMMITS = 6
_GIT_SECONDS = 5.0
_WORD = "%h%x00%s%x00%an"


def commits_between(before: Night | None, night: Night, suspect: str, root: Path | None) -> tuple[Commit, ...]:
    """Return what changed of the suspected part; root: a repository of the user's code, None when there is none."""
    if before is None:
        return ()
    if suspect == "your code":
        listed = _listed(root, before.run.commit, night.run.commit) if root is not None else ()
        return listed or _version(before.run.commit[:10], night.run.commit[:10], "your code")
    versions = {
        "plumbline": (before.run.plumbline, night.run.plumbline),
        "torch": (before.run.torch, night.run.torch),
        "machine": (before.run.machine, night.run.machine),
    }
    return _version(*versions.get(suspect, ("", "")), suspect)


def _version(before: str, now: str, part: str) -> tuple[Commit, ...]:
    return (Commit(id=now, title=f"{part}, from {before or 'unknown'}"),) if now and now != before else ()


def _listed(root: Path, before: str, now: str) -> tuple[Commit, ...]:
    if not _is_commit(before) or not _is_commit(now) or before == now:
        return ()
    command = ["git", "-C", str(root), "--no-optional-locks", "log", f"--format={_WORD}", "-n", str(MOST_COMMITS + 1)]
    try:
        done = subprocess.run(
            [*command, f"{before}..{now}", "--"], capture_output=True, text=True, timeout=_GIT_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return ()
    lines = [line.split("\0") for line in done.stdout.splitlines()] if done.returncode == 0 else []
    commits = [Commit(id=parts[0], title=parts[1], author=parts[2]) for parts in lines if len(parts) == 3]
    more = (Commit(id="…", title="and earlier ones"),) if len(commits) > MOST_COMMITS else ()
    return (*commits[:MOST_COMMITS], *more)


def _is_commit(text: str) -> bool:
    """Return whether a text is the hash of a commit, so that git cannot take it for an option."""
    return len(text) >= 7 and all(letter in "0123456789abcdef" for letter in text)
