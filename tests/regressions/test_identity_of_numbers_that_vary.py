"""Found by `fuzz programs`: `(n > 1) is True` stayed False once `n` had changed, and so did `case [_, True]`."""

import pytest
import torch

import plumbline

NUMBERS = [(0, 3), (5, 5), (-1, 2), (7, 7), (3, 1), (1, 1), (0, 0), (300, 300), (3, 3)]


def compared(x, n, m):
    first, second = n > 1, m > 1
    return x, first is True, first is False, first is second, first is not second, first is not None


def branching(x, n, m):
    if (n > m) is True:
        return x + 1
    return x - 1


def matched(x, n, m):
    match (3, n > 0.25):
        case [number, False] if number:
            return number
        case [number, True]:
            return -number


def matched_or(x, n, m):
    match (n, n > 1):
        case [0, _] | [_, True]:
            return x + n
    return x


def small_whole_numbers(x, n, m):
    zero = 0
    return n is m, n + zero is m, n is zero, n is None


def sizes(x, n, m):
    return x.new_ones(n + 9).shape[0] is n + 9 if n < 100 else None


PROGRAMS = [compared, branching, matched, matched_or, small_whole_numbers, sizes]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_it_is_that_of_plain_python(program) -> None:
    compiled = plumbline.compile(program, backend="eager")
    pairs = [(n, m) for n, m in NUMBERS if program is not small_whole_numbers or n < 256]
    for n, m in pairs:
        assert repr(compiled(torch.ones(2), n, m)) == repr(program(torch.ones(2), n, m)), (n, m)


def test_truth_values_that_vary_are_numbers() -> None:
    def program(x, n, m):
        first, second = n > 1, m > 1
        one = 1
        log = [first == 1, first == 0, first != one, one == first, first < second, first + second, first == second]
        match first:
            case 1:
                log.append("one")
            case bool():
                log.append("bool")
        return x + 1, log, (n == first), {1: "a", 0: "b"}[first]

    compiled = plumbline.compile(program, backend="eager")
    for n, m in NUMBERS:
        assert repr(compiled(torch.ones(2), n, m)) == repr(program(torch.ones(2), n, m)), (n, m)
