"""`a is b` of two floats, texts or large integers, and NaN in containers, held what they were at the first call."""

import math

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
