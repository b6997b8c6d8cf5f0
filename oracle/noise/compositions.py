"""Composite operators written as smaller ones, where torch's table has no entry or one with another signature.

The formulas are the definitions; they run in noisy float64 arithmetic, so only their conditioning matters.
"""

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from plumbline.compiler.base.torch_facts import decomposition_of

from .remainders import fmod, remainder
from .stored_values import stored


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


def batch_norm_backward(
    grad: Tensor,
    x: Tensor,
    weight: Tensor | None,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    save_mean: Tensor | None,
    save_invstd: Tensor | None,
    training: bool,
    eps: float,
    output_mask: list[bool],
) -> tuple[Tensor | None, ...]:
    """Return the gradients of input, weight and bias; x is [N, C, ...], statistics are [C]."""
    others = [dim for dim in range(x.dim()) if dim != 1]
    channel = [1, -1, *[1] * (x.dim() - 2)]
    mean, deviation = (save_mean, save_invstd) if training else (running_mean, _deviation(running_var, eps))
    if mean is None or deviation is None:
        raise LookupError("batch norm without its statistics")
    normal = (x - mean.view(channel)) * deviation.view(channel)
    by_weight, by_bias = (grad * normal).sum(others), grad.sum(others)
    scale = deviation if weight is None else deviation * weight
    centred = grad
    if training:
        count = x.numel() / x.shape[1]
        centred = grad - by_bias.view(channel) / count - normal * (by_weight.view(channel) / count)
    by_input = centred * scale.view(channel)
    return tuple(g if needed else None for g, needed in zip((by_input, by_weight, by_bias), output_mask, strict=True))


def _deviation(variance: Tensor | None, eps: float) -> Tensor | None:
    return None if variance is None else torch.rsqrt(variance + eps)


def _torch_table(operator: Any) -> Any:
    decomposition = decomposition_of(operator)
    if decomposition is None:
        raise LookupError(f"torch has no decomposition of {operator}")
    return decomposition


def var_mean(
    x: Tensor,
    dim: Any = None,
    unbiased: bool = True,
    keepdim: bool = False,
    *,
    correction: float | None = None,
) -> tuple[Tensor, Tensor]:
    """Return variance and mean over `dim` (all without one) from the centred values; correction 1 by default.

    dim: a list; in the oldest overload, var(x, unbiased), a bool takes its place.
    """
    dims = list(range(x.dim())) if dim is None or isinstance(dim, bool) or dim == [] else list(dim)
    degrees = correction if correction is not None else float(dim if isinstance(dim, bool) else unbiased)
    mean = x.mean(dims, keepdim=True)
    count = math.prod(x.shape[d] for d in dims)
    total = (x - mean).square().sum(dims, keepdim=keepdim)
    return total / max(0.0, count - degrees), mean if keepdim else mean.squeeze(dims) if dims else mean


def _variance(*args: Any, **kwargs: Any) -> Tensor:
    return var_mean(*args, **kwargs)[0]


def _deviation_of(*args: Any, **kwargs: Any) -> Tensor:
    return var_mean(*args, **kwargs)[0].sqrt()


