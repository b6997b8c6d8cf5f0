"""A program of a few lines is asked in a child; what it says names no file of that time."""

import pytest

from plumbline.minifier.bisect.bisect_program import culprit_of_text

PROGRAM = """
import contextlib, torch, plumbline
from plumbline.testing import ignore_guards, replace_captured

def program(x, n):
    return torch.relu(x * n)

with {plant}:
    compiled = plumbline.compile(program)
    compiled(torch.randn(4), 2)
    compiled(torch.randn(4), 3)
"""


@pytest.mark.parametrize("plant", ["replace_captured(torch.relu, torch.sin)", "ignore_guards('EQUALS')"])
def test_a_fault_of_capture_is_named(plant):
    sentence = culprit_of_text(PROGRAM.format(plant=plant), "eager", 300)
    assert sentence == "capture 0: captured program (compiler/frontend/units/unit.py)"


def test_nothing_is_named_where_nothing_fails():
    assert culprit_of_text(PROGRAM.format(plant="contextlib.nullcontext()"), "eager", 300) == ""
