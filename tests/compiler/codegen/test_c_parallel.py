"""Threads share kernels without changing a bit of the results, and as many as torch allows."""

from collections.abc import Callable, Iterator

import pytest
import torch

from plumbline.compiler.base.events import Artifact, recording
from plumbline.compiler.base.options import Options
from plumbline.compiler.graph.tracer import trace
from plumbline.compiler.native import compile_graph

pytestmark = pytest.mark.cc
PROGRAMS: dict[str, Callable[[torch.Tensor], object]] = {
    "pointwise": lambda x: (x.sin() + 1).relu(),
    "tails": lambda x: x.reshape(-1)[:70_001] * 2,
    "rows": lambda x: x.softmax(-1),
    "columns": lambda x: (x.sum(0), x.amax(0)),
    "transposed": lambda x: (x.t() * 2).contiguous(),
    "all": lambda x: x.sum(),
    "gathered": lambda x: x[torch.arange(0, 64, 1)] + 1,
}


@pytest.fixture(autouse=True)
def _restored_threads() -> Iterator[None]:
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


@pytest.mark.parametrize("name", PROGRAMS)
def test_two_threads_give_the_same_bits(name: str) -> None:
    x = torch.rand(64, 2100) - 0.5
    compiled = compile_graph(trace(PROGRAMS[name], (x,)), (x,), Options(strict=True))
    torch.set_num_threads(1)
    alone = compiled(x)
    torch.set_num_threads(2)
    for found, wanted in zip(compiled(x), alone, strict=True):
        assert torch.equal(found, wanted)


def text_of(x: torch.Tensor, threads: int) -> str:
    with recording() as events:
        compile_graph(trace(PROGRAMS["pointwise"], (x,)), (x,), Options(strict=True, threads=threads))
    return next(event.text for event in events if isinstance(event, Artifact) and event.name == "graph.c")


def test_small_kernels_and_one_thread_need_no_region() -> None:
    assert "_job" not in text_of(torch.zeros(1000), 0)
    assert "_job" not in text_of(torch.zeros(100_000), 1)
    assert "threads > 3" in text_of(torch.zeros(100_000), 3)
    assert "threads > 6" in text_of(torch.zeros(100_000), 0)  # enough points for six


def test_an_error_in_a_thread_reaches_the_caller() -> None:
    x, index = torch.zeros(100_000), torch.arange(100_000)
    compiled = compile_graph(trace(lambda x, i: x[i] + 1, (x, index)), (x, index), Options(strict=True))
    torch.set_num_threads(2)
    index[77_777] = 100_000
    with pytest.raises(IndexError):
        compiled(x, index)
