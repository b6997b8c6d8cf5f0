"""The text of a subclass of OrderedDict or defaultdict named the base class."""

import collections

import pytest
import torch

import plumbline


class Ordered(collections.OrderedDict):
    """Has its own name only."""


class Lists(collections.defaultdict):
    """Has its own name only."""


class Queue(collections.deque):
    """Has its own name only."""


class Names(set):
    """Has its own name only."""


MADE = [lambda: Ordered(a=1), lambda: Lists(list, a=1), lambda: Queue([1], maxlen=2), lambda: Names([1])]


@pytest.mark.parametrize("make", MADE, ids=["Ordered", "Lists", "Queue", "Names"])
def test_the_class_is_named(make):
    def function(x, given):
        made = make()
        return x + 1, f"{made} {given!r} {[made]}", str(given)

    compiled = plumbline.compile(function, backend="eager")
    assert compiled(torch.ones(1), make())[1:] == function(torch.ones(1), make())[1:]
