"""A run with planted faults: which tests notice them, on what state, and how the run ends."""

import pytest

from support.plugin_runs import PluginRuns, outcomes

pytest_plugins = ["pytester"]
SUITE = """
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("calls", torch.zeros(()))
    def forward(self, x):
        self.calls += 1
        return x.tanh()

@pytest.fixture(scope="module")
def net():
    return Net()

def test_shape(net):
    assert net(torch.ones(2)).shape == (2,)

def test_values(net, tmp_path):
    torch.testing.assert_close(net(torch.ones(2)), torch.ones(2).tanh())
    (tmp_path / "written").mkdir()
    (tmp_path / "written").rmdir()

def test_calls(net):
    before = net.calls.item()
    net(torch.ones(2))
    assert net.calls == before + 1 == 3

def test_of_nothing():
    pass

def test_that_fails(net):
    net(torch.ones(2))
    assert False
"""


def mutated(runs: PluginRuns, *more: str) -> pytest.RunResult:
    runs.write(SUITE)
    return runs.run("--compile-compilers=plumbline", *more, backends="eager")


@pytest.fixture
def runs(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> PluginRuns:
    return PluginRuns(pytester, monkeypatch, fake=False)


def test_tests_that_pass_are_run_with_each_fault(runs: PluginRuns) -> None:
    result = mutated(runs, "--compile-mutate=scale,write,integer")
    assert outcomes(result) == {"passed": 3, "failed": 1, "vacuous": 1}
    result.stdout.fnmatch_lines(
        [
            "*= planted faults =*",
            "scale * 3 * 1",
            "write * 3 * 1",
            "mutation score: 2 of 2 faults were noticed by some test",
            "2 of 6 runs with a fault failed; *",
            "1 faults changed nothing in these tests: integer",
            "tests that noticed no fault:",
            "  test_it.py::test_shape",
        ]
    )


def test_too_low_a_score_fails_the_run(runs: PluginRuns) -> None:
    chosen = ("--compile-mutate=scale,dtype,strides", "-k", "shape")
    assert mutated(runs, *chosen).ret == pytest.ExitCode.OK
    assert mutated(runs, *chosen, "--compile-mutate-score=0.5").ret == pytest.ExitCode.TESTS_FAILED


def test_a_suite_that_compiles_nothing_has_no_score(runs: PluginRuns) -> None:
    chosen = ("--compile-mutate=scale,dtype", "-k", "of_nothing")
    result = mutated(runs, *chosen)
    result.stdout.fnmatch_lines(
        ["*= planted faults =*", "no fault was planted: no test that passes runs compiled code"]
    )
    assert result.ret == pytest.ExitCode.OK
    assert mutated(runs, *chosen, "--compile-mutate-score=0.5").ret == pytest.ExitCode.TESTS_FAILED
    nothing_changed = ("--compile-mutate=integer", "-k", "shape", "--compile-mutate-score=0.5")
    assert mutated(runs, *nothing_changed).ret == pytest.ExitCode.TESTS_FAILED


def test_unknown_faults_and_shares_are_one_line(runs: PluginRuns) -> None:
    result = mutated(runs, "--compile-mutate=scael")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*unknown fault 'scael'*did you mean 'scale'?*"])
    mutated(runs, "--compile-mutate-score=2").stderr.fnmatch_lines(["*--compile-mutate-score*not a fraction*"])
