"""After a break inside a loop over a dictionary, the loop went on outside of any graph: the iterator was not known."""

import pytest
import torch

import plumbline
from support.programs import Corpus, check

corpus = Corpus()
program = corpus.program
A = torch.tensor([1.0, 2.0])


@program(A, graphs=3, breaks=2)
def values_across_breaks(a):
    for factor in {"a": 2, "b": 3}.values():
        a = a * factor
        print("woo")
    return a + 1


@program(A, graphs=2, breaks=1)
def items_after_a_break_in_the_first_turn(a):
    for name, factor in {"a": 2, "b": 3, "c": 4}.items():
        a = a * factor
        if name == "a":
            print("woo")
    return a + 1


@program(A, graphs=2, breaks=1)
def keys_are_counted_to_their_end(a):
    keys = iter({"a": 2, "b": 3})
    a = a * len(next(keys))
    print("woo")
    return a + 1, next(keys), list(keys), next(keys, "none")


@corpus.parametrize()
def test_program(program):
    check(program)


def grows(a, table):
    for name in table:
        a = a + 1
        print(end="")
        table[name * 2] = 1
    return a


def grows_behind_the_break(a, table):
    for _ in table:
        a = a + 1
        print(end="")
        grow(table)
        print(end="")
    return a


@plumbline.disable
def grow(table):
    table[str(len(table))] = 1


@pytest.mark.parametrize("function", [grows, grows_behind_the_break])
def test_a_dictionary_that_grows_is_refused_as_in_eager(function):
    for run in (function, plumbline.compile(function, backend="eager")):
        with pytest.raises(RuntimeError, match="dictionary changed size during iteration"):
            run(A, {"a": 1, "b": 2})
