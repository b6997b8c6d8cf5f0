"""Operators written out for noisy lanes read what torch's kernels read."""

import pytest
import torch

from plumbline.oracle.noise.shadow import ShadowRun


def follow(function, *inputs, **options):
    with ShadowRun(**options) as run:
        result = function(*inputs)
    return run, result


@pytest.mark.parametrize("both", [False, True])
def test_lstm_and_its_gradients_are_followed(both):
    torch.manual_seed(0)
    layers = torch.nn.LSTM(3, 4, 2, bidirectional=both)
    x = torch.randn(5, 2, 3)

    def program(v):
        out, (h, c) = layers(v)
        loss = (out * torch.linspace(-1, 1, out.numel(), dtype=out.dtype).view(out.shape)).sum() + h.sum() * c.sum()
        return out, *torch.autograd.grad(loss, list(layers.parameters()))

    run, results = follow(program, x, replicas=4)
    assert not run.untrusted
    lanes = [run.lanes_of(result) for result in results]
    layers.double()
    for lane, expected in zip(lanes, program(x.double()), strict=True):
        assert torch.allclose(lane.exact, expected, rtol=1e-9, atol=1e-12)
        assert lane.replicas.std(0).max() > 0
