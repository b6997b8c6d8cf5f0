"""A run whose process died lost the rows of the tests that had finished."""

from plumbline.reports.store import open_store

pytest_plugins = ["pytester"]
JUDGED = """
import torch, plumbline
def test_first():
    assert torch.compile(lambda x: x + 1)(torch.ones(3)).sum() == 6
"""
OPTIONS = ("-p", "no:cacheprovider", "--compile-backends=eager", "--compile-db=results.sqlite")


def last_run(pytester):
    with open_store(str(pytester.path / "results.sqlite")) as store:
        run = store.run()
        return run, store.cases(run.run_id)


def test_a_crash_loses_no_finished_row(pytester):
    pytester.makepyfile(JUDGED + "def test_second():\n    import os\n    os.abort()\n")
    pytester.runpytest_subprocess(*OPTIONS)
    run, cases = last_run(pytester)
    assert not run.finished
    assert cases
