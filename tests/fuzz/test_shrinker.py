"""Shrinking finds the same and counts the same, however many variants are tried side by side."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plumbline.fuzz.findings import FuzzSignature, TrialResult
from plumbline.fuzz.shrinker import ShrinkBudget, shrink
from plumbline.oracle.verdict import Verdict, VerdictKind

FAILS = FuzzSignature("WRONG", "values", "")


def tried(example, needed):
    fails = needed <= set(example)
    kind = VerdictKind.WRONG if fails else VerdictKind.EQUAL
    return TrialResult(Verdict(kind, ""), FAILS if fails else None, example=example)


def without_one(example):
    """Give every variant twice: what was tried is not tried again."""
    for place in range(len(example)):
        yield example[:place] + example[place + 1 :]
        yield example[:place] + example[place + 1 :]


def shrunk(example, needed, at_once, tries):
    asked, kept = [], []

    def attempt(examples):
        asked.extend(examples)
        return [tried(one, needed) for one in examples]

    budget = ShrinkBudget(tries, 60.0)
    smallest = shrink(tried(example, needed), attempt, without_one, budget, kept.append, at_once=at_once)
    return smallest.example, budget.used, [trial.example for trial in kept], asked


@given(
    example=st.lists(st.integers(0, 9), min_size=1, max_size=12).map(tuple),
    data=st.data(),
    at_once=st.integers(2, 7),
    tries=st.integers(0, 40),
)
def test_variants_side_by_side_find_the_same(example, data, at_once, tries):
    needed = set(data.draw(st.lists(st.sampled_from(example), max_size=3)))
    alone, together = shrunk(example, needed, 1, tries), shrunk(example, needed, at_once, tries)
    assert together[:3] == alone[:3]
    assert len(alone[3]) == alone[1] <= tries
    assert len(alone[3]) == len(set(alone[3]))


@pytest.mark.parametrize("at_once", [1, 3])
def test_nothing_that_is_not_needed_is_left(at_once):
    smallest, used, kept, _ = shrunk(tuple(range(10)), {3, 7}, at_once, 200)
    assert smallest == (3, 7)
    assert len(kept) == 8
    assert used < 60
