"""The answer of an `lru_cache` was part of the specialisation even after the cache had been cleared."""

import functools

import torch

import plumbline


def test_a_cleared_cache_calls_the_function_again():
    scale, calls = 2, []

    @functools.lru_cache
    def table(n):
        calls.append(n)
        return n * scale

    compiled = plumbline.compile(lambda x, n: x * table(n), backend="eager")
    assert compiled(torch.ones(1), 3).item() == 6
    assert compiled(torch.ones(1), 3).item() == 6
    scale = 5
    table.cache_clear()
    assert compiled(torch.ones(1), 3).item() == 15
    assert calls == [3, 3]


def test_an_answer_that_was_pushed_out_is_asked_for_again():
    calls = []

    @functools.lru_cache(maxsize=1)
    def table(n):
        calls.append(n)
        return n

    compiled = plumbline.compile(lambda x: x * table(3), backend="eager")
    compiled(torch.ones(1))
    table(4)
    compiled(torch.ones(1))
    assert calls == [3, 4, 3]
