"""Capture asked classes for attributes by getattr, which calls a `__getattr__` of the metaclass: the program saw it."""

import collections

import pytest
import torch

import plumbline

ASKED = []


class Meta(type):
    def __getattr__(cls, name):
        ASKED.append(name)
        if name.startswith("made"):
            return name
        raise AttributeError(name)


class Thing(metaclass=Meta):
    def __init__(self, value=1):
        self.value = value


class Pair(collections.namedtuple("Pair", "a b"), metaclass=Meta):
    __slots__ = ()


USES = {
    "construction": lambda: Thing(2).value,
    "isinstance": lambda: isinstance(1, Thing),
    "attribute of the metaclass": lambda: Thing.made_up,
    "no attribute": lambda: getattr(Thing, "other", None),
    "mapping": lambda: isinstance({"a": 1}, Thing),
    "with": lambda: hasattr(Thing(), "__enter__"),
    "named tuple": lambda: Pair(1, 2).a,
}


@pytest.mark.parametrize("use", USES.values(), ids=USES)
def test_the_metaclass_is_asked_as_in_python(use):
    def program(x):
        ASKED.clear()
        given = use()
        return (x + 1).sum().item(), given, list(ASKED)

    x = torch.ones(2)
    compiled = plumbline.compile(program, backend="eager")
    for _ in range(2):
        ASKED.clear()
        given = compiled(x), list(ASKED)
        expected = program(x), list(ASKED)
        assert given == expected


def test_a_metaclass_that_gets_a_getattr_between_calls():
    class Plain(type):
        pass

    class Of(metaclass=Plain):
        pass

    def program(x):
        return (x + 1).sum().item(), getattr(Of, "missing", 0)

    x = torch.ones(2)
    compiled = plumbline.compile(program, backend="eager")
    assert compiled(x) == program(x)
    Plain.__getattr__ = lambda cls, name: name
    assert compiled(x) == program(x)
