"""A graph with dynamic sizes that is compiled in a call that raises is validated in a later one, with its sizes."""

import pytest
import torch

import plumbline
from plumbline.compiler.base.events import Validated, recording


@pytest.mark.parametrize("backend", ["aot_eager", pytest.param("inductor", marks=pytest.mark.cc)])
def test_the_sizes_are_those_of_the_call_that_is_compared(backend):
    def f(x, w, place):
        y = (x * w).sum(0) * x.shape[0]
        return torch.index_select(y, 0, place)

    w = torch.ones(4, requires_grad=True)
    compiled = plumbline.compile(f, backend=backend, dynamic=True)
    with plumbline.config.patch(verify="run", strict=True), recording() as events:
        with pytest.raises(IndexError):
            compiled(torch.ones(6, 4), w, torch.tensor([9]))
        result = compiled(torch.ones(5, 4), w, torch.tensor([1]))
        result.sum().backward()
    assert result.item() == 25
    assert w.grad.tolist() == [0, 25, 0, 0]
    assert "captured graph" in [event.part for event in events if isinstance(event, Validated)]
