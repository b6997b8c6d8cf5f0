"""A format is asked of an object whose class has none: the error names the class as C does, module and all."""

import collections
import functools
import re

import pytest
import torch

import plumbline

OBJECTS = {
    "defaultdict": collections.defaultdict(int, a=1),
    "deque": collections.deque([1]),
    "OrderedDict": collections.OrderedDict(a=1),
    "partial": functools.partial(int),
    "pattern": re.compile("a"),
    "size": torch.Size([1]),
    "list": [1],
}


def by_format(value):
    return format(value, "a")


def by_method(value):
    return "{:a}".format(value)  # noqa: UP032  # this spelling is the test


def by_f_string(value):
    return f"{value:a}"


@pytest.mark.parametrize("write", [by_format, by_method, by_f_string])
@pytest.mark.parametrize("name", OBJECTS)
def test_the_error_names_the_class(name, write):
    def program(x, value):
        try:
            return x, write(value)
        except TypeError as error:
            return x + 1, str(error)

    compiled = plumbline.compile(program, backend="eager")
    expected = program(torch.zeros(1), OBJECTS[name])[1]
    assert "unsupported format string" in expected
    assert [compiled(torch.zeros(1), OBJECTS[name])[1] for _ in range(2)] == [expected, expected]


def test_the_text_of_a_defaultdict_has_its_short_name():
    def program(x):
        made = collections.defaultdict(int, a=1)
        return x, repr(made), f"{made}", f"{[made]}"

    assert plumbline.compile(program, backend="eager")(torch.zeros(1))[1:] == program(torch.zeros(1))[1:]
