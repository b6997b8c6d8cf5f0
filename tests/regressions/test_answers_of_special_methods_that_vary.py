"""Answers of `__len__` and its like were not checked once they varied, nor where one was an object with `__index__`."""

import operator

import pytest

import plumbline


class Sized:
    def __init__(self, answer):
        self.answer = answer

    def __len__(self):
        return self.answer


class Judged(Sized):
    def __bool__(self):
        return self.answer


class Hashed(Sized):
    def __hash__(self):
        return self.answer


class Hinting:
    def __init__(self, answer):
        self.answer = answer

    def __length_hint__(self):
        return self.answer


class Three:
    def __index__(self):
        return 3


@pytest.mark.parametrize(("ask", "kind"), [(len, Sized), (bool, Sized), (bool, Judged), (hash, Hashed), (list, Sized)])
def test_whole_numbers_and_others(ask, kind):
    def step(thing):
        try:
            return ask(thing)
        except (TypeError, ValueError) as error:
            return type(error), str(error)

    compiled = plumbline.compile(step, backend="eager")
    for answer in (1, 2, -1, 3, True, 2.5, 0, 1.5):
        assert compiled(kind(answer)) == step(kind(answer)), answer


def test_hints():
    def step(thing):
        try:
            return operator.length_hint(thing)
        except (TypeError, ValueError) as error:
            return type(error), str(error)

    compiled = plumbline.compile(step, backend="eager")
    for answer in (1, 2, -3, 1.5, 2.5):
        assert compiled(Hinting(answer)) == step(Hinting(answer)), answer


def test_an_object_that_is_an_index():
    assert plumbline.compile(len, backend="eager")(Sized(Three())) == 3


def test_powers_beyond_the_whole_numbers_of_torch():
    def step(base, exponent):
        return base**exponent, base**4, exponent % 3

    compiled = plumbline.compile(step, backend="eager", dynamic=True)
    for base, exponent in ((2**61, 4), (7, 5), (2, 100), (2**61, 5)):
        assert compiled(base, exponent) == step(base, exponent)