def _deviation_and_mean(*args: Any, **kwargs: Any) -> tuple[Tensor, Tensor]:
    variance, mean = var_mean(*args, **kwargs)
    return variance.sqrt(), mean


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
    return stored(torch.softmax(scores, -1)) @ _repeated(value, query), torch.logsumexp(scores, -1)


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
    """Return the gradients of query, key and value.

    The weights are recomputed: kernels repeat their scores bit by bit, so forward and backward noise cancels where
    a softmax saturates.  With the saved log denominators it would not cancel here.  The output is read as it was
    stored, and its rounding stays where values are alike.
    """
    factor = 1 / math.sqrt(query.shape[-1]) if scale is None else scale
    keys, values = _repeated(key, query), _repeated(value, query)
    weights = torch.softmax(_scores(query, keys, is_causal, attn_mask, scale), -1)
    drift = grad @ values.mT
    scores = stored(weights * (drift - (grad * out).sum(-1, keepdim=True)) * factor)
    return scores @ keys, _gathered(scores.mT @ query, key), _gathered(stored(weights).mT @ grad, value)


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

    Gates are in the order input, forget, candidate, output (the layout of torch.nn.LSTM's weights).
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


def lstm_layer_backward(
    x: Tensor,
    weight_input: Tensor,
    weight_hidden: Tensor,
    bias_input: Tensor,
    bias_hidden: Tensor,
    hidden: Tensor,
    cell: Tensor,
    output: Tensor,
    last_hidden: Tensor,
    last_cell: Tensor,
    grad_output: Tensor | None,
    grad_hidden: Tensor | None,
    grad_cell: Tensor | None,
    reverse: bool,
    *_: Any,
) -> tuple[Tensor, ...]:
    """Return the gradients of input, both weights, both biases, first hidden and first cell state.

    The forward is recomputed for its gates; then the chain rule runs backward through time.
    """
    steps = list(reversed(range(x.shape[0]))) if reverse else list(range(x.shape[0]))
    h, c = hidden.reshape(x.shape[1], -1), cell.reshape(x.shape[1], -1)
    saved: list[tuple[Tensor, ...]] = []
    for step in steps:
        gates = x[step] @ weight_input.t() + bias_input + bias_hidden + h @ weight_hidden.t()
        a, f, g, o = gates.chunk(4, -1)
        a, f, g, o = torch.sigmoid(a), torch.sigmoid(f), torch.tanh(g), torch.sigmoid(o)
        before = (h, c)
        c = f * c + a * g
        squashed = torch.tanh(c)
        h = o * squashed
        saved.append((*before, a, f, g, o, squashed))
    dh = torch.zeros_like(h) if grad_hidden is None else grad_hidden.reshape(h.shape)
    dc = torch.zeros_like(c) if grad_cell is None else grad_cell.reshape(c.shape)
    dx = [torch.zeros_like(x[0])] * len(steps)
    dw_input, dw_hidden = torch.zeros_like(weight_input), torch.zeros_like(weight_hidden)
    db = torch.zeros_like(bias_input)
    for step, (h, c, a, f, g, o, squashed) in zip(reversed(steps), reversed(saved), strict=True):
        dh = dh if grad_output is None else dh + grad_output[step]
        dc = dc + dh * o * (1 - squashed * squashed)
        parts = (dc * g * a * (1 - a), dc * c * f * (1 - f), dc * a * (1 - g * g), dh * squashed * o * (1 - o))
        dgates = torch.cat(parts, -1)
        dx[step] = dgates @ weight_input
        dw_input, dw_hidden = dw_input + dgates.t() @ x[step], dw_hidden + dgates.t() @ h
        db = db + dgates.sum(0)
        dh, dc = dgates @ weight_hidden, dc * f
    return torch.stack(dx), dw_input, dw_hidden, db, db.clone(), dh.reshape(hidden.shape), dc.reshape(cell.shape)


# Operators without a true float64 kernel: every lane runs these instead; results they omit are eager's.
REPLACED: dict[str, Callable[..., Any]] = {
    "fmod": fmod,
    "remainder": remainder,
    "mkldnn_rnn_layer": lstm_layer,
    "mkldnn_rnn_layer_backward": lstm_layer_backward,
}

# By ATen name; each replaces the operator's entry in torch's own table.
WRITTEN_OUT: dict[str, Callable[..., Any]] = {
    "mkldnn_rnn_layer_backward": lstm_layer_backward,
    "mkldnn_rnn_layer": lstm_layer,
    "var": _variance,
    "std": _deviation_of,
    "var_mean": var_mean,
    "std_mean": _deviation_and_mean,
    "native_batch_norm": batch_norm,
    "native_batch_norm_backward": batch_norm_backward,
    "_scaled_dot_product_flash_attention_for_cpu": attention,
    "_scaled_dot_product_flash_attention_for_cpu_backward": attention_backward,
}
