"""`f"{thing!a}"` and `"%a"` gave the `repr` of the `repr`."""

import collections

import pytest
import torch

import plumbline

BACKENDS = ["eager", "aot_eager", pytest.param("inductor", marks=pytest.mark.cc)]


class Counts:
    def __init__(self, log):
        self.log = log

    def __repr__(self):
        self.log.append("repr")
        return "ä"

    def __str__(self):
        self.log.append("str")
        return "ö"

    def __format__(self, specification):
        self.log.append("format " + specification)
        return "ü"


class OnlyRepr:
    def __init__(self, log):
        self.log = log

    def __repr__(self):
        self.log.append("repr")
        return "ä"


class Point(collections.namedtuple("Point", "a b")):
    pass


WAYS = {
    "!a": lambda thing: f"{thing!a}",
    "!a with a width": lambda thing: f"{thing!a:>9}",
    "!a of a text": lambda thing: f"{'ä'!a}{thing!a}",
    "!r": lambda thing: f"{thing!r}",
    "!s": lambda thing: f"{thing!s}",
    "!s with a width": lambda thing: f"{thing!s:>9}",
    "plain": lambda thing: f"{thing}",
    "with a specification": lambda thing: f"{thing:}",
    "%a": lambda thing: "%a" % (thing,),  # noqa: UP031  every way to make a text is under test
    "%5a": lambda thing: "%5a" % (thing,),  # noqa: UP031  every way to make a text is under test
    "%r": lambda thing: "%r" % (thing,),  # noqa: UP031  every way to make a text is under test
    "%s": lambda thing: "%s" % (thing,),  # noqa: UP031  every way to make a text is under test
    "%s without a tuple": lambda thing: "%s" % thing,  # noqa: UP031  every way to make a text is under test
    "two of %": lambda thing: "%a %s" % (thing, thing),  # noqa: UP031  every way to make a text is under test
    "a mapping for %": lambda thing: "%(a)a" % {"a": thing},  # noqa: UP031  every way to make a text is under test
    "format !a": lambda thing: "{!a}".format(thing),  # noqa: UP032  every way to make a text is under test
    "format !r": lambda thing: "{!r}".format(thing),  # noqa: UP032  every way to make a text is under test
    "format": lambda thing: "{}".format(thing),  # noqa: UP032  every way to make a text is under test
    "format_map": lambda thing: "{a!a}".format_map({"a": thing}),
    "ascii": ascii,
    "repr": repr,
    "str": str,
    "format()": lambda thing: format(thing, ""),
    "ascii of a list": lambda thing: ascii([thing]),
    "ascii of a dict": lambda thing: ascii({1: thing}),
    "%a of a list": lambda thing: "%a" % [thing],
    "!a of a list": lambda thing: f"{[thing]!a}",
    "!a of a named tuple": lambda thing: f"{Point(thing, 1)!a}",
    "ascii of an exception": lambda thing: ascii(ValueError(thing)),
}


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("kind", [Counts, OnlyRepr])
@pytest.mark.parametrize("way", WAYS)
def test_as_often_as_python(way, kind, backend):
    make = WAYS[way]

    def function(x):
        log = []
        return make(kind(log)), log, x + 1

    assert plumbline.compile(function, backend=backend)(torch.ones(1))[:2] == function(torch.ones(1))[:2]
