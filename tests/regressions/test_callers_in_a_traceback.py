"""The traceback of an operation that fails names the lines that called, as plain Python's does."""

import traceback

import pytest
import torch

import plumbline


def refused(x):
    y = x.relu()
    return y ^ 4


def refused_after_a_break(x):
    y = x.relu()
    print(end="")
    return (y + 1) ^ 4


def in_between(x):
    return refused(x + 1)


def not_caught(x):
    try:
        return refused_after_a_break(x + 1)
    except ZeroDivisionError:
        return x


def cleaned_up(x):
    try:
        return refused_after_a_break(x)
    finally:
        x = x + 1


def caught(x):
    try:
        return in_between(x)
    except RuntimeError:
        return user_lines(traceback.format_exc())


def caught_after_a_break(x):
    print(end="")
    try:
        return refused_after_a_break(x)
    except RuntimeError:
        return user_lines(traceback.format_exc())


def chained(x):
    try:
        return in_between(x)
    except RuntimeError as error:
        raise ValueError("of another kind") from error


def user_lines(text):
    return [line for line in text.split("\n") if line.startswith("  File") and __file__ in line]


def outcome(function):
    try:
        return function(torch.ones(3))
    except Exception as error:
        return user_lines("".join(traceback.format_exception(error)))


@pytest.mark.parametrize("function", [in_between, not_caught, cleaned_up, caught, caught_after_a_break, chained])
def test_a_traceback_names_the_lines_that_called(function):
    def outermost(x):
        return [function(x * 2)]

    expected = outcome(outermost)
    compiled = plumbline.compile(outermost, backend="eager")
    assert [outcome(compiled) for _ in range(2)] == [expected] * 2
