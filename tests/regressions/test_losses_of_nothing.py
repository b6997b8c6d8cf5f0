"""Shape rules and decompositions of losses divide by the number of elements; with none, an error of ours was hidden."""

import pytest
import torch

import plumbline
from plumbline.compiler.base.events import CompilerFailed, recording

BACKENDS = ("aot_eager", pytest.param("inductor", marks=pytest.mark.cc))


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("name", ["mse_loss", "smooth_l1_loss", "huber_loss"])
def test_the_mean_over_nothing_has_a_gradient(name, dynamic, backend):
    loss = getattr(torch.nn.functional, name)
    x = torch.ones(0, 3, requires_grad=True)
    with recording() as events:
        result = plumbline.compile(lambda x, y: loss(x, y), backend=backend, dynamic=dynamic)(x, torch.ones(0, 3))
        result.backward()
    assert [event.error for event in events if isinstance(event, CompilerFailed)] == []
    assert result.isnan()
    assert x.grad.shape == (0, 3)


@pytest.mark.parametrize("backend", BACKENDS)
def test_an_error_that_only_tracing_sees_is_the_programs(backend):
    with recording() as events, pytest.raises(IndexError):
        plumbline.compile(lambda x: torch.sort(x, dim=1), backend=backend)(torch.tensor(1.0, requires_grad=True))
    assert [event.error for event in events if isinstance(event, CompilerFailed)] == []
