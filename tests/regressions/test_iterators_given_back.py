"""Iterators that leave a capture: their types, their positions, and what they see of later changes."""

import collections

import torch

from plumbline.compiler.base.options import Options
from plumbline.compiler.pipeline import compile_callable, make_family
from support.programs import Corpus, check

corpus = Corpus()
program = corpus.program
A = torch.arange(6.0).reshape(2, 3)


def shown(iterator):
    return type(iterator).__name__, list(iterator)


def outside(iterators):
    return [shown(iterator) for iterator in iterators]


@program(A)
def reversed_sequences(x):
    return x + 1, [type(one).__name__ for one in (reversed([1]), reversed((1,)), reversed("a"), reversed({1: 2}))]


@program(A, graphs=1, breaks=2)
def a_reversed_list_sees_later_changes(x):
    items = [1, 2, 3, 4]
    iterator = reversed(items)
    first = next(iterator)
    items[0] = 9
    items.pop()
    print("between")
    items[1] = 7
    return x * 2, first, list(iterator)


@program(A)
def a_reversed_list_that_became_too_short(x):
    items = [1, 2, 3]
    iterator = reversed(items)
    items.clear()
    rest = list(iterator)
    items.extend([5, 6, 7])
    return x * 2, rest, list(iterator)


@program(A)
def rows_of_a_reversed_tensor_are_copies(x):
    rows = list(reversed(x))
    rows[0].add_(10)
    return x * 2, rows, type(reversed(x)).__name__


GROWN = [1]


@program(A, state=lambda: GROWN)
def iterators_over_a_list_that_grows(x):
    GROWN.extend(GROWN)
    used, half = iter(GROWN), iter(GROWN)
    rest = list(used)
    next(half)
    return x + 1, rest, used, half


@corpus.parametrize()
def test_programs(program):
    check(program)


def test_types_survive_the_end_of_a_capture():
    def run(x):
        ordered = collections.OrderedDict(a=1, b=2)
        pairs = iter(ordered.items())
        next(pairs)
        last = reversed(collections.deque([1, 2, 3]))
        next(last)
        plain = [reversed([1, 2]), reversed((1, 2)), reversed("ab"), iter("ab"), iter({1: 2}), iter({5}), pairs, last]
        return x + 1, [*plain, reversed({1: 2, 3: 4}), zip([1], [2], strict=False), enumerate([1, 2]), map(str, [1])]

    family = make_family("eager", Options(strict=True), fullgraph=False, dynamic=None)
    assert outside(compile_callable(run, family)(A)[1]) == outside(run(A)[1])
