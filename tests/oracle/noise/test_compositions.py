"""Composite operators written as smaller ones."""

import pytest
import torch

from plumbline.oracle.noise.compositions import attention, attention_backward
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


def test_the_backward_of_attention_reads_the_output_as_it_was_stored():
    """Where values are alike, its rounding in half precision is most of what eager's gradients are off."""
    kernel = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu_backward.default
    generator = torch.Generator().manual_seed(0)
    query, key, value, grad = (torch.randn(2, 3, 8, 16, generator=generator, dtype=torch.float64) for _ in range(4))
    out, logsumexp = attention(query, key, value)
    for stored in (out, out.bfloat16().double()):
        arguments = (grad, query, key, value, stored, logsumexp, 0.0, False)
        torch.testing.assert_close(attention_backward(*arguments), kernel(*arguments))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_attention_stores_its_weights_in_the_dtype_of_its_operands(dtype):
    """What its terms cancel to is off by their roundings, far more than by its own."""
    generator = torch.Generator().manual_seed(0)
    query, key, value = (torch.randn(1, 2, 40, 16, generator=generator).to(dtype) for _ in range(3))
    value[..., 20:, :] = -value[..., :20, :]
    key[..., 20:, :] = key[..., :20, :]
    run, result = follow(torch.nn.functional.scaled_dot_product_attention, query, key, value, replicas=4)
    lanes = run.lanes_of(result)
    terms = torch.softmax(query.double() @ key.double().mT / 4, -1).square() @ value.double().square()
    noise = torch.finfo(dtype).eps / 2 * terms.sqrt()
    spread = (lanes.replicas - lanes.exact).square().mean(0).sqrt()
    assert 0.2 < float((spread / noise).median()) < 2
    assert float(((result.double() - lanes.exact).abs() / noise).median()) < 2
