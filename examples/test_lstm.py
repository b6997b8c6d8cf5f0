"""An LSTM cell in a Python loop that learns to add up a sequence."""

import torch
from torch import nn


class RunningSum(nn.Module):
    def __init__(self, hidden=16):
        super().__init__()
        self.cell = nn.LSTMCell(1, hidden)
        self.read = nn.Linear(hidden, 1)

    def forward(self, sequence):
        state = None
        sums = []
        for step in sequence.unbind(dim=1):
            state = self.cell(step, state)
            sums.append(self.read(state[0]))
        return torch.stack(sums, dim=1)


def test_learns_to_add():
    torch.manual_seed(0)
    model = RunningSum()
    sequence = torch.rand(8, 5, 1)
    optimizer = torch.optim.RMSprop(model.parameters(), lr=1e-2)
    losses = []
    for _ in range(8):
        optimizer.zero_grad()
        sums = model(sequence)
        loss = nn.functional.smooth_l1_loss(sums, sequence.cumsum(dim=1))
        loss.backward()
        norm = nn.utils.clip_grad_norm_(model.parameters(), max_norm=1.0)
        assert torch.isfinite(norm)
        optimizer.step()
        losses.append(loss.item())
    assert sums.shape == (8, 5, 1)
    assert losses[-1] < losses[0]
