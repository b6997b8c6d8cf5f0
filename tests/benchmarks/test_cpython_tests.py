"""The command that runs CPython's own tests compiled: it tells tests that end otherwise, and knows the listed ones."""

import subprocess
import sys
import unittest
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest

FILE = Path(__file__).parents[2] / "benchmarks" / "cpython_tests.py"


def the_benchmark():
    spec = spec_from_file_location("cpython_tests", FILE)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Ending(unittest.TestCase):
    def passes(self):
        assert [1, 2][::-1] == [2, 1]

    def fails(self):
        assert len([1]) == 2

    def skips(self):
        self.skipTest("for a reason")

    def subtests(self):
        with self.subTest(number=3):
            assert len([3]) == 4


@pytest.mark.parametrize(
    ("name", "ends"), [("passes", "passed"), ("fails", "failed"), ("skips", "skipped"), ("subtests", "failed")]
)
def test_both_ways_end_alike(name, ends):
    benchmark = the_benchmark()
    for compiled in (False, True):
        assert benchmark.outcome(Ending(name), compiled).partition(":")[0] == ends


def test_a_child_that_dies_is_told():
    benchmark = the_benchmark()
    assert benchmark.in_a_fork(lambda: "text") == "text"
    assert benchmark.in_a_fork(lambda: "") == "died"


def test_each_listed_test_has_one_reason():
    groups = the_benchmark().tomllib.loads(the_benchmark().KNOWN.read_text())["group"]
    tests = [test for group in groups for test in group["tests"]]
    assert len(tests) == len(set(tests))
    assert all(group["reason"] for group in groups)


def test_the_command_runs_a_module():
    if subprocess.run([sys.executable, "-c", "import test.test_unpack"], capture_output=True, check=False).returncode:
        pytest.skip("this Python was installed without its tests")
    command = [sys.executable, str(FILE), "test_slice", "--only", "test_cmp"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.splitlines()[-1]) == (
        0,
        "1 tests, 0 differ and are not listed, 0 differ for a known reason",
    ), done.stdout + done.stderr
