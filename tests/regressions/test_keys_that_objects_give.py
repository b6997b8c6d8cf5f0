"""`dict(object)` asked the class alone for `keys`: what `__getattr__` or the object itself gives was not a mapping."""

import collections

import pytest
import torch

import plumbline

ASKED = []


class Proxy:
    """Gives what another object has, and says what it was asked for."""

    def __init__(self, inner):
        self.inner = inner

    def __getattr__(self, name):
        ASKED.append(name)
        return getattr(self.inner, name)

    def __getitem__(self, key):
        return self.inner[key]

    def __iter__(self):
        return iter([("other", 1)])


class OfItsOwn:
    """Has `keys` of its own, and none by its class."""

    def __init__(self):
        self.keys = lambda: ["own"]

    def __getitem__(self, key):
        return key * 2


class Refusing:
    """Raises something else than an AttributeError."""

    def __getattr__(self, name):
        raise ValueError(name)


class Pairs:
    """Is no mapping."""

    def __iter__(self):
        return iter([("pair", 3)])


WAYS = {
    "dict": lambda value, x: (dict(value), x + 1),
    "display": lambda value, x: ({"a": 0, **value}, x + 1),
    "keywords": lambda value, x: (dict(a=0, **value), x + 1),
    "update": lambda value, x: (collections.OrderedDict(b=1) | dict(value), x + 1),
    "ordered": lambda value, x: (collections.OrderedDict(value), x + 1),
    "defaults": lambda value, x: (collections.defaultdict(int, value), x + 1),
}
MADE = [lambda: Proxy({"a": 1}), lambda: Proxy({1: 2}), OfItsOwn, Refusing, Pairs]


def outcome(function, make):
    ASKED.clear()
    try:
        return repr(function(make(), torch.ones(1))), list(ASKED)
    except Exception as error:
        return type(error), str(error), list(ASKED)


@pytest.mark.parametrize("make", MADE, ids=["proxy", "proxy of numbers", "own", "refusing", "pairs"])
@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_keys_are_asked_for_as_python_asks(way, make):
    assert outcome(plumbline.compile(way, backend="eager"), make) == outcome(way, make)
