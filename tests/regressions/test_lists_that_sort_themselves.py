"""The key function of `list.sort` saw the list full, where Python empties it, and what it added went unnoticed."""

import pytest

import plumbline


def by_length(numbers, log):
    numbers.sort(key=lambda number: (log.append(len(numbers)), number)[1])


def with_an_append(numbers, log):
    numbers.sort(key=lambda number: numbers.append(number) or number)


def with_an_error(numbers, log):
    numbers.sort(key=lambda number: 1 // (number - 1))


def backwards(numbers, log):
    numbers.sort(reverse=True)


@pytest.mark.parametrize("sort", [by_length, with_an_append, with_an_error, backwards])
def test_as_python_sorts(sort):
    def outcome(step):
        numbers, log = [2, 3, 1], []
        try:
            step(numbers, log)
        except (ValueError, ZeroDivisionError) as error:
            log.append(str(error))
        return sorted(numbers) if sort is with_an_error else numbers, log

    compiled = plumbline.compile(sort, backend="eager")
    assert [outcome(compiled) for _ in range(2)] == [outcome(sort) for _ in range(2)]
