"""Errors about arguments named a function of ours, and the module of a function's globals instead of its own."""

import pytest
import torch

import plumbline
from support.played_programs import difference_of

PROGRAM = """
import collections
import decimal

def named(a):
    return a

named.__module__ = 'elsewhere'
text = collections.UserString('ab')

class Owner:
    def method(self, a):
        return a

owner = Owner()

def step(x):
    TEXT
    return x + 1
"""


@pytest.mark.parametrize(
    "statement",
    [
        "named(*1)",
        "named(*decimal.Decimal(1))",
        "owner.method(*1)",
        "[].append(*1)",
        "[].__len__(*1)",
        "text.isspace(*bytearray(b'l'))",
        "print(x.sum().item()), named(*bytearray(b'lo'))",
        "graph_break(), owner.method(*bytearray(b'lo'))",
    ],
)
def test_calls_with_a_star(statement):
    assert difference_of(PROGRAM.replace("TEXT", statement)) == ""


def test_a_renamed_function():
    changes = ("named.__qualname__ = 'other'", "named.__module__ = 'm'")
    history = ("r0 = step(x0)", changes[0], "r1 = step(x0)", changes[1], "r2 = step(x0)")
    assert difference_of(PROGRAM.replace("TEXT", "named(*1)"), history) == ""


def test_a_compiled_module():
    module = plumbline.compile(torch.nn.Linear(2, 2), backend="eager")
    with pytest.raises(TypeError, match=r"^Linear\.forward\(\) missing 1 required positional argument: 'input'$"):
        module()
