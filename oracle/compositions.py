"""Composite operators written out as smaller ones, where torch's table has none or one of another signature.

The formulas are the definitions; they run in float64 under noisy arithmetic, so only their conditioning matters.
"""

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from plumbline.compiler.base.torch_facts import decomposition_of


def batch_norm(
    x: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    training: bool,
    momentum: float,
    eps: float,
) -> Any:
    """Return output, saved mean and saved reciprocal deviation; running statistics are updated in place."""
    aten = torch.ops.aten
    if running_mean is None or running_var is None:
        return _torch_table(aten._native_batch_norm_legit.no_stats)(x, weight, bias, training, momentum, eps)
    whole = _torch_table(aten._native_batch_norm_legit.default)
    return whole(x, weight, bias, running_mean, running_var, training, momentum, eps)


def _torch_table(operator: Any) -> Any:
    found = decomposition_of(operator)
    if found is None:
        raise LookupError(f"torch has no decomposition of {operator}")
    return found


def attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    attn_mask: Tensor | None = None,
    scale: float | None = None,
) -> tuple[Tensor, Tensor]:
    """Return softmax(Q K^T * scale + mask) V, and the log of the softmax's denominators, [..., queries]."""
    scores = _scores(query, _repeated(key, query), is_causal, attn_mask, scale)
    return torch.softmax(scores, -1) @ _repeated(value, query), torch.logsumexp(scores, -1)


def attention_backward(
    grad: Tensor,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    out: Tensor,
    logsumexp: Tensor,
    dropout_p: float,
    is_causal: bool,
    *,
    attn_mask: Tensor | None = None,
    scale: float | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the gradients of query, key and value from the saved output and log denominators."""
    factor = 1 / math.sqrt(query.shape[-1]) if scale is None else scale
    keys, values = _repeated(key, query), _repeated(value, query)
    weights = torch.exp(_scores(query, keys, is_causal, attn_mask, scale) - logsumexp.unsqueeze(-1))
    inner = grad @ values.mT - (grad * out).sum(-1, keepdim=True)
    scores = weights * inner * factor
    return scores @ keys, _gathered(scores.mT @ query, key), _gathered(weights.mT @ grad, value)


def _scores(query: Tensor, key: Tensor, is_causal: bool, mask: Tensor | None, scale: float | None) -> Tensor:
    factor = 1 / math.sqrt(query.shape[-1]) if scale is None else scale
    scores = query @ key.mT * factor
    if is_causal:
        allowed = torch.ones(scores.shape[-2:], dtype=torch.bool, device=scores.device).tril()
        scores = scores.masked_fill(~allowed, -math.inf)
    if mask is not None:
        scores = scores.masked_fill(~mask, -math.inf) if mask.dtype == torch.bool else scores + mask
    return scores


def _repeated(heads: Tensor, query: Tensor) -> Tensor:
    """Return key or value heads repeated for grouped queries, [batch, heads, length, width]."""
    ratio = query.shape[1] // heads.shape[1]
    return heads if ratio == 1 else heads.repeat_interleave(ratio, 1)


def _gathered(gradient: Tensor, heads: Tensor) -> Tensor:
    ratio = gradient.shape[1] // heads.shape[1]
    return (
        gradient
        if ratio == 1
        else gradient.reshape(gradient.shape[0], heads.shape[1], ratio, *gradient.shape[2:]).sum(2)
    )


def lstm_layer(
    x: Tensor,
    weight_input: Tensor,
    weight_hidden: Tensor,
    bias_input: Tensor,
    bias_hidden: Tensor,
    hidden: Tensor,
    cell: Tensor,
    reverse: bool,
    *_: Any,
) -> tuple[Tensor, Tensor, Tensor]:
    """Return outputs [time, batch, width], last hidden and last cell state of one LSTM layer in one direction.

    Gates stand in the order input, forget, candidate, output (the layout of torch.nn.LSTM's weights).
    """
    h, c = hidden.reshape(x.shape[1], -1), cell.reshape(x.shape[1], -1)
    projected = x @ weight_input.t() + bias_input + bias_hidden
    outputs: list[Tensor] = []
    for step in reversed(range(x.shape[0])) if reverse else range(x.shape[0]):
        gate_in, forget, candidate, gate_out = (projected[step] + h @ weight_hidden.t()).chunk(4, -1)
        c = torch.sigmoid(forget) * c + torch.sigmoid(gate_in) * torch.tanh(candidate)
        h = torch.sigmoid(gate_out) * torch.tanh(c)
        outputs.append(h)
    if reverse:
        outputs.reverse()
    return torch.stack(outputs), h.reshape(hidden.shape), c.reshape(cell.shape)


# Operators without a float64 kernel: every lane runs these instead; results they leave out are eager's.
REPLACED: dict[str, Callable[..., Any]] = {"mkldnn_rnn_layer": lstm_layer}

# By ATen name; each replaces the operator's entry in torch's own table.
WRITTEN_OUT: dict[str, Callable[..., Any]] = {
    "mkldnn_rnn_layer": lstm_layer,
    "native_batch_norm": batch_norm,
    "_scaled_dot_product_flash_attention_for_cpu": attention,
    "_scaled_dot_product_flash_attention_for_cpu_backward": attention_backward,
}
