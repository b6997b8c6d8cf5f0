"""Results of earlier calls, watched by the judge."""

import weakref
from dataclasses import dataclass

import torch

from plumbline.oracle.harness.earlier_results import EarlierResults
from plumbline.oracle.harness.session import JudgeSession


@dataclass
class Cache:
    keys: torch.Tensor


class WithCache(torch.nn.Module):
    def forward(self, x, cache=None):
        if cache is None:
            return Cache(x.sin())
        keys = cache.keys
        cache = Cache(keys + x)  # the argument is let go of in the middle of the frame
        return Cache(cache.keys * 2)


def test_what_the_judge_watches_is_captured_as_without_it() -> None:
    module, x = WithCache(), torch.randn(3)
    session = JudgeSession(compiler="plumbline", backend="eager")
    with session:
        for _ in range(3):
            cache = module(x)
            module(x, cache)
    assert [call.verdict.kind.value for call in session.calls] == ["EQUAL"] * len(session.calls)
    assert not session.statistics().breaks


def test_the_judges_references_are_not_those_of_the_program() -> None:
    cache = Cache(torch.ones(2))
    earlier = EarlierResults()
    earlier.note(cache)
    assert weakref.ref(cache) is not earlier.holders[0]
    assert earlier.holders[0]() is cache
    assert earlier.tensors[0]() is cache.keys
