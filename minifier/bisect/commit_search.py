"""The first bad commit of one's own repository: `git bisect`, in a work tree of its own, with a case as the judge."""

import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from plumbline.compiler.base.errors import UserError

from .torch_environments import run_case
from .version_search import VersionTrial


@dataclass(frozen=True, slots=True)
class BadCommit:
    """commit: the first bad one, its hash.  subject: its first line.  tried: how many were run."""

    commit: str
    subject: str
    tried: int

    def text(self) -> str:
        """Return it for people."""
        return f"first bad commit: {self.commit[:12]} {self.subject}\n{self.tried} commits were run"


def search_commits(
    case: Path, good: str, bad: str, repository: Path, progress: Callable[[str], None] = lambda _: None
) -> BadCommit:
    """Return the first commit from `good` to `bad` under which the case fails.

    The repository's own tree stays as it is.  The case is run with the commit's tree in front of the import path; as
    in `git bisect run`, status 0 is good and 125 says nothing.  Raises UserError where git refuses, the ends are not as
    told, or no commit can be blamed.
    """
    judge = case.resolve()
    ends = {name: _git(repository, "rev-parse", "--verify", f"{name}^{{commit}}").strip() for name in (bad, good)}
    with tempfile.TemporaryDirectory(prefix="plumbline-bisect-") as folder:
        tree = Path(folder) / "tree"
        _git(repository, "worktree", "add", "--detach", "-q", str(tree), ends[bad])
        try:
            return _bisected(judge, ends, tree, progress)
        finally:
            _git(repository, "worktree", "remove", "--force", str(tree))


def _bisected(judge: Path, ends: Mapping[str, str], tree: Path, progress: Callable[[str], None]) -> BadCommit:
    """Bisect in a work tree; ends: the bad commit and the good one, by the names that the user gave."""
    for (revision, commit), wanted in zip(ends.items(), (VersionTrial.BAD, VersionTrial.GOOD), strict=True):
        _git(tree, "checkout", "-q", "--detach", commit)
        answer = run_case([sys.executable, str(judge)], tree)
        progress(f"{revision}: {answer.name.lower()}")
        if answer is not wanted:
            what = f"the case is {answer.name.lower()} at {revision}, not {wanted.name.lower()}"
            raise UserError(what, where=str(judge), hint="name other commits with --good and --bad")
    tried = 2
    said = _git(tree, "bisect", "start", *ends.values())
    while (found := re.search(r"^([0-9a-f]{40}) is the first bad commit", said, re.MULTILINE)) is None:
        if "only 'skip'ped commits left" in said.lower() or "cannot bisect more" in said:
            raise UserError("the commits between cannot be run", where=str(judge), hint="make the case run there")
        answer = run_case([sys.executable, str(judge)], tree)
        tried += 1
        word = {VersionTrial.GOOD: "good", VersionTrial.BAD: "bad", VersionTrial.UNTRIED: "skip"}[answer]
        progress(f"{_git(tree, 'log', '-1', '--format=%h %s').strip()}: {word}")
        said = _git(tree, "bisect", word, allowed=(0, 2))
    subject = _git(tree, "log", "-1", "--format=%s", found[1]).strip()
    _git(tree, "bisect", "reset", "-q", allowed=(0, 1, 128, 129))
    return BadCommit(found[1], subject, tried)


def _git(folder: Path, *words: str, allowed: tuple[int, ...] = (0,)) -> str:
    done = subprocess.run(["git", "-C", str(folder), *words], capture_output=True, text=True, check=False)
    if done.returncode not in allowed:
        why = (done.stderr.strip().splitlines() or [done.stdout.strip()[:200]])[-1]
        raise UserError(f"git {words[0]} fails", where=str(folder), why=why, hint="give commits that git knows")
    return done.stdout
