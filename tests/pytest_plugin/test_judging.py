"""The contract with the real judge, under stock `eager` and `aot_eager`."""

from pathlib import Path

import pytest

from plumbline.reports.store import open_store
from support.plugin_runs import PluginRuns, outcomes

pytest_plugins = ["pytester"]


@pytest.fixture
def real(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> PluginRuns:
    return PluginRuns(pytester, monkeypatch, fake=False)


# True where stock traces: a fault that every backend of it inherits, and no question that a program may ask.
TRACED = """
import sys
import torch

@torch.compiler.assume_constant_result
def traced():
    frame = sys._getframe()
    while frame is not None and not frame.f_code.co_filename.endswith("symbolic_convert.py"):
        frame = frame.f_back
    return frame is not None
"""

FAULTY = (
    TRACED
    + """

class Faulty(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(4))

    def forward(self, x):
        if traced():
            return x * self.weight + 1
        return x * self.weight

class Right(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(4))

    def forward(self, x):
        return (x * self.weight).relu()
"""
)


def test_ordinary_tests_pass_and_wrong_ones_fail_at_the_users_line(real: PluginRuns) -> None:
    real.write(
        FAULTY
        + """
def test_right():
    assert Right()(torch.randn(2, 4)).shape == (2, 4)

def test_wrong():
    assert Faulty()(torch.randn(2, 4)).shape == (2, 4)
"""
    )
    result = real.run(backends="eager,aot_eager")
    assert outcomes(result) == {"passed": 2, "failed": 2}
    result.stdout.fnmatch_lines(
        [
            "E   WRONG at eager: output*",
            "*boundary Faulty, call 1",
            "*stage    first wrong at eager (the first of the ladder)",
            "*>   37     assert Faulty()(torch.randn(2, 4)).shape == (2, 4)",
            "E   WRONG at aot_eager (first wrong at eager): output*",
        ]
    )


def test_raises_xfail_and_except_do_not_hide_a_wrong_call(real: PluginRuns) -> None:
    real.write(
        FAULTY
        + """
def test_raises():
    with pytest.raises(AssertionError):
        assert Faulty()(torch.zeros(4)).sum() != 0 and False

@pytest.mark.xfail
def test_xfail():
    assert Faulty()(torch.zeros(4)).sum() == 0

def test_except():
    try:
        Faulty()(torch.zeros(4))
    except Exception:
        pass

@pytest.mark.compile_xfail("planted")
def test_expected():
    Faulty()(torch.zeros(4))
"""
    )
    assert outcomes(real.run(backends="eager")) == {"failed": 3, "xfailed": 1}


STATE = """
import copy
import random
import numpy
import torch
from torch import nn

class Cached(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.BatchNorm1d(4)
        self.register_buffer("cache", torch.zeros(2, 4))
        self.calls = 0
        self.history = []

    def forward(self, x, position):
        self.calls += 1
        self.history.append(position)
        y = self.norm(x)
        self.cache[position] = y[0].detach()
        return y + self.cache.sum()

@pytest.fixture(scope="module")
def net():
    return Cached()

def test_state_is_that_of_one_call(net):
    net(torch.randn(3, 4), 0)
    net(torch.randn(3, 4), 1)
    assert net.calls == 2 and net.history == [0, 1]
    assert int(net.norm.num_batches_tracked) == 2
    assert bool((net.cache != 0).any(1).all())

def test_hooks_run_once_per_call():
    net, seen = nn.Linear(4, 4), []
    handle = net.register_forward_hook(lambda module, args, output: seen.append(1))
    net(torch.randn(2, 4))
    assert seen == [1]
    handle.remove()

def test_modes_hold():
    net = nn.Linear(4, 4)
    with torch.no_grad():
        assert not net(torch.randn(2, 4)).requires_grad
    with torch.inference_mode():
        assert net(torch.randn(2, 4)).is_inference()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert net(torch.randn(2, 4)).dtype is torch.bfloat16

def train(net, steps):
    optimizer = torch.optim.Adam(net.parameters(), lr=0.1)
    for _ in range(steps):
        optimizer.zero_grad()
        net(torch.ones(2, 4)).pow(2).sum().backward()
        optimizer.step()
    return [parameter.detach().clone() for parameter in net.parameters()]

def test_the_users_backward_and_optimizer_are_their_own():
    net = nn.Linear(4, 4)
    twin = copy.deepcopy(net)
    twin.__class__ = type("Twin", (nn.Linear,), {"__call__": nn.Linear.forward})  # no module call: not judged
    for mine, plain in zip(train(net, 5), train(twin, 5)):
        torch.testing.assert_close(mine, plain)
    assert net.weight.grad is not None

def test_generators_end_where_one_call_leaves_them():
    net = nn.Dropout(0.5)
    before = torch.get_rng_state()
    y = net(torch.ones(100))
    after = torch.get_rng_state()
    torch.set_rng_state(before)
    assert torch.equal(torch.nn.functional.dropout(torch.ones(100), 0.5), y)
    assert torch.equal(torch.get_rng_state(), after)

def test_loops_are_judged_now_and_then():
    net = nn.Linear(4, 4)
    for _ in range(20):
        net(torch.randn(2, 4))

def test_exceptions_pass_through():
    class Refuses(nn.Module):
        def forward(self, x):
            raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        Refuses()(torch.ones(1))
    nn.ReLU()(torch.ones(1))
"""


@pytest.mark.parametrize("compiler", ["torch", "plumbline"])
def test_a_suite_with_state_hooks_modes_and_training_passes(real: PluginRuns, compiler: str) -> None:
    real.write(STATE)
    chosen = f"--compile-compilers={compiler}"
    result = real.run("-rA", "--compile-report=page", chosen, backends="eager,aot_eager")
    assert outcomes(result) == {"passed": 14}
    assert f"{compiler}:aot_eager" in Path("page/index.html").read_text()


def test_module_level_torch_compile_is_a_boundary_and_keeps_working_outside(real: PluginRuns) -> None:
    real.pytester.makeconftest(
        TRACED
        + """
@torch.compile(backend="eager")
def from_conftest(x):
    return x + (1 if traced() else 2)

EARLY = from_conftest(torch.zeros(1)).item()  # outside a test it behaves as stock

import pytest

@pytest.fixture
def late():
    return from_conftest, EARLY
"""
    )
    real.write("""
import torch

def test_it(late):
    compiled, early = late
    assert early == 1.0
    compiled(torch.zeros(1))
""")
    result = real.run(backends="aot_eager")
    assert outcomes(result) == {"failed": 1}
    result.stdout.fnmatch_lines(["E   WRONG at aot_eager*"])


def test_call_boundary_targets_and_fixture(real: PluginRuns) -> None:
    real.pytester.makepyfile(
        mylib=TRACED
        + """
def wrong(x):
    return x + (1 if traced() else 2)

def right(x):
    return x * 2
"""
    )
    real.pytester.syspathinsert()
    real.write("""
import torch
import mylib

def test_wrong():
    mylib.wrong(torch.ones(2))

def test_right():
    assert mylib.right(torch.ones(2)).sum() == 4

def test_fixture(compiled):
    assert compiled(lambda x: x + 1)(torch.ones(2)).sum() == 4
""")
    assert outcomes(real.run("--compile-boundary=call", backends="eager")) == {"passed": 2, "failed": 1}
    assert outcomes(real.run("--compile-boundary=explicit", backends="eager")) == {"passed": 1, "vacuous": 2}
    targets = ("--compile-boundary=explicit", "--compile-target=mylib.wrong", "--compile-target=mylib:right")
    assert outcomes(real.run(*targets, backends="eager")) == {"passed": 2, "failed": 1}


def test_a_tolerance_below_rounding_noise_is_sensitive(real: PluginRuns) -> None:
    real.write(
        TRACED
        + """
class Sum(torch.nn.Module):
    def forward(self, x):
        if traced():  # the same sum in another order
            return x.view(100, 100).sum(1).sum()
        return x.sum()

def test_it():
    x = torch.randn(10000)
    assert Sum()(x).item() == x.sum().item()
"""
    )
    result = real.run(backends="eager")
    result.stdout.fnmatch_lines(["FAILED * - SENSITIVE at eager: *"])


def test_warnings_as_errors_and_randomly(real: PluginRuns) -> None:
    real.write(
        FAULTY
        + """
def test_right():
    assert Right()(torch.randn(2, 4)).shape == (2, 4)
"""
    )
    assert outcomes(real.run("-W", "error", backends="eager,aot_eager")) == {"passed": 2}
    result = real.run("--randomly-seed=7", "-p", "no:hypothesispytest", backends="eager,aot_eager", quiet=False)
    assert outcomes(result) == {"passed": 2}


def test_xdist_equals_serial_row_by_row(real: PluginRuns) -> None:
    from plumbline.reports.store import open_store

    real.write(
        FAULTY
        + """
@pytest.mark.parametrize("size", [2, 3])
def test_right(size):
    assert Right()(torch.randn(size, 4)).shape == (size, 4)

def test_wrong():
    assert Faulty()(torch.randn(2, 4)).shape == (2, 4)

def test_nothing():
    pass
"""
    )

    def rows(*args: str) -> list[tuple[object, ...]]:
        real.run("--compile-db=rows.sqlite", *args, backends="eager,aot_eager")
        with open_store("rows.sqlite") as store:
            cases = store.cases(store.run().run_id)
        assert any(case.peak_bytes > 0 for case in cases)
        names = ("test", "backend", "outcome", "verdict", "stage", "sentence", "margin", "user_line", "graphs", "ops")
        return sorted(tuple(str(getattr(case, name)) for name in names) for case in cases)

    serial = rows()
    assert len(serial) == 8
    assert rows("-n1") == serial


@pytest.mark.slow
@pytest.mark.cc
def test_the_whole_ladder_with_inductor(real: PluginRuns) -> None:
    real.write(
        FAULTY
        + """
def test_right():
    net = Right()
    net(torch.randn(2, 4)).sum().backward()
    assert net.weight.grad is not None

def test_wrong():
    Faulty()(torch.randn(2, 4))
"""
    )
    result = real.run()
    assert outcomes(result) == {"passed": 3, "failed": 3}
    result.stdout.fnmatch_lines(["E   WRONG at inductor (first wrong at eager)*"])


def test_a_program_that_both_refuse_is_not_vacuous(real: PluginRuns) -> None:
    real.write("""
import torch

def test_it():
    with pytest.raises(RuntimeError):
        torch.compile(lambda x, y: x @ y)(torch.ones(2, 3).half(), torch.ones(3, 2))
""")
    result = real.run("-rA", backends="eager")
    assert outcomes(result) == {"passed": 1}
    result.stdout.fnmatch_lines(["*EQUAL*"])  # eager raises what the compiled code raises


@pytest.mark.cc
def test_what_the_compiler_did_reaches_the_rows_and_the_page(real: PluginRuns) -> None:
    real.write("""
import torch

def program(x):
    print(end="")
    return (x.sin() + 1).relu() * x.shape[0]

def test_it():
    compiled = torch.compile(program, dynamic=False)
    compiled(torch.ones(3))
    compiled(torch.ones(4))
""")
    chosen = ("--compile-compilers=plumbline", "--compile-report=page")
    assert outcomes(real.run(*chosen, backends="inductor")) == {"passed": 1}
    store = open_store(".plumbline/results.sqlite", write=False)
    (run,) = store.runs()
    (case,) = store.cases(run.run_id)
    store.close()
    kinds = {str(event["kind"]) for event in case.events}
    assert {"graph_break", "recompile", "stage", "kernel"} <= kinds, case.events
    broken = next(event for event in case.events if event["kind"] == "graph_break")
    assert str(broken["where"]).endswith("test_it.py:7"), broken  # the print
