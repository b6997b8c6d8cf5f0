"""What is no mapping, or cannot be iterated over, was refused in the words of another operation."""

import pytest
import torch

import plumbline


class KeysOfNothing:
    def keys(self):
        return 5


class Refuses:
    def __iter__(self):
        raise TypeError("mine")


def assigned(value, place):
    items = [1, 2]
    items[place] = value
    return items


def merged_in_place(value):
    items = {}
    items |= value
    return items


USES = {
    "merged": lambda value: {1: 2, **value},
    "keywords": lambda value: dict(**value),
    "updated": lambda value: {}.update(value),
    "merged in place": merged_in_place,
    "assigned": lambda value: assigned(value, slice(None)),
    "assigned by steps": lambda value: assigned(value, slice(None, None, 2)),
    "power": lambda value: pow(value, 2, 3),
}
VALUES = {
    "keys of nothing": KeysOfNothing(),
    "refuses": Refuses(),
    "object": object(),
    "function": lambda: 0,
    "scalar": torch.ones(()),
    "number": 5,
}


@pytest.mark.parametrize("value", VALUES.values(), ids=VALUES)
@pytest.mark.parametrize("use", USES.values(), ids=USES)
def test_words_of_the_operation(use, value):
    def program(x):
        try:
            given = use(value)
        except TypeError as error:
            given = str(error)
        return (x + 1).sum().item(), given

    x = torch.ones(2)
    assert plumbline.compile(program, backend="eager")(x) == program(x)
