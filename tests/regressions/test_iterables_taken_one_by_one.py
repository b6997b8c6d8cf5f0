"""What takes an iterable took all of it first: `l.extend(generator)` lost what came before an error."""

import itertools

import pytest
import torch

import plumbline
from plumbline.compiler.base.events import recording, swallowed_error
from support.played_programs import difference_of

PROGRAM = """
import collections
import functools
import heapq
import itertools
import math
import operator

log = []
numbers, table, ordered, members = [], {}, collections.OrderedDict(), set()
queue, counted, row = collections.deque(maxlen=5), collections.Counter(), type('Row', (list,), {})()
floats = {'a': 1.5, 'b': 2.0}

class Seen:
    def __init__(self, number):
        self.number = number

    def __hash__(self):
        log.append(('hash', self.number))
        return self.number

    def __eq__(self, other):
        return self.number == other.number

    def __lt__(self, other):
        log.append(('<', self.number))
        return self.number < other.number

    def __gt__(self, other):
        log.append(('>', self.number))
        return self.number > other.number

    def __add__(self, other):
        log.append(('+', self.number))
        return Seen(self.number + other.number)

def ok():
    for i in range(3):
        log.append((i, len(numbers), len(table), len(ordered), len(members), len(queue), len(row)))
        yield i

def bad():
    yield from ok()
    raise KeyError('bad')

def pairs():
    for i in ok():
        yield i, i
    yield 3

def seen():
    for i in range(3):
        log.append(i)
        yield Seen(i)

def told(value):
    log.append(value)
    return 0

def both(many):
    a, b = many
    return a, b

def attempt(call):
    try:
        answer = call()
    except Exception as error:
        answer = type(error), str(error)
    return getattr(answer, 'number', answer) if type(answer) in (int, bool, list, tuple, Seen) else None

def step(x):
    answer = attempt(lambda: TEXT)
    return answer, list(numbers), dict(table), list(ordered), list(queue), dict(counted), list(row), x + 1
"""
TAKERS = (
    "numbers.extend({})",
    "numbers.__iadd__({})",
    "row.extend({})",
    "row.__init__({})",
    "queue.extend({})",
    "queue.extendleft({})",
    "table.update({})",
    "ordered.update({})",
    "dict({})",
    "members.update([9], {})",
    "{{1, 2}}.issuperset({})",
    "{{1, 2}}.isdisjoint({})",
    "counted.update({})",
    "functools.reduce(lambda a, b: told(b), {})",
    "max({}, key=told)",
    "math.prod({})",
    "both({})",
)


@pytest.mark.parametrize("given", ["ok()", "bad()", "pairs()"])
@pytest.mark.parametrize("taker", TAKERS)
def test_each_is_taken_when_it_is_asked_for(taker, given):
    assert difference_of(PROGRAM.replace("TEXT", taker.format(given))) == ""


@pytest.mark.parametrize(
    "text",
    [
        "sum(seen(), Seen(5))",
        "max(seen())",
        "heapq.nsmallest(1, seen())",
        "len(set(seen()))",
        "len(dict.fromkeys(seen()))",
        "functools.reduce(operator.add, seen())",
        "Seen(1) in {Seen(1): 2}",
        "list(itertools.zip_longest(ok(), map(told, ok()), fillvalue=7))",
        "list(itertools.combinations(ok(), r=2))",
        "list(itertools.islice(ok(), -1))",
        "list(itertools.permutations(ok(), -1))",
        "functools.reduce(operator.add, 5)",
        "sum([1, 2], '')",
        "sum([.1] * 10)",
        "sum(.1 for _ in range(10))",
        "list(bytes(iter([1, 2, 3])))",
        "list(bytes({1: 2}.keys()))",
        "[math.fsum(floats.values())]",
        "[math.fsum(iter([1.5, 2.0]))]",
        "[hash(Seen(2**61 + 5))]",
    ],
)
def test_what_is_done_in_between(text):
    assert difference_of(PROGRAM.replace("TEXT", text)) == ""


def refused(call):
    try:
        return call()
    except (TypeError, ValueError) as error:
        return type(error), str(error)


COUNTS = {
    "product": lambda x: refused(lambda: list(itertools.product([1], repeat=-1))),
    "tee": lambda x: refused(lambda: itertools.tee([1], -1)),
    "no tee": lambda x: refused(lambda: itertools.tee(5, 0)),
}


@pytest.mark.parametrize("program", COUNTS.values(), ids=COUNTS)
def test_counts_below_zero(program):
    with recording() as events:
        assert plumbline.compile(program, backend="eager")(torch.zeros(1)) == program(torch.zeros(1))
    assert [error for event in events if (error := swallowed_error(event))] == []
