"""A partial around one that has a `__dict__` was made flat; signatures of partials were those of a function of ours."""

import pytest

from support.played_programs import difference_of

PROGRAM = """
import enum
import functools
import heapq
import inspect

def plus(a, b=2, *c, d, **e):
    return a

inner = functools.partial(plus, 1, d=4)
marked = functools.partial(plus, 1, d=4)
marked.note = 5
looked_at = functools.partial(plus)
vars(looked_at)

class Shade(enum.Enum):
    DARK = 1

def step(x):
    made = functools.partial(plus, 1)
    made.note = 1
    del made.note
    return TEXT, x + 1
"""
TEXTS = (
    "functools.partial(inner, 2).func is plus",
    "functools.partial(marked, 2).func is marked",
    "functools.partial(looked_at, 2).func is looked_at",
    "functools.partial(made, 2).func is made",
    "functools.partial(marked, 2)(3), functools.partial(marked, 2, d=7).keywords",
    "str(inspect.signature(inner))",
)


@pytest.mark.parametrize("text", TEXTS)
def test_it_stays_around_the_one(text):
    assert difference_of(PROGRAM.replace("TEXT", text)) == ""


def test_an_attribute_that_comes_between_calls():
    history = ("r0 = step(x0)", "inner.note = 1", "r1 = step(x0)")
    assert difference_of(PROGRAM.replace("TEXT", "functools.partial(inner, 2).func"), history) == ""


@pytest.mark.parametrize("text", ["Shade.__members__", "Shade.__members__['DARK']", "list(Shade.__members__.items())"])
def test_the_members_of_an_enumeration_are_shown_anew(text):
    assert difference_of(PROGRAM.replace("TEXT", text)) == ""


@pytest.mark.parametrize("text", ["functools.partial(3)", "heapq.heappop([])", "heapq.heappush((), 1)"])
def test_what_c_refuses_in_its_own_words(text):
    program = PROGRAM.replace(
        "return TEXT, x + 1", f"try:\n        {text}\n    except Exception as e:\n        return e"
    )
    assert difference_of(program) == ""
