"""A lineage draws as its seeds do; a child shares the first numbers of its parent and no others."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plumbline.fuzz.coverage.lineage_draws import LineageDraws, child_of


def numbers(lineage, count):
    draws = LineageDraws(lineage)
    return [draws.getrandbits(20) for _ in range(count)]


def test_one_seed_draws_as_the_generator_of_that_seed():
    ours, plain = LineageDraws("0:17:0"), random.Random("0:17:0")
    for draw in (
        lambda one: one.randrange(10**12),
        lambda one: one.choice("abcdef"),
        lambda one: one.sample(range(100), 7),
        lambda one: one.choices("ab", (1, 3), k=5),
        lambda one: one.uniform(-1, 1),
    ):
        assert draw(ours) == draw(plain)
    assert ours.taken > 5


@given(cuts=st.lists(st.integers(0, 12), min_size=1, max_size=5))
def test_a_child_has_the_first_numbers_of_its_parent_and_then_those_of_its_own_seed(cuts):
    lineage = "seed 0"
    for generation, cut in enumerate(cuts, 1):
        child = child_of(lineage, cut, f"seed {generation}")
        parents, own, children = numbers(lineage, 20), numbers(f"seed {generation}", 20), numbers(child, 20)
        assert children[:cut] == parents[:cut]
        assert children[cut:] == own[: 20 - cut]
        lineage = child


@pytest.mark.parametrize(("cut", "child"), [(0, "new"), (3, "a@3/new"), (5, "a@5/new"), (8, "a@5/b@3/new")])
def test_a_lineage_is_text(cut, child):
    assert child_of("a@5/b", cut, "new") == child
