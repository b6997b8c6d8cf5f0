"""Iterators over containers that change: an ended one began again, a refusal ended, values were read too early."""

import collections
import copy

import hypothesis
import pytest
import torch
from hypothesis import strategies

import plumbline
from plumbline.compiler.base.options import Options
from plumbline.compiler.pipeline import compile_callable, make_family
from support.programs import Corpus, check

corpus = Corpus()
program = corpus.program
A = torch.tensor([1.0, 2.0])


def step(iterator, log):
    try:
        log.append(next(iterator))
    except Exception as error:
        log.append(repr(error))


@program(A)
def ended_iterators_stay_ended(x):
    log, table, ordered, members = [], {}, collections.OrderedDict(a=1), set()
    for container, grow in ((table, table.__setitem__), (ordered, ordered.__setitem__)):
        for iterator in (iter(container), reversed(container), iter(container.items())):
            step(iterator, log)
            step(iterator, log)
            grow(len(log), 1)
            step(iterator, log)
    iterator = iter(members)
    step(iterator, log)
    members.add(1)
    step(iterator, log)
    return x * 2, log


@program(A)
def refusals_last(x):
    log, table, members = [], {1: 1}, {1}
    iterators = [iter(table), iter(members)]
    table[2] = 2
    members.add(2)
    for _ in range(2):
        for iterator in iterators:
            step(iterator, log)
        table.pop(2, None)
        members.discard(2)
    return x * 2, log, [iterator.__length_hint__() for iterator in iterators]


@program(A)
def exchanged_keys(x):
    log, table = [], {1: 1}
    iterator = iter(table)
    step(iterator, log)
    del table[1]
    table[2] = 2
    step(iterator, log)
    step(iterator, log)
    return x * 2, log


@program(A)
def values_are_read_when_they_are_reached(x):
    table, log = {"a": 1, "b": 2}, []
    iterators = iter(table.values()), iter(table.items()), reversed(table.values())
    for number in range(2):
        table["a"], table["b"] = number + 3, number + 5
        for iterator in iterators:
            step(iterator, log)
    return x * 2, log


@program(A)
def moving_in_an_ordered_dictionary(x):
    table, log = collections.OrderedDict(a=1, b=2), []
    iterator = iter(table)
    step(iterator, log)
    table.move_to_end("a")
    step(iterator, log)
    step(iterator, log)
    return x * 2, log


@program(A)
def a_reversed_deque(x):
    queue, log = collections.deque([1, 2, 3]), []
    iterator = reversed(queue)
    step(iterator, log)
    queue[0] = 9
    log.append(iterator.__length_hint__())
    step(iterator, log)
    queue.append(4)
    step(iterator, log)
    step(iterator, log)
    return x * 2, log


@corpus.parametrize()
def test_program(program):
    check(program)


@plumbline.disable
def outside():
    pass


def change(container, action, key, number):
    if action == "move" and isinstance(container, collections.OrderedDict):
        container.move_to_end(key, last=number > 3)
    elif action == "clear":
        container.clear()
    elif isinstance(container, dict):
        if action == "set":
            container[key] = number
        elif action == "del":
            del container[key]
        else:
            container.popitem()
    elif isinstance(container, set):
        if action == "set":
            container.add(key)
        elif action == "del":
            container.remove(key)
        else:
            container.discard(key)
    elif action == "set":
        container.append(number)
    elif action == "del":
        del container[0]
    elif action == "pop":
        container.pop()
    else:
        container[0] = number


WAYS = {
    "iter": iter,
    "reversed": reversed,
    "values": lambda table: iter(table.values()),
    "items": lambda table: iter(table.items()),
    "reversed items": lambda table: reversed(table.items()),
}
CONTAINERS = {
    "dict": {"a": 1, "b": 2},
    "mixed keys": {1: 1, "b": 2, "c": 3},
    "ordered": collections.OrderedDict(a=1, b=2),
    "set": {1, 2, 9},
    "list": [1, 2],
    "deque": collections.deque([1, 2]),
    "bounded": collections.deque([1, 2], maxlen=2),
}
KEYS = strategies.sampled_from(["a", "b", "c", 1, 9])
CHANGES = strategies.tuples(
    strategies.sampled_from(["set", "del", "clear", "move", "pop"]), KEYS, strategies.integers(3, 5)
)
STEPS = strategies.lists(
    CHANGES | strategies.sampled_from([("next",), ("next",), ("hint",), ("break",)]), min_size=2, max_size=8
)


def perform(container, iterator, steps, log):
    for action, *rest in steps:
        try:
            if action == "next":
                log.append(next(iterator))
            elif action == "hint":
                if not isinstance(container, collections.OrderedDict):
                    log.append(iterator.__length_hint__())
            elif action == "break":
                outside()
            else:
                change(container, action, *rest)
        except Exception as error:
            log.append(repr(error))


@hypothesis.settings(max_examples=60)
@hypothesis.given(
    strategies.sampled_from(sorted(CONTAINERS)),
    strategies.sampled_from(sorted(WAYS)),
    strategies.booleans(),
    STEPS,
)
def test_random_changes(name, way, inside, steps):
    container, make = CONTAINERS[name], WAYS[way]
    hypothesis.assume(
        isinstance(container, dict) or (way in ("iter", "reversed") and (name, way) != ("set", "reversed"))
    )

    def run(given):
        if inside:
            given = type(given)(given) if name != "bounded" else collections.deque(given, maxlen=2)
        log = []
        iterator = make(given)
        perform(given, iterator, steps, log)
        return log, type(iterator).__name__, given, list(given)

    compiled = plumbline.compile(run, backend="eager")
    assert compiled(copy.copy(container)) == run(copy.copy(container))


@pytest.mark.parametrize("give", [iter, reversed, lambda table: iter(table.items())])
def test_an_ended_iterator_leaves_a_capture_ended(give):
    def run(x):
        table = {1: 2}
        iterator = give(table)
        list(iterator)
        table[3] = 4
        return x + 1, iterator, table

    family = make_family("eager", Options(strict=True), fullgraph=False, dynamic=None)
    _, iterator, table = compile_callable(run, family)(A)
    table[5] = 6
    assert type(iterator) is type(give({}))
    assert list(iterator) == []
