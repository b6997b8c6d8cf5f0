"""What became of results when a run was interrupted, its process died, or the disk filled up."""

import textwrap
from types import SimpleNamespace

import pytest

from plumbline.pytest_plugin.results import ran_to_its_end
from plumbline.reports.store import open_store

pytest_plugins = ["pytester"]
OPTIONS = ("-p", "no:cacheprovider", "-p", "no:randomly", "--compile-backends=eager", "--compile-db=results.sqlite")
TESTS = """
import os, signal, sqlite3, torch

def test_first():
    assert torch.compile(lambda x: x + 1)(torch.ones(3)).sum() == 6

def test_second():
    {second}

def test_third():
    pass
"""


def run_after(pytester, second):
    """Run three tests, the second of them given as text; return pytest's result, the stored run and its tests."""
    pytester.makepyfile(textwrap.dedent(TESTS).replace("{second}", second))
    result = pytester.runpytest_subprocess(*OPTIONS)
    with open_store(str(pytester.path / "results.sqlite")) as store:
        run = store.run()
        tests = [case.test.rpartition("::")[2] for case in store.cases(run.run_id)]
    return result, run, tests


def test_a_crash_loses_no_finished_row(pytester):
    result, run, tests = run_after(pytester, "os.abort()")
    assert result.ret < 0
    assert not run.finished
    assert tests == ["test_first"]


def test_an_interrupted_run_is_not_finished(pytester):
    # a background job starts with SIGINT ignored
    interrupt = "signal.signal(signal.SIGINT, signal.default_int_handler); os.kill(os.getpid(), signal.SIGINT)"
    result, run, tests = run_after(pytester, interrupt)
    assert result.ret == pytest.ExitCode.INTERRUPTED
    assert not run.finished
    assert tests == ["test_first"]


REFUSED = "CREATE TRIGGER full BEFORE INSERT ON plumbline_results BEGIN SELECT RAISE(FAIL, 'disk is full'); END"


def test_a_full_disk_fails_the_session(pytester):
    full = f"with sqlite3.connect('results.sqlite') as database: database.execute({REFUSED!r})"
    result, run, tests = run_after(pytester, full)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["*results are not stored*disk is full*"])
    assert not run.finished
    assert tests == ["test_first"]


@pytest.mark.parametrize(
    ("status", "stop", "ended"),
    [
        (pytest.ExitCode.OK, False, True),
        (pytest.ExitCode.TESTS_FAILED, False, True),
        (pytest.ExitCode.NO_TESTS_COLLECTED, False, True),
        (pytest.ExitCode.TESTS_FAILED, "stopping after 1 failures", True),  # and it is partial
        (pytest.ExitCode.INTERRUPTED, False, False),
        (pytest.ExitCode.INTERNAL_ERROR, False, False),
        (42, False, False),  # pytest.exit("enough", returncode=42)
    ],
)
def test_which_runs_are_finished(status, stop, ended):
    assert ran_to_its_end(SimpleNamespace(exitstatus=status, shouldfail=stop, shouldstop=False)) is ended
    assert ran_to_its_end(SimpleNamespace(exitstatus=status, shouldfail=False, shouldstop=stop)) is ended
