"""That `match[n]` has no group was taken to be of the type: later calls raised what the first had."""

import re

import pytest

import plumbline

MATCH = re.match("(a)(b)?", "a")


def group(number):
    try:
        return [MATCH[number]]
    except IndexError as error:
        return [type(error)]


@pytest.mark.parametrize("numbers", [(5, 0, 1), (0, 5, 1), (-1, 2, 0)])
def test_an_index_that_has_no_group_is_asked_again(numbers):
    compiled = plumbline.compile(group, backend="eager")
    assert [compiled(number) for number in numbers] == [group(number) for number in numbers]
