"""Formatting under capture gives the text that Python gives, for every kind of value and specification."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from support.programs import compiled

VALUES = st.one_of(
    st.integers(-(10**6), 10**6),
    st.floats(allow_nan=False, width=32),
    st.booleans(),
    st.none(),
    st.text("ab %{}", max_size=5),
    st.tuples(st.integers(0, 9)),
    st.lists(st.integers(0, 9), max_size=3),
    st.dictionaries(st.sampled_from("xy"), st.integers(0, 3), max_size=2),
)
SPECIFICATIONS = st.sampled_from(["", ">8", "^9", "<5", "+", ",", ".2f", "e", "g", "x", "#b", "08", "%", "s", "c?"])


def texts(a, value, specification):
    try:
        formatted = format(value, specification)
    except (ValueError, TypeError) as error:
        formatted = (type(error), str(error))
    percent = "%s %r" % (value, [value])  # noqa: UP031 - what is tested
    return a + 1, formatted, f"{value!r:>20}|{value!s}|{[value]}|{(value,)}", percent, str({1: value})


@settings(max_examples=80, deadline=None)
@given(VALUES, SPECIFICATIONS)
def test_text_is_that_of_eager(value, specification):
    a = torch.ones(2)
    assert texts(a, value, specification)[1:] == compiled(texts, fullgraph=True)(a, value, specification)[1:]


class Worded:
    def __str__(self):
        return "words"

    def __repr__(self):
        return "Worded()"

    def __format__(self, specification):
        return f"<{specification}>"


@pytest.mark.parametrize("form", ["{}", "{0!r}", "{0:abc}", "{0!s:>9}", "{x}", "{x!r:^12}"])
def test_objects_are_asked_for_their_own_words(form):
    def fill(a, worded):
        return a + 1, form.format(worded, x=worded), f"{worded} {[worded]}", "%s|%r" % (worded, worded)  # noqa: UP031 - what is tested

    a = torch.ones(2)
    assert fill(a, Worded())[1:] == compiled(fill, fullgraph=True)(a, Worded())[1:]
