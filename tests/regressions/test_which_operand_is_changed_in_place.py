"""`a += b` asks `a` to change itself before it asks `b`, whose class may derive from that of `a`."""

import pytest

from support.played_programs import difference_of

PROGRAM = """
class Box:
    def __init__(self, held):
        self.held = held
    def __iadd__(self, other):
        self.held += 10
        return self
    def __add__(self, other):
        return 'sum'

class Loud(Box):
    def __radd__(self, other):
        return 'reflected'

class Declining(Box):
    def __iadd__(self, other):
        return NotImplemented

class Numbers(list):
    def __radd__(self, other):
        return 'reflected'

class Table(dict):
    def __ror__(self, other):
        return 'reflected'

class Group(set):
    def __ror__(self, other):
        return 'reflected'
    __rand__ = __rsub__ = __rxor__ = __ror__

class NoGroup:
    def __ror__(self, other):
        return 'reflected'
    __rand__ = __rsub__ = __rxor__ = __ror__

def step(x):
    left = LEFT
    left OPERATOR RIGHT
    return getattr(left, 'held', left), x + 1
"""


@pytest.mark.parametrize(
    ("left", "operator", "right"),
    [
        ("Box(1)", "+=", "Loud(2)"),
        ("Declining(1)", "+=", "Loud(2)"),
        ("[1]", "+=", "Numbers([2])"),
        ("{}", "|=", "Table(a=1)"),
        ("Table()", "|=", "Table(a=1)"),
        *(("{1, 2}", operator, "Group([2])") for operator in ("|=", "&=", "-=", "^=")),
        *(("{1, 2}", operator, "NoGroup()") for operator in ("|=", "&=")),
        ("frozenset([1])", "|=", "Group([2])"),
        ("x", "+=", "Loud(2)"),
    ],
)
def test_the_left_one_first(left, operator, right):
    text = PROGRAM.replace("LEFT", left).replace("OPERATOR", operator).replace("RIGHT", right)
    assert difference_of(text) == ""
