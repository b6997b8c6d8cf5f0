"""What ends in a judged call, or cannot be undone after it, is as without the judge; texts that name addresses."""

import pytest
import torch

from plumbline.oracle import VerdictKind, check

ENDS: list[object] = []
STOCK: list[object] = []
TAGS: set[object] = set()


class Ending:
    def __init__(self, name):
        self.name = name

    def __del__(self):
        ENDS.append(self.name)


def judged(function):
    return check(function, (torch.ones(2),), compiled=function).kind


def test_what_runs_have_put_into_containers_ends_before_the_next_run():
    def step(x):
        STOCK.append(Ending("made"))
        ENDS.append(len(STOCK))
        return x * 2

    ENDS.clear()
    STOCK.clear()
    assert [judged(step) for _ in range(3)] == [VerdictKind.EQUAL] * 3
    assert ENDS == [1, 2, 3]
    STOCK.clear()


def test_what_is_returned_and_has_a_finaliser_is_made_once():
    ENDS.clear()
    assert judged(lambda x: (x * 2, Ending("returned"))) is VerdictKind.NO_REFERENCE
    assert ENDS == ["returned"]


@pytest.mark.parametrize("first", [(1, 9, 3), (9, 1, 3), (17, 9, 1), (0, 8, 16, 5)])
@pytest.mark.parametrize("added", [(2,), (2, 4, 6, 7, 10, 11)], ids=["same_table", "larger_table"])
def test_a_set_lies_as_before(first, added):
    found = []

    def step(x):
        found.append(list(TAGS))
        TAGS.update(added)
        return x * 2

    TAGS.clear()
    TAGS.update(first)  # these want one place in a table of eight
    before = list(TAGS)
    judged(step)
    assert found == [before] * len(found)


def test_a_view_of_memory_is_released_once():
    view, outcomes = memoryview(b"abc"), []

    def step(x):
        with view:
            outcomes.append(len(view))
        return x * 2

    assert judged(step) is VerdictKind.NO_REFERENCE
    assert outcomes == [3]


def test_a_full_stack_is_no_finding():
    calls = []

    def deeper(x):
        calls.append(1)
        return deeper(x * 2)

    assert check(deeper, (torch.ones(2),), compiled=lambda x: deeper(x)).kind is VerdictKind.NO_REFERENCE


def test_texts_that_differ_in_addresses():
    kept = []

    def step(x):
        kept.append(object())
        return x * 2, repr(kept[-1])

    def other(x):
        return x * 2, repr(object()).replace("object", "subject")

    assert judged(step) in (VerdictKind.EQUAL, VerdictKind.NO_REFERENCE)
    assert check(step, (torch.ones(2),), compiled=other).kind is VerdictKind.WRONG
