"""A list that a cached function gave for a number that varies was a new one at each call, not what is in the cache."""

import functools

import pytest
import torch

import plumbline


class Key:
    """Equal to every key of the same name."""

    def __init__(self, name):
        self.name = name

    def __eq__(self, other):
        return isinstance(other, Key) and other.name == self.name

    def __hash__(self):
        return hash(self.name)


KEYS = {
    "numbers": [1, 2, 3, 2, 3, 1],
    "objects": [Key("a"), Key("b"), Key("a")],
    "tuples": [(1, 2), (2, 2), (3, 2), (2, 2)],
}

MADE = [(list, list.append), (dict.fromkeys, dict.setdefault), (set, set.add)]


@pytest.mark.parametrize("dynamic", [None, True])
@pytest.mark.parametrize(("make", "change"), MADE, ids=["list", "dictionary", "set"])
@pytest.mark.parametrize("keys", KEYS.values(), ids=KEYS)
def test_what_a_cache_gave_is_what_it_gives(keys, make, change, dynamic):
    @functools.lru_cache(None)
    def names(key):
        return make([key])

    def function(x, key):
        return x + len(names(key)), names(key)

    compiled, x = plumbline.compile(function, backend="eager", dynamic=dynamic), torch.ones(1)
    for number, key in enumerate(keys):
        found, held = compiled(x, key)
        assert held is names(key)
        assert torch.equal(found, function(x, key)[0])
        change(held, number)


@pytest.mark.parametrize("number", [0, 1])
def test_a_cached_function_that_prints_is_called_when_the_program_calls_it(capsys, number):
    @functools.lru_cache(None)
    def load(number):
        print("load", number)
        if not number:
            raise ValueError(number)
        return number

    def function(x):
        print("before")
        try:
            return x + load(number)
        except ValueError:
            return x - 1

    printed = []
    for call in (function, plumbline.compile(function, backend="eager")):
        load.cache_clear()
        call(torch.ones(1))
        call(torch.ones(1))
        printed.append(capsys.readouterr().out)
    assert printed[0] == printed[1]
