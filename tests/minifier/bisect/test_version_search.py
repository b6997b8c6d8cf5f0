"""Where a failure begins and ends: in lists of versions, in pretended environments, and in a real repository."""

import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plumbline.compiler.base.errors import UserError
from plumbline.minifier.bisect.commit_search import search_commits
from plumbline.minifier.bisect.torch_environments import TorchEnvironments, version_key
from plumbline.minifier.bisect.version_search import VersionTrial, search_versions

GOOD, BAD, UNTRIED = VersionTrial.GOOD, VersionTrial.BAD, VersionTrial.UNTRIED


@st.composite
def histories(draw: st.DrawFn) -> tuple[list[VersionTrial], int]:
    """Return what each version does, good, then bad, then good, some untried; and one that is bad."""
    counts = draw(st.tuples(st.integers(0, 8), st.integers(1, 8), st.integers(0, 8)))
    history = [GOOD] * counts[0] + [BAD] * counts[1] + [GOOD] * counts[2]
    bad = draw(st.integers(counts[0], counts[0] + counts[1] - 1))
    for place in draw(st.sets(st.integers(0, len(history) - 1), max_size=4)) - {bad}:
        history[place] = UNTRIED
    return history, bad


@given(histories())
def test_the_edges_are_those_of_the_versions_that_can_be_tried(drawn: tuple[list[VersionTrial], int]) -> None:
    history, bad = drawn
    versions = [f"2.{place}" for place in range(len(history))]
    finding = search_versions(versions, lambda version: history[versions.index(version)], versions[bad])
    first = history.index(BAD)
    good = [place for place in range(first) if history[place] is GOOD]
    after = [place for place in range(bad, len(history)) if history[place] is GOOD]
    assert finding.first_bad == versions[first]
    assert finding.last_good == (versions[good[-1]] if good else None)
    assert finding.fixed_in == (versions[after[0]] if after else None)
    assert len(finding.tried) == len({version for version, _ in finding.tried})
    if good:
        assert {versions.index(version) for version in finding.untried} <= set(range(good[-1] + 1, first))


def test_few_versions_are_tried() -> None:
    versions = [f"2.{place}" for place in range(64)]
    finding = search_versions(versions, lambda version: BAD if versions.index(version) >= 37 else GOOD)
    assert (finding.first_bad, finding.last_good, finding.fixed_in) == ("2.37", "2.36", None)
    assert len(finding.tried) <= 9


def test_where_nothing_is_bad_that_is_said() -> None:
    finding = search_versions(["2.1", "2.2"], lambda version: GOOD)
    assert finding.first_bad is None
    assert finding.text() == "no version that was tried is bad: 2.2, 2.1"


def test_versions_are_sorted_by_their_numbers() -> None:
    versions = ["2.10.0", "2.9.1", "2.13.0+cpu", "2.13.0rc1", "2.9.0"]
    assert sorted(versions, key=version_key) == ["2.9.0", "2.9.1", "2.10.0", "2.13.0rc1", "2.13.0+cpu"]


def pretend(root: Path, version: str, status: int) -> None:
    """Make an environment whose Python ends with a status."""
    place = root / f"torch-{version}" / "bin"
    place.mkdir(parents=True)
    (place / "python").write_text(f"#!/bin/sh\nexit {status}\n")
    (place / "python").chmod(0o755)
    (place.parent / "ready").touch()


def test_environments_are_kept_and_their_answers_are_statuses(tmp_path: Path) -> None:
    for version, status in (("2.9.0", 0), ("2.10.0", 0), ("2.11.0", 1), ("2.12.0", 3), ("2.13.0", 0)):
        pretend(tmp_path, version, status)
    (tmp_path / "torch-2.8.0").mkdir()  # its making was interrupted
    said: list[str] = []
    environments = TorchEnvironments(tmp_path, progress=said.append)
    assert environments.made() == ["2.9.0", "2.10.0", "2.11.0", "2.12.0", "2.13.0"]
    finding = search_versions(environments.made(), lambda version: environments.try_case(tmp_path / "case.py", version))
    assert (finding.first_bad, finding.last_good, finding.fixed_in) == ("2.11.0", "2.10.0", "2.13.0")
    assert "torch 2.12.0: untried" in said


def test_a_version_that_cannot_be_installed_is_not_tried(tmp_path: Path) -> None:
    said: list[str] = []
    environments = TorchEnvironments(tmp_path, ("--no-index",), python="/nowhere/python", progress=said.append)
    assert environments.try_case(tmp_path / "case.py", "1.0") is UNTRIED
    assert said[-1].startswith("torch 1.0 cannot be installed: ")
    assert environments.made() == []


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """Return a repository of eight commits: the sixth breaks what the case asks for, the fourth does not run."""
    place = tmp_path / "own"
    place.mkdir()

    def git(*words: str) -> None:
        names = ("-c", "user.name=n", "-c", "user.email=e@example.com", "-c", "commit.gpgsign=false")
        subprocess.run(["git", *names, *words], cwd=place, check=True, capture_output=True)

    git("init", "-q")
    for number in range(1, 9):
        text = f"def scale():\n    return {3 if number >= 6 else 2}  # {number}\n"
        (place / "own_model.py").write_text("raise SystemExit(9)\n" if number == 4 else text)
        git("add", ".")
        git("commit", "-q", "-m", f"commit {number}")
    return place


def test_the_first_bad_commit_is_found_and_the_tree_stays(repository: Path, tmp_path: Path) -> None:
    case = tmp_path / "case.py"
    case.write_text("import sys\nimport own_model\nsys.exit(own_model.scale() != 2)\n")
    before = (repository / "own_model.py").read_text()
    found = search_commits(case, "HEAD~7", "HEAD", repository)
    assert found.subject == "commit 6"
    assert found.tried <= 6
    assert (repository / "own_model.py").read_text() == before
    listed = subprocess.run(["git", "worktree", "list"], cwd=repository, capture_output=True, text=True, check=True)
    assert len(listed.stdout.splitlines()) == 1
    with pytest.raises(UserError, match="the case is good at HEAD~7, not bad"):
        search_commits(case, "HEAD~6", "HEAD~7", repository)
    with pytest.raises(UserError, match="git rev-parse fails"):
        search_commits(case, "HEAD~6", "nowhere", repository)
