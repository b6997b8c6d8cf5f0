"""Which tests have the operations outside of their boundaries counted: those that name no compiler of their own."""

import pytest

from plumbline.pytest_plugin.own_compilers import counts_outside

pytest_plugins = ["pytester"]

_FILE = """
import unittest

import pytest
import torch
from torch.fx import symbolic_trace

def helper(f):
    def inner(x):
        return torch.jit.trace(f, x)
    return inner

class Base:
    def scripted(self, f):
        return torch.jit.script(f)

class TestAll(Base):
    def test_plain(self):
        torch.ones(2).sin()

    def test_by_a_method_of_a_base(self):
        self.scripted(torch.sin)

class TestCase(unittest.TestCase):
    @unittest.skipIf(False, "never")
    def test_case_plain(self):
        torch.ones(2).sin()

    def test_case_exports(self):
        torch.export.export(torch.nn.Identity(), (torch.ones(2),))

def test_alone():
    torch.ones(2).trace()

def test_by_a_helper():
    helper(torch.sin)(torch.ones(2))

def test_by_a_name_that_was_imported():
    symbolic_trace(torch.nn.Identity())

def test_by_an_import_of_its_own():
    import torch.jit as jit

@pytest.fixture
def compile():
    return lambda f: torch.compile(f, backend=torch._dynamo.lookup_backend("eager"))

def test_by_a_fixture(compile):
    compile(torch.sin)
"""


def test_a_test_that_reaches_another_compiler_is_not_counted(pytester: pytest.Pytester) -> None:
    items, _ = pytester.inline_genitems(pytester.makepyfile(_FILE))
    counted = [item.name for item in items if counts_outside(item)]
    assert counted == ["test_plain", "test_case_plain", "test_alone"]
    assert len(items) == 9
