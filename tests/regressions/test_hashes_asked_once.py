"""Dictionaries, sets and counters asked the program's keys for their hashes and compared them more often than Python's.

Python's keep the hash beside the key: copies, merges and `|` of keys ask for none, `pop` and `setdefault` for one.
"""

import collections

import pytest
import torch

import plumbline


class Key:
    def __init__(self, value, log):
        self.value = value
        self.log = log

    def __hash__(self):
        self.log.append(("hash", self.value))
        return hash(self.value)

    def __eq__(self, other):
        self.log.append(("equal", self.value, other.value))
        return self.value == other.value

    def __index__(self):
        self.log.append(("index", self.value))
        return self.value


USES = {
    "counter": lambda key: collections.Counter([key(1), key(2), key(1)]).total(),
    "counters added": lambda key: len(collections.Counter([key(1), key(1)]) + collections.Counter([key(1)])),
    "setdefault of a key": lambda key: {key(1): 1}.setdefault(key(1), 3),
    "setdefault of a new key": lambda key: {key(1): 1}.setdefault(key(2), 3),
    "pop": lambda key: {key(1): 1}.pop(key(1)),
    "popitem": lambda key: {key(1): 1}.popitem()[1],
    "delete": lambda key: {key(1): 1}.__delitem__(key(1)),
    "update": lambda key: {key(1): 1}.update({key(1): 5}),
    "merge": lambda key: len({key(1): 1} | {key(1): 2}),
    "equality": lambda key: {key(1): key(3)} == {key(1): key(3)},
    "copy": lambda key: len(dict({key(1): 1}.copy())),
    "keys united": lambda key: len({key(1): 1}.keys() | {key(1)}),
    "keys cut": lambda key: len({key(1): 1}.keys() & {key(1)}),
    "keys compared": lambda key: {key(1): 1}.keys() <= {key(1)},
    "set cut in place": lambda key: {key(1), key(2)}.intersection_update([key(1)]),
    "bounds of a slice": lambda key: slice(key(1), key(2)).indices(5),
}


@pytest.mark.parametrize("use", USES.values(), ids=USES)
def test_keys_are_asked_as_in_python(use):
    def program(x):
        log = []
        given = use(lambda value: Key(value, log))
        return (x + 1).sum().item(), given, log

    x = torch.ones(2)
    compiled = plumbline.compile(program, backend="eager")
    for _ in range(2):
        assert compiled(x) == program(x)
