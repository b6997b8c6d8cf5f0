"""Methods of a subclass of dict were called by guards and by the search for marked sizes, not by the program alone."""

import collections
import typing

import pytest
import torch

import plumbline

CALLED = []


class Telling(dict):
    """Says which of its methods are called, and gives something else than it holds."""

    def __iter__(self):
        CALLED.append("iter")
        return iter(["other"])

    def __len__(self):
        CALLED.append("len")
        return 7

    def __contains__(self, key):
        CALLED.append("in")
        return True

    def __getitem__(self, key):
        CALLED.append("get")
        return 1

    def keys(self):
        CALLED.append("keys")
        return ["yet another"]

    def values(self):
        CALLED.append("values")
        return [1]


class Ordered(collections.OrderedDict):
    """Has an order of its own."""


class Restarting:
    """An iterator that begins anew whenever it is asked for one."""

    def __iter__(self):
        self.number = 0
        return self

    def __next__(self):
        self.number += 1
        if self.number > 3:
            raise StopIteration
        return self.number

    def __length_hint__(self):
        CALLED.append("hint")
        return 3


class Table(typing.TypedDict):
    """A class that refuses to be asked whether something is an instance of it."""

    first: int


def outcomes(function, arguments):
    found = []
    for call in (function, plumbline.compile(function, backend="eager")):
        CALLED.clear()
        found.append(([repr(call(make(), torch.ones(1))) for make in (*arguments, *arguments)], list(CALLED)))
    return found


USES = {
    "by the base": lambda table, x: (dict.__len__(table), list(dict.keys(table)), dict.get(table, "z"), x + 1),
    "items": lambda table, x: (list(table.items()), bool(dict.__contains__(table, "a")), x + 1),
    "by its methods": lambda table, x: (len(table), "a" in table, table["a"], list(table), dict(table), x + 1),
    "not at all": lambda table, x: (table is None, x + 1),
}


@pytest.mark.parametrize("use", USES.values(), ids=USES)
def test_only_the_program_calls_the_methods_of_a_dictionary(use):
    plain, compiled = outcomes(use, [lambda: Telling(a=1), lambda: Telling(a=1, b=2), lambda: Telling({1.5: 2})])
    assert compiled == plain


def test_a_subclass_of_an_ordered_dictionary_keeps_its_order():
    def moved():
        table = Ordered(a=1, b=2)
        table.move_to_end("a")
        return table

    plain, compiled = outcomes(
        lambda table, x: (list(table), list(table.items()), x), [moved, lambda: Ordered(a=1, b=2)]
    )
    assert compiled == plain


def first_and_rest(made, x):
    first, *rest = made
    return first, rest, x + 1


def ends(made, x):
    first, *rest, last = made
    return first, rest, last, x + 1


def rest_and_last(made, x):
    *rest, last = made
    return rest, last, x + 1


def too_many(made, x):
    try:
        first, second, third, fourth, *rest, last = made
    except ValueError as error:
        return str(error), x + 1
    return first, second, third, fourth, rest, last


@pytest.mark.parametrize("function", [first_and_rest, ends, rest_and_last, too_many])
def test_the_rest_of_an_unpacking_is_a_list_made_of_the_iterator(function):
    plain, compiled = outcomes(
        function, [Restarting, lambda: iter([1, 2, 3]), lambda: (n for n in range(4)), lambda: "abcd"]
    )
    assert compiled == plain


def test_a_class_that_refuses_instance_checks_has_attributes(monkeypatch):
    monkeypatch.setenv("PLUMBLINE_STRICT", "1")

    def function(x):
        return len(Table.__annotations__), Table.__total__, Table(first=2)["first"], x + 1

    assert plumbline.compile(function, backend="eager")(torch.ones(1))[:3] == (1, True, 2)
