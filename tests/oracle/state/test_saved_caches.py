"""Caches of functions: what a run added is taken out again where the cached function does more than give a value."""

import functools

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from plumbline.oracle.judge import judge_call
from plumbline.oracle.judge_options import JudgeOptions
from plumbline.oracle.state.saved_caches import SavedCache

NUMBERS = st.lists(st.integers(0, 9), max_size=8)


@given(before=NUMBERS, during=NUMBERS, after=NUMBERS, size=st.sampled_from([None, 0, 1, 3, 128]))
def test_what_was_added_is_gone(before, during, after, size):
    ran = []

    @functools.lru_cache(maxsize=size)
    def cached(n):
        ran.append(n)
        return {"n": n}

    for n in before:
        cached(n)
    saved = SavedCache(cached)
    misses = cached.cache_info().misses
    for n in during:
        cached(n)
    assert saved.is_filled() == (cached.cache_info().misses != misses)
    saved.restore()
    ran.clear()
    known = set(before) if size is None or size >= 8 else set()
    for n in after:
        assert cached(n) == {"n": n}
    if size is None or size >= 8:
        assert ran == list(dict.fromkeys(n for n in after if n not in known))
    assert cached.cache_info().currsize <= (100 if size is None else size)


def judged(program, calls):
    """Judge calls of a program, as a test under the plugin makes them, and return the verdicts."""
    kinds = []
    for n in calls:
        arguments = (torch.ones(2), n)
        judgement = judge_call(program, program, arguments, {}, JudgeOptions(), {"f": program, "arguments": arguments})
        kinds.append(judgement.verdict.kind.name)
    return kinds


@pytest.mark.parametrize("size", [None, 2])
def test_a_cached_function_that_counts_counts_once(size):
    ran = []

    @functools.lru_cache(maxsize=size)
    def counted(n):
        ran.append(n)
        return n * 2

    assert judged(lambda x, n: x * counted(n), [1, 1, 2, 1]) == ["EQUAL"] * 4
    assert ran == [1, 2]


def test_what_a_function_only_computes_stays_cached():
    @functools.lru_cache
    def doubled(n):
        return n * 2

    assert judged(lambda x, n: x * doubled(n), [1, 1]) == ["EQUAL"] * 2
    assert doubled.cache_info().misses == 1
