"""Found by hand: `made = [Ending("a")]; made.clear()` ended the element at the end of the segment.

A list that is made while capturing was not asked what it lets go of, nor was a name or a frame that holds one.
"""

import pytest
import torch

import plumbline


class Ending:
    def __init__(self, name: str, ends: list[str]) -> None:
        self.name, self.ends = name, ends

    def __del__(self) -> None:
        self.ends.append(self.name)


def cleared(x, ends):
    made = [Ending("a", ends)]
    made.clear()
    ends.append("end")
    return x + len(made)


def replaced(x, ends):
    made = [Ending("a", ends), Ending("b", ends)]
    made[0] = 1
    ends.append("middle")
    made[:] = [2]
    ends.append("end")
    return x + sum(made)


def deleted(x, ends):
    made = [Ending("a", ends), 1]
    del made[0]
    ends.append("end")
    return x + made[0]


def with_the_last_name(x, ends):
    made = [Ending("a", ends)]
    also = made
    made = None
    ends.append("middle")
    also = (Ending("b", ends), also)
    also = None
    ends.append("end")
    return x + 1


def with_the_frame(x, ends):
    def inner():
        made = [Ending("a", ends)]  # noqa: F841  # holds it
        also = {1: Ending("b", ends)}  # noqa: F841  # holds it
        ends.append("inside")
        return 3

    number = inner()
    ends.append("end")
    return x + number


def returned(x, ends):
    def inner():
        made = [Ending("a", ends)]
        return [made, 3]

    kept = inner()
    ends.append("end")
    return x + len(kept)


PROGRAMS = [cleared, replaced, deleted, with_the_last_name, with_the_frame, returned]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_what_a_new_list_holds_ends_where_plain_python_ends_it(program) -> None:
    def ended(function) -> list[str]:
        ends: list[str] = []
        function(torch.ones(2), ends)
        return ends

    assert ended(plumbline.compile(program, backend="eager")) == ended(program)
