"""What a judged call is handed is code as its author wrote it: callbacks of the test file, objects of its classes."""

import ast
import types

import pytest

from plumbline.pytest_plugin.rewriting.call_rewriting import BoundaryCalls, code_key
from support.plugin_runs import PluginRuns, outcomes

pytest_plugins = ["pytester"]

LIBRARY = """
def apply(function, values):
    return [function(value) for value in values]

def inner(x):
    return x + 1
"""

TESTS = """
import torch
import mylib

class Scaling:
    def __init__(self, by):
        self.by = by

    def of(self, x):
        return torch.mul(x, self.by) + 1

def helper(x):
    assert x is not None
    return torch.sin(x) * 2

def test_lambda():
    device = "cpu"
    mylib.apply(lambda x: x.to(device) * 2, [torch.ones(2)]); mylib.apply(lambda x: x.to(device) + 2, [torch.ones(2)])

def test_function():
    mylib.apply(helper, [torch.ones(2)])

def test_object():
    mylib.apply(Scaling(3).of, [torch.ones(2)])

def calls(x):
    return mylib.inner(x)

def test_afterwards():
    mylib.apply(calls, [torch.ones(2)])

def test_the_same_function_called_directly():
    calls(torch.ones(2))
"""


def test_callbacks_of_the_test_file_break_nothing(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    runs = PluginRuns(pytester, monkeypatch, fake=False)
    runs.pytester.makepyfile(mylib=LIBRARY)
    runs.pytester.syspathinsert()
    runs.write(TESTS)
    result = runs.run("--compile-boundary=call", "--compile-compilers=plumbline", backends="eager")
    assert outcomes(result) == {"passed": 5}
    result.stdout.fnmatch_lines(["*EQUAL*", "plumbline:eager * 5"])
    result.stdout.no_fnmatch_line("*graph breaks*")


def test_lambdas_of_one_line_are_told_apart() -> None:
    codes = [
        code
        for code in compile("f = lambda x: x + 1; g = lambda x: x + 2", "one.py", "exec").co_consts
        if isinstance(code, types.CodeType)
    ]
    assert len({code_key(code) for code in codes}) == len(codes) == 2


@pytest.mark.parametrize("source", ["f = lambda x: len(x) + 1", "f = lambda x: g(x) @ g(x)"])
def test_a_rewritten_lambda_keeps_its_key(source: str) -> None:
    plain, rewritten = ast.parse(source), BoundaryCalls().visit(ast.parse(source))
    first, second = (compile(tree, "one.py", "exec").co_consts[0] for tree in (plain, rewritten))
    assert first.co_code != second.co_code
    assert code_key(first) == code_key(second)
