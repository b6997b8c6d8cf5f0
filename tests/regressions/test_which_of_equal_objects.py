"""`a is b` of two floats, texts or large integers, and NaN in containers, held what they were at the first call.

Numbers and texts from outside were given back as equal ones, and their `id()` was that of a literal.
"""

import math
import types

import pytest

import plumbline

ONE, SAME, OTHER = float("1.5"), float("1.5"), float("2.5")
NAN, NAN_TOO = float("nan"), float("nan")
WORDS, SAME_WORDS = "".join(["two", " words"]), "".join(["two", " words"])
LARGE, SAME_LARGE = int("1000"), int("1000")

CALLS = {
    "floats": [(ONE, ONE), (ONE, SAME), (SAME, SAME), (OTHER, OTHER), (ONE, OTHER)],
    "two floats first": [(ONE, SAME), (ONE, ONE)],
    "texts": [(WORDS, WORDS), (WORDS, SAME_WORDS), (SAME_WORDS, SAME_WORDS)],
    "two texts first": [(WORDS, SAME_WORDS), (WORDS, WORDS)],
    "integers": [(LARGE, LARGE), (LARGE, SAME_LARGE), (5, 5), (7, 7), (9, 10)],
}


def outcomes(step, calls):
    return [step(*arguments) for arguments in calls]


@pytest.mark.parametrize("name", CALLS)
def test_two_arguments(name):
    def step(left, right):
        return left is right, left is not right

    assert outcomes(plumbline.compile(step, backend="eager"), CALLS[name]) == outcomes(step, CALLS[name])


@pytest.mark.parametrize("dynamic", [None, False, True])
@pytest.mark.parametrize("name", CALLS)
def test_numbers_of_identities(name, dynamic):
    def step(left, right):
        return id(left) == id(right), len({id(left), id(right)}), {id(left): 1, id(right): 2}[id(left)]

    assert outcomes(plumbline.compile(step, backend="eager", dynamic=dynamic), CALLS[name]) == outcomes(
        step, CALLS[name]
    )


@pytest.mark.parametrize("dynamic", [None, False, True])
@pytest.mark.parametrize("name", CALLS)
def test_results_are_the_objects_themselves(name, dynamic):
    kept = types.SimpleNamespace()

    def step(left, right):
        kept.left = left
        return left, [right], id(left), kept.__dict__

    compiled = plumbline.compile(step, backend="eager", dynamic=dynamic)
    for left, right in CALLS[name]:
        first, (second,), number, attributes = compiled(left, right)
        assert first is left
        assert second is right
        assert number == id(left)
        assert attributes["left"] is left


@pytest.mark.parametrize("dynamic", [None, False, True])
@pytest.mark.parametrize("name", CALLS)
def test_behind_a_break(name, dynamic):
    def step(left, right):
        numbers, kept = [id(left), id(right)], [left, right]
        print(end="")
        return kept[0] is left, kept[1] is right, numbers[0] == id(left), numbers[1] == id(right), left is right

    compiled = plumbline.compile(step, backend="eager", dynamic=dynamic)
    assert outcomes(compiled, CALLS[name]) == outcomes(step, CALLS[name])


@pytest.mark.parametrize("first", [WORDS, SAME_WORDS])
def test_an_argument_and_a_global(first):
    def step(text):
        return text is WORDS

    calls = [(first,), (WORDS,), (SAME_WORDS,)]
    assert outcomes(plumbline.compile(step, backend="eager"), calls) == outcomes(step, calls)


@pytest.mark.parametrize("calls", [[(NAN, NAN), (NAN, NAN_TOO)], [(NAN, NAN_TOO), (NAN, NAN)], [(math.nan, 1.0)] * 2])
def test_nan_is_found_by_its_identity(calls):
    def step(number, kept):
        return number in [kept], (number,) == (kept,), [kept].count(number)

    assert outcomes(plumbline.compile(step, backend="eager"), calls) == outcomes(step, calls)


def test_nan_as_a_key():
    def step(number, key):
        return {key: 1}.get(number), number in {key}

    calls = [(NAN, NAN), (NAN, NAN_TOO), (1.0, 1.0), (1.0, NAN)]
    assert outcomes(plumbline.compile(step, backend="eager"), calls) == outcomes(step, calls)
