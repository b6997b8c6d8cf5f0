"""Recurrent layers with dropout between them, under dynamic sizes: one compiled form serves every size of the batch."""

import pytest
import torch

import plumbline
from plumbline.compiler.base.events import Recompiled, recording

NETWORKS = {
    "gru": lambda: torch.nn.GRU(4, 3, 2, dropout=0.5),
    "tanh": lambda: torch.nn.RNN(4, 3, 3, dropout=0.3, batch_first=True),
    "relu, both ways": lambda: torch.nn.RNN(4, 3, 2, dropout=0.3, nonlinearity="relu", bidirectional=True, bias=False),
}


def outcome(network, function, x):
    torch.manual_seed(7)
    network.zero_grad()
    results = function(x)
    sum(result.sum() for result in results).backward()
    return [*results, *(weight.grad for weight in network.parameters())]


@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
@pytest.mark.parametrize("name", NETWORKS)
def test_the_batch_may_have_any_size(name, backend):
    network = NETWORKS[name]()
    compiled = plumbline.compile(lambda x: network(x), dynamic=True, backend=backend)
    with recording() as events:
        for batch in (3, 5, 2):
            x = torch.randn((batch, 4, 4) if network.batch_first else (4, batch, 4))
            for ours, eagers in zip(outcome(network, compiled, x), outcome(network, network, x), strict=True):
                assert torch.allclose(ours, eagers, atol=1e-5)
                assert ours.stride() == eagers.stride()
    assert not [event for event in events if isinstance(event, Recompiled)]
