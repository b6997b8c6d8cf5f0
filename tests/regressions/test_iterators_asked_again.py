"""Iterators of itertools and the builtins ended for good at an end or an error of what they take from; Python's go on.

`map(f, source)` gave no further element after `f` had raised once, and none of them asked a source again that had
ended. Some are made of nothing but the elements that were left, so that their type was that of a tuple's iterator.
"""

import functools
import itertools
import re

import pytest
import torch

import plumbline


class Source:
    """Gives 1, 2, ..., ends, ends, and begins again; it writes down what it is asked."""

    def __init__(self, log, length, fails_at=None):
        self.log = log
        self.length = length
        self.fails_at = fails_at
        self.given = 0

    def __iter__(self):
        self.log.append("iter")
        return self

    def __next__(self):
        self.log.append("next")
        self.given += 1
        if self.given > self.length:
            if self.given == self.length + 2:
                self.given = 0
            raise StopIteration
        if self.given == self.fails_at:
            raise KeyError(self.given)
        return self.given


class Key:
    def __init__(self, value):
        self.value = value

    def __eq__(self, other):
        return isinstance(other, Key) and self.value == other.value

    def __bool__(self):
        return self.value > 1

    def __index__(self):
        return self.value


def not_two(*values):
    if 2 in values:
        raise ValueError(values)
    return sum(values)


def not_two_of(source):
    return not_two(next(source))


def first(row):
    return row[0]


def ends(value):
    raise StopIteration(value)


class OfItems:
    def __getitem__(self, place):
        return not_two([1, 2, 3][place])


MAKERS = {
    "map": lambda log: map(not_two, Source(log, 3)),
    "map of two": lambda log: map(not_two, Source(log, 3), Source(log, 2)),
    "filter": lambda log: filter(not_two, Source(log, 3)),
    "filter by truth": lambda log: filter(None, Source(log, 2)),
    "zip": lambda log: zip(Source(log, 2), Source(log, 3), strict=False),
    "zip strictly": lambda log: zip(Source(log, 2), Source(log, 3), strict=True),
    "zip of one that fails": lambda log: zip(Source(log, 3), Source(log, 3, 2), strict=False),
    "enumerate": lambda log: enumerate(Source(log, 3, 2)),
    "accumulate": lambda log: itertools.accumulate(Source(log, 3)),
    "accumulate by a function": lambda log: itertools.accumulate(Source(log, 3, 3), not_two, initial=10),
    "compress": lambda log: itertools.compress("abcd", map(Key, Source(log, 3))),
    "filterfalse": lambda log: itertools.filterfalse(not_two, Source(log, 3)),
    "starmap": lambda log: itertools.starmap(not_two, zip(Source(log, 3), Source(log, 3), strict=False)),
    "starmap of no rows": lambda log: itertools.starmap(not_two, Source(log, 2)),
    "takewhile": lambda log: itertools.takewhile(not_two, Source(log, 3)),
    "dropwhile": lambda log: itertools.dropwhile(not_two, Source(log, 3)),
    "islice": lambda log: itertools.islice(Source(log, 3, 2), 5),
    "cycle": lambda log: itertools.cycle(Source(log, 3, 2)),
    "chain": lambda log: itertools.chain(Source(log, 3, 2), Source(log, 1)),
    "pairwise": lambda log: itertools.pairwise(Source(log, 3, 2)),
    "zip_longest": lambda log: itertools.zip_longest(Source(log, 2), Source(log, 3, 2)),
    "groupby": lambda log: map(first, itertools.groupby(Source(log, 3), not_two)),
    "tee": lambda log: itertools.chain(*itertools.tee(Source(log, 2), 3)),
    "count": lambda log: itertools.count(1, Key(2)),
    "called until": lambda log: iter(functools.partial(not_two_of, Source(log, 3)), 3),
    "sequence": lambda log: iter(OfItems()),
    "stops with a value": lambda log: map(ends, Source(log, 2)),
}


@pytest.mark.parametrize("breaks", [False, True], ids=["whole", "across a break"])
@pytest.mark.parametrize("maker", MAKERS.values(), ids=MAKERS)
def test_iterators_ask_what_they_take_from_as_in_python(maker, breaks):
    def program(x):
        log, given = [], []
        iterator = maker(log)
        for turn in range(7):
            if breaks and turn == 3:
                print(end="")
            try:
                given.append(next(iterator))
            except StopIteration:
                given.append("end")
            except Exception as error:
                given.append((type(error), str(error)))
        return (x + len(given)).sum().item(), given, log

    x = torch.ones(2)
    compiled = plumbline.compile(program, backend="eager")
    for _ in range(2):
        assert compiled(x) == program(x)


MADE = {
    "product": lambda: itertools.product([1, 2], [3], repeat=2),
    "permutations": lambda: itertools.permutations([1, 2]),
    "combinations": lambda: itertools.combinations([1, 2, 3], 2),
    "zip of nothing": lambda: zip(),
    "finditer": lambda: re.finditer("a", "aaa"),
}


@pytest.mark.parametrize("maker", MADE.values(), ids=MADE)
@pytest.mark.parametrize("taken", [0, 1, 9])
def test_iterators_behind_a_break_are_of_their_type(maker, taken):
    def program(x):
        iterator = maker()
        for _ in range(taken):
            next(iterator, None)
        print(end="")
        return x + 1, type(iterator), repr(iterator).partition(" at ")[0], len(list(iterator))

    x = torch.ones(2)
    assert plumbline.compile(program, backend="eager")(x)[1:] == program(x)[1:]


def test_copies_of_a_copy():
    def program(x):
        first = itertools.tee(iter([x, x + 1]))[0]
        copies = itertools.tee(first)
        return [copies[0] is first, *(value.sum().item() for copy in copies for value in copy)]

    x = torch.ones(2)
    assert plumbline.compile(program, backend="eager")(x) == program(x)
