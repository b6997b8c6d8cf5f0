"""flex_attention under backends that trace: the operators of its dense form, lowered with the graph around them."""

import pytest
import torch
from torch.nn.attention import flex_attention as flex

import plumbline
from plumbline.compiler.base.events import BackendCalled, Broke, RanEagerly, recording


@pytest.fixture(autouse=True)
def _no_warning(monkeypatch):
    monkeypatch.setattr(flex, "_FLEX_ATTENTION_DISABLE_COMPILE_DEBUG", True)


def biased(q, k, v, bias):
    scores = flex.flex_attention(q, k, v, score_mod=lambda score, b, h, i, j: score + bias[h] * (i - j))
    return scores.sin() * 2


def masked(q, k, v, bias):
    mask = flex.create_block_mask(lambda b, h, i, j: i >= j, None, None, q.shape[2], k.shape[2], device="cpu")
    return flex.flex_attention(q * bias[0], k, v, block_mask=mask, scale=0.5)


def with_sums(q, k, v, bias):
    out, sums = flex.flex_attention(q, k, v, score_mod=lambda score, b, h, i, j: score * bias[h], return_lse=True)
    return out + sums[..., None]


@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
@pytest.mark.parametrize("program", [biased, masked, with_sums])
@pytest.mark.parametrize("dynamic", [False, True])
def test_one_graph_gives_what_eager_gives(program, backend, dynamic):
    compiled = plumbline.compile(program, backend=backend, dynamic=dynamic)
    with recording() as events:
        for length in (16, 24):
            torch.manual_seed(length)
            q, k, v = torch.randn(3, 2, 2, length, 8).unbind()
            bias = torch.rand(2)
            torch.testing.assert_close(compiled(q, k, v, bias), program(q, k, v, bias), rtol=1e-4, atol=1e-5)
    assert not [event for event in events if isinstance(event, Broke | RanEagerly)]
    text = "".join(event.text for event in events if isinstance(event, BackendCalled))
    assert "flex_attention" in text
