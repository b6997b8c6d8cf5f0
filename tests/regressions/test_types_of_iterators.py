"""Iterators over dictionaries, and reversed ones, said that they were iterators over tuples."""

import collections

import pytest
import torch

import plumbline

MAKERS = {
    "dict": lambda: iter({1: 2}),
    "keys": lambda: iter({1: 2}.keys()),
    "values": lambda: iter({1: 2}.values()),
    "items": lambda: iter({1: 2}.items()),
    "reversed dict": lambda: reversed({1: 2}),
    "reversed values": lambda: reversed({1: 2}.values()),
    "reversed items": lambda: reversed({1: 2}.items()),
    "ordered": lambda: iter(collections.OrderedDict(a=1)),
    "ordered items": lambda: iter(collections.OrderedDict(a=1).items()),
    "defaultdict": lambda: iter(collections.defaultdict(list)),
    "list": lambda: iter([1]),
    "reversed list": lambda: reversed([1]),
    "tuple": lambda: iter((1,)),
    "reversed tuple": lambda: reversed((1,)),
    "deque": lambda: iter(collections.deque([1])),
    "reversed deque": lambda: reversed(collections.deque([1])),
    "set": lambda: iter({1}),
    "text": lambda: iter("a"),
    "range": lambda: iter(range(1)),
    "zip": lambda: zip([1], [2], strict=True),
    "enumerate": lambda: enumerate([1]),
}


@pytest.mark.parametrize("kind", MAKERS)
def test_of_one_made_inside(kind):
    make = MAKERS[kind]

    def function(x):
        iterator = make()
        return type(iterator).__name__, iterator.__class__.__name__, list(iterator), x + 1

    assert plumbline.compile(function, backend="eager")(torch.ones(1)) == function(torch.ones(1))
