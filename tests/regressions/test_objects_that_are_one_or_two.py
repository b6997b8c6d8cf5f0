"""Equal numbers, texts and tuples became one object where they were handed over, or two where they had been one."""

import copy
import functools

import pytest

import plumbline
from support.as_in_plain_python import difference


def literals(x):
    text, number = "x y", 1000
    other, another = "".join(["x", " y"]), int("1000")
    plumbline.graph_break()
    return text is other, text == other, number is another, number == another


def tuples(x):
    one = 1
    first, second = (one, 2), (one, 2)
    third, fourth = (7, 8), (7, 8)
    before = third is fourth
    plumbline.graph_break()
    return first is second, before, third is fourth


def copies(x):
    fixed, changing = ((1, 2), 3), ([],)
    changing[0].append(changing)
    copied = copy.deepcopy(changing)
    twice = copy.deepcopy([fixed, fixed, changing, changing])
    return (
        copy.deepcopy(fixed) is fixed,
        twice[0] is fixed,
        twice[2] is twice[3],
        copied is changing,
        copied[0][0] is copied,
    )


def slices(x):
    bounds = slice([1], [2], [3])
    holder = [bounds, bounds]
    plumbline.graph_break()
    return copy.copy(bounds) is bounds, holder[0] is holder[1]


def names(x):
    def wrapped():
        pass

    def wrapper():
        pass

    functools.update_wrapper(wrapper, wrapped)
    plumbline.graph_break()
    return wrapper.__qualname__ is wrapped.__qualname__


@pytest.mark.parametrize("function", [literals, tuples, copies, slices, names])
def test_identity_is_as_in_plain_python(function):
    assert not difference(function)
