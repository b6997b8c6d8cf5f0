"""A multilayer perceptron that learns a small regression."""

import pytest
import torch
from torch import nn


@pytest.fixture
def model():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(8, 32), nn.GELU(), nn.LayerNorm(32), nn.Linear(32, 32), nn.Tanh(), nn.Linear(32, 1))


def test_adam_lowers_the_loss(model):
    inputs = torch.randn(64, 8)
    targets = inputs.square().mean(dim=1, keepdim=True)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    losses = []
    for _ in range(8):
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(inputs), targets)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0]
    assert all(parameter.grad is not None for parameter in model.parameters())


def test_prediction_does_not_depend_on_the_batch(model):
    inputs = torch.randn(16, 8)
    with torch.no_grad():
        together = model(inputs)
        swapped = model(inputs.flip(0))
    assert together.shape == (16, 1)
    torch.testing.assert_close(together, swapped.flip(0))
