"""A call that fits no specialisation read items of what is another object now: a `defaultdict` had them afterwards."""

import collections

import pytest
import torch

import plumbline


def take(x, thing):
    callable(thing)
    return x * 2, len(thing)


class Telling:
    """Says what is read of it."""

    def __init__(self):
        self.read = []

    def __len__(self):
        return 1

    def __getitem__(self, place):
        self.read.append(place)
        return 1

    def __getattr__(self, name):
        self.__dict__["read"].append(name)
        return 1


@pytest.mark.parametrize("before", [[1], [torch.ones(2)], (2.5, 1), {0: 1}])
def test_a_defaultdict_keeps_its_keys(before):
    compiled = plumbline.compile(take, backend="eager")
    x = torch.ones(3)
    compiled(x, before)
    after = collections.defaultdict(int)
    assert compiled(x, after)[1] == 0
    assert after == {}


def test_an_object_with_items_of_its_own_is_not_asked():
    compiled = plumbline.compile(take, backend="eager")
    x = torch.ones(3)
    compiled(x, [1])
    after = Telling()
    plain = Telling()
    take(x, plain)
    compiled(x, after)
    assert after.read == plain.read


def test_numbers_of_a_list_that_is_as_it_was_still_vary():
    """They are read: the second number makes one specialisation for all, and the third compiles nothing."""

    def step(x, numbers):
        return x * numbers[0]

    frames = []
    compiled = plumbline.compile(step, backend=lambda graph, inputs: frames.append(graph) or graph.forward)
    for number in (1.5, 2.5, 3.5, 4.5):
        assert torch.equal(compiled(torch.ones(2), [number]), torch.ones(2) * number)
    assert len(frames) == 2
