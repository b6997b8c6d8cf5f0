"""What a run row says about the machine and the code."""

import platform
import subprocess

import pytest

from plumbline.reports.provenance import default_threads, describe_run, installed_version, usable_cores


def git(folder, *words):
    identity = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false"]
    done = subprocess.run(["git", "-C", folder, *identity, *words], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def test_a_run_knows_its_versions_and_command(tmp_path):
    run = describe_run(["pytest", "-k", "a or b"], tmp_path, threads=3)
    assert run.command == "pytest -k 'a or b'"
    assert run.python == platform.python_version()
    assert run.torch == installed_version("torch") != ""
    assert run.threads == 3
    assert not run.complete


def test_a_run_knows_its_commit_and_whether_it_was_edited(tmp_path):
    git(tmp_path, "init", "-q")
    (tmp_path / "a").write_text("1")
    git(tmp_path, "add", "a")
    git(tmp_path, "commit", "-q", "-m", "first")
    (tmp_path / "results").write_text("untracked files do not count")
    run = describe_run([], tmp_path)
    assert (run.commit, run.dirty) == (git(tmp_path, "rev-parse", "HEAD"), False)
    (tmp_path / "a").write_text("2")
    assert describe_run([], tmp_path).dirty


@pytest.mark.parametrize("path", [None, "/nonexistent"])
def test_no_version_control_and_no_git_are_no_trouble(tmp_path, monkeypatch, path):
    if path:
        monkeypatch.setenv("PATH", path)
    run = describe_run([], tmp_path / "missing")
    assert (run.commit, run.dirty) == ("", False)


@pytest.mark.parametrize(("value", "threads"), [("3", 3), ("4,2", 4), ("", None), ("many", None), ("0", None)])
def test_threads_are_read_as_openmp_reads_them(monkeypatch, value, threads):
    monkeypatch.setenv("OMP_NUM_THREADS", value)
    assert default_threads() == (threads or usable_cores())


def test_what_is_not_installed_has_no_version():
    assert installed_version("no-such-distribution") == ""
