"""Every variant of a test starts from the same state and draws the same numbers."""

from pathlib import Path

import pytest

from support.plugin_runs import PluginRuns, outcomes

pytest_plugins = ["pytester"]


def test_fixtures_of_every_scope_are_as_new_for_each_variant(runs: PluginRuns) -> None:
    runs.write("""
import types
import torch

class Cache:
    def __init__(self):
        self.keys = torch.zeros(2)
        self.calls = 0

def make():
    return types.SimpleNamespace(net=torch.nn.BatchNorm1d(3), cache=Cache(), log=[], weight=torch.ones(2))

@pytest.fixture(scope="session")
def of_session():
    return make()

@pytest.fixture(scope="module")
def of_module(of_session):
    yield make()

@pytest.fixture(scope="class")
def of_class():
    return make()

@pytest.fixture
def of_test():
    return make()

def use(thing, compiled):
    assert thing.net.num_batches_tracked == 0 and thing.log == [] and thing.cache.calls == 0
    assert thing.cache.keys.sum() == 0 and thing.weight.grad is None
    thing.net(torch.randn(4, 3))
    thing.cache.keys += 1
    thing.cache.keys = torch.cat([thing.cache.keys, torch.ones(1)])
    thing.cache.calls += 1
    thing.log.append(1)
    thing.weight.requires_grad_().sum().backward()
    compiled(planned(lambda: 1))()

class TestAll:
    def test_it(self, of_session, of_module, of_class, of_test, compiled):
        for thing in (of_session, of_module, of_class, of_test):
            use(thing, compiled)

    def test_after(self, of_module, of_class):
        assert of_module.cache.calls == of_class.cache.calls == 1  # as it would be without us
""")
    assert outcomes(runs.run()) == {"passed": 3, "vacuous": 3}


def test_globals_classes_and_parameters_are_as_new_for_each_variant(runs: PluginRuns) -> None:
    runs.write("""
import torch

counter = 0
table = {}
tensor = torch.zeros(2)
shared = torch.ones(3)

def bump():
    global counter
    counter += 1

class TestIt:
    seen = 0
    names = []

    @pytest.mark.parametrize("value", [shared])
    def test_it(self, value, compiled):
        assert counter == 0 and not table and tensor.sum() == 0 and value.sum() == 3
        assert TestIt.seen == 0 and not self.names
        bump()
        table["a"] = 1
        tensor.add_(1)
        value.mul_(2)
        TestIt.seen += 1
        self.names.append(1)
        compiled(planned(lambda: 1))()
""")
    assert outcomes(runs.run()) == {"passed": 3}


def test_function_fixtures_that_touch_wider_ones_find_them_as_new(runs: PluginRuns) -> None:
    runs.write("""
@pytest.fixture(scope="module")
def log():
    return []

@pytest.fixture
def entry(log):
    log.append("set up")
    yield
    log.append("torn down")

def test_it(entry, log, compiled):
    assert log == ["set up"]
    compiled(planned(lambda: 1))()

def test_after(log, compiled):
    assert log == ["set up", "torn down"]
    compiled(planned(lambda: 1))()
""")
    assert outcomes(runs.run()) == {"passed": 6}


def test_wide_fixtures_asked_for_at_run_time_are_rewound_too(runs: PluginRuns) -> None:
    runs.write("""
@pytest.fixture(scope="module")
def log():
    return []

@pytest.fixture
def asks(request):
    return request.getfixturevalue("log")

def test_it(asks, compiled):
    assert asks == []
    asks.append(1)
    compiled(planned(lambda: 1))()
""")
    assert outcomes(runs.run()) == {"passed": 3}


def test_a_re_run_for_the_stage_starts_from_the_same_state(runs: PluginRuns) -> None:
    runs.write("""
import torch
seen = []

@pytest.fixture
def log():
    return []

def test_it(log, compiled):
    draws = torch.rand(3).tolist()
    with open("seen", "a") as file:
        print(len(log), draws, file=file)
    log.append(1)
    compiled(planned(lambda: 1, aot_eager="WRONG", inductor="WRONG"))()
""")
    runs.run(backends="inductor")
    lines = Path("seen").read_text().splitlines()
    assert len(lines) == 3
    assert len(set(lines)) == 1


def test_what_a_wrong_call_left_behind_does_not_reach_the_next_test(runs: PluginRuns) -> None:
    runs.write("""
@pytest.fixture(scope="module")
def log():
    return []

def test_wrong(log, compiled):
    log.append("garbage")
    compiled(planned(lambda: 1, eager="WRONG"))()

def test_next(log, compiled):
    assert log == []
    compiled(planned(lambda: 1))()
""")
    assert outcomes(runs.run(backends="eager")) == {"failed": 1, "passed": 1}


DRAWS = """
import random
import numpy
import torch

def draw():
    return [random.random(), float(numpy.random.rand()), float(torch.rand(()))]

@pytest.fixture(scope="session")
def of_session():
    return draw()

@pytest.fixture(scope="module")
def of_module(of_session):
    return draw()

@pytest.fixture
def of_test():
    return draw()

@pytest.fixture
def late(request):
    return request.getfixturevalue("of_module"), draw()

def note(request, *values):
    name, variant = request.node.name.rstrip("]").split("[")
    with open("draws", "a") as file:
        print(name, values, file=file)

def test_a(of_test, of_module, request):
    note(request, of_test, of_module, draw())

def test_b(late, request):
    note(request, late, draw())

def test_c(request):
    note(request, draw())
"""


@pytest.mark.parametrize("extra", [(), ("--randomly-seed=3",)], ids=["plain", "randomly"])
def test_all_variants_draw_the_same_numbers(runs: PluginRuns, extra: tuple[str, ...]) -> None:
    runs.write(DRAWS)
    runs.run(*extra, quiet=not extra)
    lines = Path("draws").read_text().splitlines()
    assert len(lines) == 9
    assert len(set(lines)) == 3
    Path("draws").unlink()
    runs.run("-k", "test_b", *extra, quiet=not extra)  # alone, and so with other fixtures set up by it
    assert set(Path("draws").read_text().splitlines()) < set(lines)


def test_unittest_class_state_is_rewound(runs: PluginRuns) -> None:
    runs.write("""
import unittest
import torch

class TestCase(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.net = torch.nn.BatchNorm1d(3)
        cls.log = []

    def setUp(self):
        self.log.append("set up")

    def test_it(self):
        self.assertEqual(self.log, ["set up"])
        self.assertEqual(int(self.net.num_batches_tracked), 0)
        self.net(torch.randn(4, 3))
""")
    assert outcomes(runs.run()) == {"vacuous": 3}


def test_a_seed_that_a_test_sets_in_its_set_up_holds(runs: PluginRuns) -> None:
    runs.write("""
import random, unittest

FIRST = random.Random(42).random()

@pytest.fixture
def seeded():
    random.seed(42)

def test_fixture(seeded, compiled):
    assert compiled(planned(lambda: 1))() == 1
    assert random.random() == FIRST

class TestCase(unittest.TestCase):
    def setUp(self):
        random.seed(42)

    def test_case(self):
        self.assertEqual(random.random(), FIRST)
""")
    result = runs.run()
    assert outcomes(result) == {"passed": 3, "vacuous": 3}
