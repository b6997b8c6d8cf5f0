"""A captured training step gave a loss that took a second backward without a word; eager refuses."""

import pytest
import torch
from torch import nn

from plumbline.oracle import check


def step(model, optimizer, x):
    optimizer.zero_grad()
    loss = model(x).pow(2).mean()
    loss.backward()
    optimizer.step()
    return loss


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_the_judge_finds_nothing(backend):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    assert not check(step, (model, optimizer, torch.randn(2, 3)), compiler="plumbline", backend=backend).failed
