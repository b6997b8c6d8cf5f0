"""Differences that CPython's own tests found, one of a kind each."""

import abc
import collections
import contextlib
import inspect
import io
import random
import re
import types
from decimal import Decimal
from typing import Annotated
from unittest import mock

import pytest

import plumbline
from support.as_in_plain_python import difference, told

NOT_A_NUMBER = Decimal("NaN")


def unequal_to_itself(x):
    return NOT_A_NUMBER == NOT_A_NUMBER, NOT_A_NUMBER != NOT_A_NUMBER, NOT_A_NUMBER in [NOT_A_NUMBER]


def past_the_order(x):
    table = collections.OrderedDict(a=1, b=2)
    dict.__delitem__(table, "a")
    return told(lambda: list(table))


def pattern_with_a_key_twice(x):
    class Keys:
        KEY = "a"

    def matched():
        match {"a": 0, "b": 1}:
            case {Keys.KEY: first, "a": second}:
                return first, second

    return told(matched)


def sent_to_a_range(x):
    def steps():
        trace.append("begins")
        try:
            yield from range(3)
        finally:
            trace.append("ends")

    trace = []
    generator = steps()
    next(generator)
    return told(lambda: generator.send(42)), trace


def names_of_generators(x):
    def function():
        yield 1

    first = function()
    first.__name__ = first.__qualname__ = "n"
    function.__name__ = function.__qualname__ = "m"
    second = function()
    refused = told(lambda: setattr(first, "__name__", 1))
    plumbline.graph_break()
    return first.__name__, first.__qualname__, second.__name__, second.__qualname__, refused


def patched_draws(x):
    with mock.patch("random.Random.random") as drawn:
        drawn.side_effect = [0.25, 0.5]
        return random.uniform(0.0, 1.0), drawn.call_count


def told_signatures(x):
    def decorated(*args, **kwargs):
        pass

    decorated.__wrapped__ = lambda a, b=1: None
    other = lambda *args: None  # noqa: E731 - it is given a signature
    other.__signature__ = inspect.signature(lambda q: None)
    return (
        str(inspect.signature(decorated)),
        str(inspect.signature(decorated, follow_wrapped=False)),
        str(inspect.signature(other)),
    )


def printed_by_a_pattern(x):
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        re.compile("ab", re.DEBUG)
    return printed.getvalue().count("SUCCESS")


def attributes_of_functions(x):
    class Held:
        def method(self):
            pass

    def function():
        return 3

    refused = [
        told(lambda name=name, value=value: setattr(function, name, value))
        for name, value in (
            ("__dict__", None),
            ("__builtins__", 2),
            ("__name__", 5),
            ("__defaults__", 5),
            ("__code__", 5),
        )
    ]
    Held.method.known = 7
    return refused, "known" in dir(Held().method), function()


def text_of_a_module(x):
    module = types.ModuleType("made")
    module.__file__ = "made.py"
    return repr(module)


def hints_of_a_class(x):
    class Held:
        part = 4

    hint = Annotated[Held, "text"]
    plumbline.graph_break()
    hint.part = 5
    return Held.part


def classes_in_classes(x):
    class Outer:
        class Inner:
            part: int

    inner = getattr(Outer, next(name for name in vars(Outer) if name[0] != "_"))
    plumbline.graph_break()
    inner.mark = 4
    return Outer.Inner.mark, inner is Outer.Inner


def hints_of_hints(x):
    inner = list[int]
    plumbline.graph_break()
    return repr(dict[str, inner]), tuple[inner, ...] == tuple[list[int], ...]


class Registry(metaclass=abc.ABCMeta):  # noqa: B024 - classes are registered with it, none is derived
    def __eq__(self, other):
        ASKED.append("Registry")
        return NotImplemented

    __hash__ = None


class Registered:
    def __eq__(self, other):
        ASKED.append("Registered")
        return NotImplemented

    __hash__ = None


Registry.register(Registered)
ASKED = []


def asked_first(x):
    ASKED.clear()
    return Registry() == Registered(), list(ASKED)


@pytest.mark.parametrize(
    "function",
    [
        unequal_to_itself,
        past_the_order,
        pattern_with_a_key_twice,
        sent_to_a_range,
        names_of_generators,
        patched_draws,
        told_signatures,
        printed_by_a_pattern,
        attributes_of_functions,
        text_of_a_module,
        hints_of_a_class,
        hints_of_hints,
        classes_in_classes,
        asked_first,
    ],
)
def test_as_in_plain_python(function):
    assert not difference(function)
