"""Texts and errors went on telling the old name of a class or a function that was renamed between two calls."""

import pytest

from support.played_programs import difference_of

_MODULE = """
import collections
class Plain: pass
class Sub(Plain): pass
class Row(list): pass
class Problem(ValueError): pass
def asked(a, *, b=1): pass
Pair = collections.namedtuple("Pair", "a b")
plain, row, pair = Plain(), Row([1]), Pair(1, 2)
def words(action):
    try:
        return action()
    except Exception as error:
        return repr(error)
def step(x):
    return x + 1, QUESTION
"""
_CHANGES = (
    "Plain.__name__ = Row.__name__ = Problem.__name__ = Pair.__name__ = 'Other'",
    "Plain.__qualname__ = Row.__qualname__ = Problem.__qualname__ = Pair.__qualname__ = 'Outer.Other'",
    "Plain.__module__ = 'elsewhere'",
    "Plain.__doc__ = 'words'",
    "Sub.__name__ = 'Under'",
    "asked.__qualname__ = 'other'",
)
_QUESTIONS = (
    "repr(Plain)",
    "[Plain, Sub], f'{Plain}', '%s' % Sub, str(Problem)",
    "repr(list[Plain])",
    "words(lambda: plain.other)",
    "words(lambda: plain + 1), words(lambda: len(plain)), words(lambda: plain())",
    "words(lambda: Plain.other), words(lambda: Plain < Sub)",
    "words(lambda: Plain(1)), words(lambda: Sub(1))",
    "words(lambda: row + 1), words(lambda: row.other), words(lambda: hash(row))",
    "repr(Problem(1))",
    "repr(pair)",
    "Plain.__doc__",
    "words(lambda: asked()), words(lambda: asked(1, c=1)), words(lambda: asked(*plain))",
)


@pytest.mark.parametrize("question", _QUESTIONS)
def test_what_is_told_after_a_renaming(question):
    history = ["r0 = step(x0)"]
    for number, change in enumerate(_CHANGES, 1):
        history += [change, f"r{number} = step(x0)"]
    assert not difference_of(_MODULE.replace("QUESTION", question), tuple(history))
