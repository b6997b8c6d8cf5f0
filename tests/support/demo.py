"""The demo: judge the examples under every backend of both compilers, then minimize a planted fault.

`./run demo` is `pytest --compile-backends=all examples/` with a report, for plumbline and stock torch.compile side by
side; one example is really wrong under stock, so pytest fails. Then `repro-minify` cuts a compiler made wrong on
purpose (examples/planted_fault.py) down to the operator that shows it. The demo succeeds when exactly the failures of
examples/expected-failures.txt come, with their verdicts, and the small script reproduces.
"""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
EXPECTED = ROOT / "examples" / "expected-failures.txt"
REPORT = "plumbline-report"
PLANTED = "examples/planted_fault.py"
SMALL_ENOUGH = 3  # operators left of the planted fault's graph


class FailureRecord:
    """A pytest plugin that writes down which tests fail, in which words, from pytest's own reports."""

    def __init__(self) -> None:
        self.failures: dict[str, str] = {}
        self.tests: set[str] = set()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.tests.add(report.nodeid)
        if report.failed:
            self.failures[report.nodeid] = report.longreprtext

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self.failures[report.nodeid] = report.longreprtext


def read_expected(text: str) -> dict[str, str]:
    """Return node id -> verdict from lines `node-id VERDICT`; # starts a comment."""
    lines = (line.strip() for line in text.splitlines())
    return dict(line.rsplit(maxsplit=1) for line in lines if line and not line.startswith("#"))


def differences(expected: dict[str, str], failures: dict[str, str]) -> list[str]:
    """Return what differs between the failures that must be and those that are, one sentence each."""
    missing = [f"{test} passed; it must fail with {expected[test]}" for test in expected if test not in failures]
    other = [f"{test} failed; it must pass" for test in failures if test not in expected]
    wrong = [
        f"{test} failed without the verdict {verdict}"
        for test, verdict in expected.items()
        if test in failures and verdict not in failures[test]
    ]
    return missing + other + wrong


def minify_planted() -> list[str]:
    """Make the planted fault small in a process of its own; returns what went wrong, in sentences."""
    script = f"{REPORT}/repro_planted_fault.py"
    command = [str(Path(sys.executable).with_name("repro-minify")), PLANTED, "--out", script]
    print(f"\nplumbline: repro-minify {PLANTED} --out {script}", flush=True)
    done = subprocess.run([*command, "--json"], stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode != 0:
        return [f"repro-minify ended with status {done.returncode}"]
    told = json.loads(done.stdout.strip().splitlines()[-1])
    print(f"plumbline: {told['sentence']}", flush=True)
    if not told["reproduces"] or told["ops"] > SMALL_ENOUGH:
        return [f"the planted fault came down to {told['ops']} operators, reproducing: {told['reproduces']}"]
    return []


def main() -> int:
    """Run the demo in the root of the tree; returns the exit status."""
    os.chdir(ROOT)
    record = FailureRecord()
    command = [
        "--compile-backends=all",
        "--compile-compilers=plumbline,torch",
        f"--compile-report={REPORT}",
        "examples/",
    ]
    print(f"plumbline: pytest {' '.join(command)}", flush=True)
    start = time.perf_counter()
    status = pytest.main(command, plugins=[record])
    seconds = time.perf_counter() - start
    problems_of_minify = minify_planted()
    expected = read_expected(EXPECTED.read_text(encoding="utf-8"))
    problems = differences(expected, record.failures) + problems_of_minify
    if status != pytest.ExitCode.TESTS_FAILED:
        problems.append(f"pytest ended with status {int(status)}; with a wrong example it ends with 1")
    if problems:
        print("\nplumbline: the demo did not go as it must:", *problems, sep="\n  ", file=sys.stderr)
        return 1
    print(
        f"\nplumbline: {len(record.tests)} tests judged in {seconds:.0f} s; the failure above is the one that must be:"
    )
    for test, verdict in expected.items():
        print(f"  {test}: stock torch.compile is {verdict.lower()} there, and the test's own assertions do not see it")
    print(f"plumbline: the whole account is in {REPORT}/index.html")
    return 0


if __name__ == "__main__":
    sys.exit(main())
