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
