"""Views and iterators of an instance of a container class were handed over as those of a copy of what it holds."""

import collections

import pytest

import plumbline
from support.as_in_plain_python import difference, told


def views(x):
    class Table(dict):
        def keys(self):
            asked.append("keys")
            return super().keys()

    asked = []
    table = Table(a=1)
    keys, values, items, proxy = table.keys(), table.values(), dict.items(table), table.values().mapping
    plumbline.graph_break()
    table["b"] = 2
    return list(keys), list(values), list(items), dict(proxy), asked


def iterators(x):
    class Items(list):
        def __iter__(self):
            asked.append("iter")
            return super().__iter__()

    class Queue(collections.deque):
        pass

    class Members(set):
        pass

    asked = []
    items, queue, members = Items([1, 2, 3]), Queue([1, 2]), Members([5])
    forwards, backwards, first, member = iter(items), reversed(items), iter(queue), iter(members)
    next(forwards), next(backwards), next(first)
    plumbline.graph_break()
    items.append(4)
    return list(forwards), list(backwards), list(first), list(member), asked


def factory(x):
    class Table(collections.defaultdict):
        def __init__(self):
            self.default_factory = self.missing

        def missing(self):
            return [1]

    table = Table()
    plumbline.graph_break()
    return table["x"], len(table)


def frozen(x):
    class Members(frozenset):
        pass

    members = Members([1])
    copy = members.copy()
    return type(copy), copy is members, copy == members


def cycles(x):
    class Holder:
        def __repr__(self):
            return repr(self.value)

    texts = []
    for kind in (set, frozenset, type("Members", (frozenset,), {})):
        holder = Holder()
        holder.value = kind([holder])
        texts.append(repr(holder.value))
    return texts


def arguments(x):
    def classes():
        for base in (list, set, tuple, frozenset, float, collections.deque):
            yield type("Plain", (base,), {})
            yield type("Own", (base,), {"__init__": lambda self, *args, **kwargs: None})

    return [
        told(lambda kind=kind, given=given, named=named: str(kind(*given, **named)))
        for kind in classes()
        for given in ((), ([1],), ([1], [2]))
        for named in ({}, {"unit": 1})
    ]


def attributes_of_a_tuple(x):
    class Point(tuple):
        def __init__(self, values, unit=None):
            self.unit = unit

    return Point([1, 2], unit="m").unit


@pytest.mark.parametrize("function", [views, iterators, factory, frozen, cycles, arguments, attributes_of_a_tuple])
def test_it_is_the_instance(function):
    assert not difference(function)
