"""The `call` boundary: calls from test files into the library under test are judged, and nothing else changes."""

import pytest

from support.plugin_runs import PluginRuns, outcomes

pytest_plugins = ["pytester"]

LIBRARY = """
import contextlib
import functools
import torch

def scale(x, by=2):
    return inner(x) * by

def inner(x):
    return x + 1

def build(size):
    return Thing(size)

class Thing:
    def __init__(self, size):
        self.weight = torch.ones(size)

    def apply(self, x):
        return self.weight * x

    def __call__(self, x):
        return self.apply(x)

    @staticmethod
    def static(x):
        return x

    @classmethod
    def made(cls, x):
        return cls(3)

@contextlib.contextmanager
def context(x):
    yield x

def items(x):
    yield from x

@functools.lru_cache
def cached(x):
    return x

twice = functools.partial(scale, by=4)
"""


@pytest.fixture
def library(runs: PluginRuns) -> PluginRuns:
    runs.pytester.makepyfile(mylib=LIBRARY)
    runs.pytester.syspathinsert()
    return runs


def judged(runs: PluginRuns) -> list[str]:
    return [call.boundary for call in runs.sessions[-1].calls]


def run(runs: PluginRuns, body: str, *args: str) -> pytest.RunResult:
    runs.write(f"import torch\nimport mylib\nfrom mylib import scale\n{body}")
    return runs.run("--compile-boundary=call", *args, backends="eager")


def test_the_first_callee_outside_the_test_file_is_judged(library: PluginRuns) -> None:
    result = run(
        library,
        """
def helper(x):
    return scale(x)

def test_it():
    x = torch.ones(3)
    thing = mylib.build(3)          # no tensor: builds a thing
    assert mylib.scale(x, by=3).sum() == 18
    assert helper(x).sum() == 12
    assert thing(x).sum() == thing.apply(x).sum() == 3
    assert [mylib.inner(y) for y in x] and mylib.twice(x) is not None
    assert mylib.Thing.static(x) is x
    with mylib.context(x) as y:
        assert y is x
    assert list(mylib.items([x])) == [x]
    assert torch.relu(x).sum() == 3 and len(x) == 3
""",
    )
    assert outcomes(result) == {"passed": 1}
    assert judged(library) == ["scale", "scale", "Thing", "apply", "inner", "inner", "inner", "partial", "static"]
    lines = [call.user_line for call in library.sessions[-1].calls]
    assert lines[:2] == [13, 8]


def test_functions_that_look_around_see_the_users_frame(library: PluginRuns) -> None:
    result = run(
        library,
        """
import sys

class Base:
    def value(self, x):
        return mylib.scale(x)

class Derived(Base):
    def value(self, x):
        local = 1
        names = sorted(name for name in locals() if name[0] != "@")  # pytest has some of its own
        assert names == ["__class__", "local", "self", "x"] and "names" in vars()
        assert sys._getframe().f_code.co_name == "value"
        assert eval("local") == 1
        return super().value(x)

@pytest.fixture
def made():
    return mylib.scale(torch.ones(1))

class TestIt:
    def test_it(self, made):
        assert Derived().value(torch.ones(2)).sum() == 8

        def nested(y):
            nonlocal made
            made = mylib.scale(y)
            return [mylib.inner(made) for _ in range(2)]

        assert len(nested(torch.ones(1))) == 2
        assert (lambda y: mylib.inner(y))(made).sum() == 5
""",
    )
    assert outcomes(result) == {"passed": 1}
    assert judged(library) == ["scale", "scale", "inner", "inner", "inner"]


def test_assertions_explain_themselves_as_before(library: PluginRuns) -> None:
    result = run(
        library,
        """
def test_it():
    assert mylib.scale(torch.ones(1)).item() == 5
""",
    )
    result.stdout.fnmatch_lines(
        [
            "E*assert 4.0 == 5",
            "E*where 4.0 = <built-in method item*",
            "E*where*= tensor(?4.?).item",
            "E*= <function scale*(tensor(?1.?))",
        ]
    )
    assert "plumbline_boundary" not in result.stdout.str()


def test_decorated_parametrised_and_conftest_functions_are_reached(library: PluginRuns) -> None:
    library.pytester.makeconftest("""
import mylib
import pytest

@pytest.fixture
def use():
    def use(x):
        return mylib.scale(x)
    return use
""")
    result = run(
        library,
        """
import functools

def deco(fn):
    @functools.wraps(fn)
    def wrapper(*args, **kwargs):
        return fn(*args, **kwargs)
    return wrapper

@pytest.mark.parametrize("n", [1, 2])
@deco
def test_it(n, use):
    mylib.inner(use(torch.ones(n)))
""",
    )
    assert outcomes(result) == {"passed": 2}
    assert judged(library) == ["scale", "inner"]


def test_exceptions_keep_their_type_and_line(library: PluginRuns) -> None:
    result = run(
        library,
        """
def test_it():
    x = torch.ones(1)
    with pytest.raises(RuntimeError, match="must match"):
        mylib.scale(
            torch.ones(2), by=torch.ones(3),
        )
    mylib.scale()
""",
    )
    assert outcomes(result) == {"failed": 1}
    result.stdout.fnmatch_lines(["test_it.py:13: TypeError", "FAILED*TypeError*"])


def test_module_code_is_given_back_at_the_end(library: PluginRuns) -> None:
    import types

    body = """
kept = []

def test_it():
    import builtins
    builtins.plumbline_test_function = test_it
    assert mylib.scale(torch.ones(1)).sum() == 4
"""
    assert outcomes(run(library, body)) == {"passed": 1}
    import builtins

    function = builtins.__dict__.pop("plumbline_test_function")
    assert isinstance(function, types.FunctionType)
    assert "@plumbline_boundary" not in function.__code__.co_names
    assert "@plumbline_boundary" not in function.__globals__


def test_files_of_another_session_in_this_process_are_left_alone(runs, monkeypatch):
    """Where pytest tests a plugin, the outer session's test files are loaded too: hundreds, each read and compiled."""
    from plumbline.pytest_plugin.rewriting import call_rewriting

    read = []
    original = call_rewriting.CallRewriter._new_codes
    monkeypatch.setattr(
        call_rewriting.CallRewriter, "_new_codes", lambda self, *args: read.append(args[0]) or original(self, *args)
    )
    runs.write("def test_a(compiled): compiled(planned(lambda: 1))()")
    runs.pytester.makeconftest("x = 1")
    runs.run(backends="eager")
    assert {path.name for path in read} >= {"test_it.py", "conftest.py"}
    assert {path.parent for path in read} == {runs.pytester.path}
