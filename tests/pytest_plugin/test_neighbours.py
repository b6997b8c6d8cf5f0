"""Other plugins beside ours: each does what it does without the judge, and the judge does what it does without it.

The plugins are in the dev extra; a test whose plugin is not installed is skipped, and says so.
"""

from importlib import util

import pytest

from support.plugin_runs import PluginRuns, outcomes

pytest_plugins = ["pytester"]


def beside(module: str) -> tuple[str, ...]:
    """Return the options that load a plugin into an inner run; skips where it is not installed."""
    if util.find_spec(module.partition(".")[0]) is None:
        pytest.skip(f"{module} is not installed: it is in the dev extra")
    return ("-p", module)


@pytest.fixture
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Inner runs load the plugins that they are told to load, whatever is installed."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.delenv("PYTEST_XDIST_WORKER", raising=False)  # of the outer run: an inner one has no workers


OURS = ("-p", "plumbline.pytest_plugin.plugin", "-W", "ignore::pytest.PytestAssertRewriteWarning")


def run(runs: PluginRuns, *args: str, backends: str = "eager") -> pytest.RunResult:
    options = (*OURS, f"--compile-backends={backends}", "-p", "no:cacheprovider")
    return runs.pytester.runpytest_inprocess(*options, *args)


@pytest.mark.usefixtures("alone")
def test_rerunfailures_runs_a_failure_again_and_one_verdict_counts(runs: PluginRuns) -> None:
    runs.write("""
tries = []

def test_flaky(compiled):
    tries.append(1)
    assert compiled(planned(lambda: 1))() == 1
    assert len(tries) % 2 == 0

def test_wrong(compiled):
    compiled(planned(lambda: 1, eager="WRONG"))()
""")
    result = run(runs, *beside("pytest_rerunfailures"), "--reruns=1")
    assert outcomes(result) == {"passed": 1, "failed": 1, "rerun": 2}
    result.stdout.fnmatch_lines(["*EQUAL*WRONG*", "torch:eager*1*1"])


@pytest.mark.usefixtures("alone")
def test_timeout_ends_a_test_and_the_next_one_is_judged(runs: PluginRuns) -> None:
    runs.write("""
import time

@pytest.mark.timeout(0.2)
def test_slow(compiled):
    compiled(planned(lambda: time.sleep(30)))()

def test_next(compiled):
    compiled(planned(lambda: 1, eager="WRONG"))()
""")
    result = run(runs, *beside("pytest_timeout"), "-o", "timeout_method=signal")
    assert outcomes(result) == {"failed": 2}
    result.stdout.fnmatch_lines(["*Failed: Timeout*", "*WRONG at eager*"])


@pytest.mark.usefixtures("alone")
def test_asyncio_runs_coroutines_and_the_others_are_judged(runs: PluginRuns) -> None:
    runs.write("""
import asyncio

@pytest.mark.asyncio
async def test_coroutine():
    await asyncio.sleep(0)

def test_judged(compiled):
    compiled(planned(lambda: 1))()
""")
    result = run(
        runs,
        *beside("pytest_asyncio.plugin"),
        "-o",
        "asyncio_mode=strict",
        "-o",
        "asyncio_default_fixture_loop_scope=function",
        backends="all",
    )
    assert outcomes(result) == {"passed": 4}


@pytest.mark.usefixtures("alone")
def test_mock_replaces_what_a_judged_call_reads_and_puts_it_back(runs: PluginRuns) -> None:
    runs.write("""
import math

def test_patched(compiled, mocker):
    assert math.pi != 3
    mocker.patch("math.pi", 3)
    spy = mocker.spy(math, "floor")
    assert compiled(planned(lambda: math.floor(math.pi), value=3))() == 3
    assert spy.call_count <= 1
    return None

def test_after():
    assert math.pi != 3
""")
    result = run(runs, *beside("pytest_mock"), backends="all")
    assert outcomes(result) == {"passed": 3, "vacuous": 3}


@pytest.mark.usefixtures("alone")
def test_benchmark_measures_each_variant_under_its_own_name(runs: PluginRuns) -> None:
    runs.write("""
def test_fast(compiled, benchmark):
    assert benchmark.pedantic(compiled(planned(lambda: 1)), rounds=2) == 1
""")
    result = run(runs, *beside("pytest_benchmark.plugin"), backends="eager,aot_eager")
    assert outcomes(result) == {"passed": 2}
    result.stdout.fnmatch_lines_random(["test_fast?torch:eager?*", "test_fast?torch:aot_eager?*"])


@pytest.mark.usefixtures("alone")
def test_subtests_are_reported_once_each(runs: PluginRuns) -> None:
    if not hasattr(pytest, "Subtests"):
        pytest.skip("subtests came with pytest 9")
    runs.write("""
def test_some(compiled, subtests):
    for number in range(3):
        with subtests.test(number=number):
            assert compiled(planned(lambda: number, value=number))() != 1
""")
    result = run(runs, backends="eager,aot_eager")
    assert outcomes(result) == {"failed": 2, "passed": 6}  # under each backend two sub-tests and the test pass
    result.stdout.fnmatch_lines(["SUBFAILED(number=1) *test_some?torch:eager?*", "SUBFAILED(number=1) *aot_eager?*"])


@pytest.mark.usefixtures("alone")
def test_cov_counts_the_lines_that_a_judged_call_runs(pytester: pytest.Pytester, monkeypatch) -> None:
    options = beside("pytest_cov")
    pytester.makepyfile(
        mylib_covered="def double(x):\n    y = x * 2\n    return y\n",
        test_it="import torch, mylib_covered\n\ndef test_it():\n    assert mylib_covered.double(torch.ones(1)) == 2\n",
    )
    pytester.syspathinsert()
    chosen = ("--compile-backends=eager", "--compile-compilers=plumbline", "-p", "no:cacheprovider")
    result = pytester.runpytest_inprocess(*OURS, *chosen, *options, "--cov=mylib_covered", "--cov-report=term")
    assert outcomes(result) == {"passed": 1}
    result.stdout.fnmatch_lines(["plumbline:eager*1", "mylib_covered.py*3*0*100%"])
