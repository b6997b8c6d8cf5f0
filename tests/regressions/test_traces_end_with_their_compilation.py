"""A hook that a trace left on its leaves kept the whole trace, and its fake tensors, as long as the compiled graph."""

import gc

import pytest
import torch

import plumbline
from plumbline.compiler.autograd.functionalize import Functionalizer
from plumbline.compiler.graph.tracer import AtenRecorder


@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
def test_nothing_of_a_trace_lives_beside_what_was_compiled(backend: str) -> None:
    def squares(x: torch.Tensor) -> torch.Tensor:
        return (x.sin() * x).sum()

    compiled = plumbline.compile(squares, backend=backend)
    compiled(torch.randn(3, requires_grad=True)).backward()
    gc.collect()
    left = [type(one).__name__ for one in gc.get_objects() if isinstance(one, Functionalizer | AtenRecorder)]
    assert left == []
    assert compiled(torch.zeros(3)).item() == 0.0
