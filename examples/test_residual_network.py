"""A small residual network for images: convolution, batch norm, ReLU."""

import pytest
import torch
from torch import nn


class ResidualBlock(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.first = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.first_norm = nn.BatchNorm2d(channels)
        self.second = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.second_norm = nn.BatchNorm2d(channels)

    def forward(self, x):
        y = torch.relu(self.first_norm(self.first(x)))
        y = self.second_norm(self.second(y))
        return torch.relu(x + y)


class ResidualNetwork(nn.Module):
    def __init__(self, channels=8, classes=4):
        super().__init__()
        self.stem = nn.Conv2d(3, channels, 3, padding=1)
        self.block = ResidualBlock(channels)
        self.head = nn.Linear(channels, classes)

    def forward(self, images):
        x = self.block(torch.relu(self.stem(images)))
        return self.head(x.mean(dim=(2, 3)))


@pytest.fixture
def network():
    torch.manual_seed(0)
    return ResidualNetwork()


def test_training_moves_weights_and_running_statistics(network):
    images, labels = torch.randn(8, 3, 12, 12), torch.arange(8) % 4
    mean_before = network.block.first_norm.running_mean.clone()
    optimizer = torch.optim.SGD(network.parameters(), lr=0.05, momentum=0.9)
    losses = []
    for _ in range(6):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(network(images), labels)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0]
    assert network.block.first_norm.num_batches_tracked == 6
    assert not torch.equal(network.block.first_norm.running_mean, mean_before)


def test_inference_leaves_the_statistics_alone(network):
    network.eval()
    before = {name: buffer.clone() for name, buffer in network.named_buffers()}
    with torch.inference_mode():
        logits = network(torch.randn(4, 3, 12, 12))
    assert logits.shape == (4, 4)
    assert all(torch.equal(buffer, before[name]) for name, buffer in network.named_buffers())
