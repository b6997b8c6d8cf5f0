"""A class that declines an operator is not asked by the method that it inherits: its instances differ, or it raises."""

import pytest

from support.played_programs import difference_of

PROGRAM = """
def declining(*names):
    return dict.fromkeys(names, lambda self, other: NotImplemented)

Listed = type('Listed', (list,), declining('__eq__', '__lt__', '__add__'))
Changed = type('Changed', (list,), declining('__iadd__', '__mul__', '__imul__'))
Whole = type('Whole', (int,), declining('__add__', '__radd__', '__eq__', '__ne__'))
Group = type('Group', (set,), declining('__or__', '__ior__', '__le__'))
Text = type('Text', (str,), declining('__add__', '__mod__', '__eq__'))

class Identical(list):
    __eq__ = object.__eq__

def attempt(operation):
    try:
        return operation()
    except TypeError as error:
        return str(error)

def joined(left, right):
    left += right
    return type(left).__name__, left

def united(left, right):
    left |= right
    return type(left).__name__, left

def step(x):
    return [attempt(lambda: EXPRESSION)], x + 1
"""


@pytest.mark.parametrize(
    "expression",
    [
        "Listed([1]) == Listed([1]), Listed([1]) == [1], [1] == Listed([1]), Listed([1]) != Listed([1])",
        "Identical([1]) == Identical([1]), Identical([1]) == [1], Identical([1]) in [Identical([1])]",
        "Listed([1]) < Listed([2])",
        "[1] < Listed([2])",
        "Listed([1]) + [2]",
        "[2] + Listed([1])",
        "joined(Changed([1]), [2]), Changed([1]) + [2]",
        "Changed([1]) * 2",
        "2 * Changed([1])",
        "Whole(3) + 1, 1 + Whole(3)",
        "Whole(3) + Whole(3)",
        "Whole(3) == Whole(3), Whole(3) == 3, 3 == Whole(3), Whole(3) != Whole(3), Whole(3) != 3",
        "Group([1]) | Group([2])",
        "Group([1]) | {2}, {2} | Group([1])",
        "Group([1]) <= Group([1])",
        "Group([1]) <= {1}, {1} <= Group([1])",
        "united(Group([1]), {2})",
        "united(Group([1]), Group([2]))",
        "Text('a') + 'b'",
        "'b' + Text('a')",
        "Text('%s') % 1",
        "Text('a') == 'a', 'a' == Text('a')",
    ],
)
def test_as_in_plain_python(expression):
    assert difference_of(PROGRAM.replace("EXPRESSION", expression)) == ""
