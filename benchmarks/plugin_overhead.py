"""What the plugin costs a test that has nothing to do with torch: milliseconds per test.

Run `python benchmarks/plugin_overhead.py`; the bar is 1 ms.  Printed are the fastest tenth and the median of many
tests, in processor time: on a busy machine the median says more about the neighbours.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator
from pathlib import Path

import pytest

TESTS = 600
OUTPUT = "PLUMBLINE_OVERHEAD_OUTPUT"
SETTINGS = {
    "plugin absent": ["-p", "no:plumbline"],
    "plugin off": [],
    "--compile-backends=eager": ["--compile-backends=eager"],
    "... --compile-boundary=call": ["--compile-backends=eager", "--compile-boundary=call"],
}
_seconds: list[float] = []


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol() -> Generator[None, object, object]:
    """Time one test with its set-up, tear-down and reports: processor time, as machines are busy.

    This file is itself the plugin of the timed runs.
    """
    started = time.process_time()
    result = yield
    _seconds.append(time.process_time() - started)
    return result


def pytest_unconfigure() -> None:
    """Hand the times to the process that compares them."""
    Path(os.environ[OUTPUT]).write_text(json.dumps(_seconds))


def milliseconds(directory: Path, options: list[str]) -> tuple[float, float]:
    """Return the time of a test in one pytest process: first decile and median."""
    output = directory / "seconds.json"
    own = ["-p", Path(__file__).stem, "-p", "no:randomly", "-p", "no:cacheprovider"]
    path = os.pathsep.join([str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": path, OUTPUT: str(output)}
    command = [sys.executable, "-m", "pytest", "-q", *own, *options]
    subprocess.run(command, cwd=directory, env=environment, check=True, stdout=subprocess.DEVNULL)
    seconds = json.loads(output.read_text())
    return statistics.quantiles(seconds, n=10)[0] * 1e3, statistics.median(seconds) * 1e3


def main() -> None:
    """Print milliseconds per test for each setting, and the difference to a run without the plugin."""
    with tempfile.TemporaryDirectory() as name:
        lines = ["limit = 10", "def double(x):", "    return 2 * x"]
        for number in range(TESTS):
            lines += [f"def test_{number}(tmp_path):", f"    assert double({number}) >= limit - 10"]
        (Path(name) / "test_plain.py").write_text("\n".join(lines))
        rounds = [{label: milliseconds(Path(name), options) for label, options in SETTINGS.items()} for _ in range(3)]
        best = {label: [min(times) for times in zip(*(r[label] for r in rounds), strict=True)] for label in SETTINGS}
        tenth_absent, median_absent = best["plugin absent"]
        print(f"{'':<28} fastest tenth (added)     median (added)")
        for label, (tenth, median) in best.items():
            added = f"({tenth - tenth_absent:+6.3f})   {median:6.3f} ms ({median - median_absent:+6.3f})"
            print(f"{label:<28} {tenth:6.3f} ms {added}")


if __name__ == "__main__":
    main()
