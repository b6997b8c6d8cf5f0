"""Tensors that are alive together never overlap in the arena."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plumbline.compiler.base.errors import InternalError
from plumbline.compiler.schedule.memory_plan import Lifetime, plan_memory

LIVES = st.lists(st.tuples(st.integers(0, 300), st.integers(0, 9), st.integers(0, 5)), max_size=12)


@given(LIVES)
def test_live_slots_never_overlap(lives: list[tuple[int, int, int]]) -> None:
    lifetimes = [Lifetime(f"t{n}", size, first, first + length) for n, (size, first, length) in enumerate(lives)]
    plan = plan_memory(lifetimes)
    for number, one in enumerate(lifetimes):
        start = plan.offsets[one.name]
        assert start % 64 == 0
        assert start + one.size <= plan.arena_bytes
        for other in lifetimes[number + 1 :]:
            together = one.first <= other.last and other.first <= one.last
            other_start = plan.offsets[other.name]
            apart = start + one.size <= other_start or other_start + other.size <= start
            assert apart or not together or not one.size or not other.size


def test_slots_are_reused() -> None:
    chain = [Lifetime(f"t{n}", 1024, n, n + 1) for n in range(10)]
    assert plan_memory(chain).arena_bytes == 2048


def test_a_negative_size_is_refused() -> None:
    with pytest.raises(InternalError):
        plan_memory([Lifetime("t", -1, 0, 0)])
