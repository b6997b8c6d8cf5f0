"""What a judged session costs: its start, and the examples under three backends against three naive runs.

    python benchmarks/judged_session.py [--part start,examples] [--compiler plumbline|torch] [--repeat 3]

start: CPU seconds of `pytest --compile-backends=eager` on an empty test beyond those of plain pytest, against a process
that imports torch and our compiler and compiles a function; the bar is 1.5.
examples: CPU seconds (with C compilers) of each test in examples/ judged under three backends, against the same test
run three times with its calls compiled by each backend and nothing compared; the bar is 1.6.  Every run has caches of
its own, so both sides compile everything.
"""

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

OUTPUT, NAIVE = "PLUMBLINE_SESSION_OUTPUT", "PLUMBLINE_SESSION_NAIVE"
COMPILES = "import torch, plumbline\nplumbline.compile(lambda x: x, backend='eager')"
EXAMPLES = Path(__file__).parent.parent / "examples"
_seconds: dict[str, float] = {}


def _cpu() -> float:
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)


# -- as the plugin of the timed runs -----------------------------------------------------------------------------------


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Note the CPU time of one test with its set-up, tear-down and reports; this file is the timed runs' plugin."""
    started = _cpu()
    result = yield
    _seconds[item.nodeid] = _cpu() - started
    return result


def pytest_sessionstart() -> None:
    """Where a naive run is timed, let judged calls run compiled and compare nothing."""
    if os.environ.get(NAIVE):
        from plumbline.oracle.harness.boundary import Boundary, call_roots  # torch is for the timed processes only
        from plumbline.pytest_plugin.judged_run import ItemRuns

        def unjudged(boundary: Boundary, args: Any, kwargs: Any) -> None:
            if not boundary.calls:  # compiled is what the author wrote, not what pytest and the plugin made of it
                boundary.reach(call_roots(boundary.target, boundary.label, args, kwargs))
            boundary.calls += 1

        def run_once(runs: ItemRuns, item: Any, progress: Any, first: Any) -> None:
            del runs, item, progress, first

        Boundary.call = unjudged  # type: ignore[method-assign,assignment]  # what the comparison is about
        ItemRuns._judge_what_was_learned = run_once  # type: ignore[method-assign,assignment]  # a body that judges nothing runs twice


def pytest_unconfigure() -> None:
    """Hand the times to the process that compares them."""
    if OUTPUT in os.environ:
        Path(os.environ[OUTPUT]).write_text(json.dumps(_seconds))


# -- as the command ----------------------------------------------------------------------------------------------------


def _spent(command: list[str], **keywords: Any) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, *command], stdout=subprocess.DEVNULL, check=True, **keywords)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def start(compiler: str, repeat: int) -> None:
    """Print what the start of a session costs beside importing torch and our compiler."""
    with tempfile.TemporaryDirectory() as name:
        (Path(name) / "test_empty.py").write_text("def test_nothing():\n    pass\n")
        plain = ["-m", "pytest", "-q", "-p", "no:cacheprovider"]
        commands = {
            "imports": ["-c", COMPILES],
            "plain": plain,
            "judged": [*plain, "--compile-backends=eager", f"--compile-compilers={compiler}"],
        }
        rounds = [{label: _spent(command, cwd=name) for label, command in commands.items()} for _ in range(repeat)]
    median = {label: statistics.median(each[label] for each in rounds) for label in commands}
    added = median["judged"] - median["plain"]
    print(f"start: {added:.2f} s beyond pytest, imports {median['imports']:.2f} s: {added / median['imports']:.2f}x")


def _times(compiler: str, *, naive: bool) -> dict[str, float]:
    """Return the CPU seconds of each example under three backends together."""
    with tempfile.TemporaryDirectory() as name:
        output = Path(name) / "seconds.json"
        path = os.pathsep.join([str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")])
        caches = dict.fromkeys(("XDG_CACHE_HOME", "TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR"), name)
        environment = {**os.environ, **caches, "PYTHONPATH": path, "OMP_NUM_THREADS": "1", OUTPUT: str(output)}
        if naive:
            environment[NAIVE] = "yes"
        chosen = ["--compile-backends=all", f"--compile-compilers={compiler}", f"--compile-db={name}/results.sqlite"]
        command = ["-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", Path(__file__).stem, *chosen, str(EXAMPLES)]
        subprocess.run([sys.executable, *command], env=environment, check=False, stdout=subprocess.DEVNULL)
        found: dict[str, float] = defaultdict(float)
        for test, seconds in json.loads(output.read_text()).items():
            found[test.partition("[")[0]] += seconds
        return found


def examples(compiler: str, repeat: int) -> None:
    """Print what judging the examples costs beside naive runs, test by test and in all."""
    rounds = [[_times(compiler, naive=naive) for naive in (True, False)] for _ in range(repeat)]
    tests = sorted(rounds[0][0])
    naive, judged = (
        {test: statistics.median(each[side][test] for each in rounds) for test in tests} for side in (0, 1)
    )
    ratios = {test: judged[test] / naive[test] for test in tests}
    for test in tests:
        print(f"{test:<60} {naive[test]:6.2f} s {judged[test]:6.2f} s {ratios[test]:5.2f}x")
    whole, worst = sum(judged.values()) / sum(naive.values()), max(ratios.values())
    print(f"examples: {whole:.2f}x in all, median {statistics.median(ratios.values()):.2f}, worst {worst:.2f}")


def main() -> None:
    """Measure the chosen parts."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--part", default="start,examples", help="start, examples, or both")
    parser.add_argument("--compiler", default="plumbline", choices=("plumbline", "torch"))
    parser.add_argument("--repeat", type=int, default=3)
    options = parser.parse_args()
    for part in options.part.split(","):
        {"start": start, "examples": examples}[part](options.compiler, options.repeat)


if __name__ == "__main__":
    main()
