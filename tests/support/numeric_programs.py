"""Programs, legitimate re-implementations and miscompiles on which the oracle's scale is calibrated.

A legitimate variant computes the same function by another order, split or internal precision; a miscompile
computes another function.  Every callable takes tensors of one dtype and returns one tensor of that dtype.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

import torch
import torch.nn.functional as nnf
from torch import Tensor

Function = Callable[..., Tensor]


@dataclass(frozen=True, slots=True)
class Program:
    name: str
    shapes: tuple[tuple[int, ...], ...]
    eager: Function
    legitimate: dict[str, Function] = field(default_factory=dict)
    miscompiled: dict[str, Function] = field(default_factory=dict)
    positive: bool = False


PROGRAMS: list[Program] = []
HELD_OUT: list[Program] = []

VALUE_SETS: dict[str, Callable[[Tensor], Tensor]] = {
    "normal": lambda t: t,
    "wide": lambda t: t * torch.linspace(-3, 3, t.numel(), dtype=t.dtype).exp().view(t.shape),
    "offset": lambda t: t * 0.5 + 2,
}


def inputs_of(program: Program, values: str, dtype: torch.dtype, seed: int = 0) -> list[Tensor]:
    generator = torch.Generator().manual_seed(1000 * seed + 17)
    made = []
    for shape in program.shapes:
        value = VALUE_SETS[values](torch.randn(shape, generator=generator, dtype=torch.float64))
        made.append((value.abs() + 0.1 if program.positive else value).to(torch.bfloat16).to(dtype))
    return made


def internally(function: Function, dtype: torch.dtype) -> Function:
    """The function computed in a wider dtype and rounded once."""

    def run(*args: Tensor) -> Tensor:
        wide = torch.promote_types(args[0].dtype, dtype)
        return function(*[a.to(wide) for a in args]).to(args[0].dtype)

    return run


def one_wrong(function: Function, change: Function) -> Function:
    """The function with one element, in the middle, changed."""

    def run(*args: Tensor) -> Tensor:
        result = function(*args).clone()
        flat = result.view(-1)
        at = flat.numel() // 2
        flat[at] = change(flat[at])
        return result

    return run


def swapped_rows(function: Function) -> Function:
    def run(*args: Tensor) -> Tensor:
        result = function(*args).clone()
        result[[0, 1]] = result[[1, 0]]
        return result

    return run


def stale_tail(function: Function, share: int = 8) -> Function:
    """The last slice of the last dimension keeps its neighbour's values."""

    def run(*args: Tensor) -> Tensor:
        result = function(*args).clone()
        width = max(1, result.shape[-1] // share)
        result[..., -width:] = result[..., :width]
        return result

    return run


def biased(function: Function, factor: float) -> Function:
    return lambda *args: function(*args) * factor


def _program(
    name: str,
    shapes: tuple[tuple[int, ...], ...],
    eager: Function,
    legitimate: dict[str, Function],
    miscompiled: dict[str, Function],
    *,
    positive: bool = False,
    held_out: bool = False,
    rows: bool = True,
) -> None:
    legitimate = {
        "float64 inside": internally(eager, torch.float64),
        "float32 inside": internally(eager, torch.float32),
    } | legitimate
    common: dict[str, Function] = {
        "one element 3 % off": one_wrong(eager, lambda v: v * 1.03 + 1e-3),
        "0.3 % gain": biased(eager, 1.003),
    }
    if rows:
        common |= {"rows swapped": swapped_rows(eager), "stale tail": stale_tail(eager)}
    (HELD_OUT if held_out else PROGRAMS).append(
        Program(name, shapes, eager, legitimate, miscompiled | common, positive)
    )


def _halves(x: Tensor) -> tuple[Tensor, Tensor]:
    middle = x.shape[-1] // 2
    return x[..., :middle], x[..., middle:]


def _online_softmax(x: Tensor) -> Tensor:
    parts = [p.float() if p.dtype != torch.float64 else p for p in x.split(7, -1)]
    top = torch.full_like(parts[0][..., :1], -float("inf"))
    total = torch.zeros_like(top)
    for part in parts:
        new = torch.maximum(top, part.amax(-1, keepdim=True))
        total = total * (top - new).exp() + (part - new).exp().sum(-1, keepdim=True)
        top = new
    return torch.cat([(p - top).exp() / total for p in parts], -1).to(x.dtype)


_program(
    "softmax",
    ((24, 40),),
    lambda x: nnf.softmax(x, -1),
    {"online": _online_softmax, "reversed": lambda x: nnf.softmax(x.flip(-1), -1).flip(-1)},
    {
        "tail dropped from the sum": lambda x: (
            (x - x.amax(-1, True)).exp() / (x - x.amax(-1, True)).exp()[..., :-1].sum(-1, True)
        ),
        "wrong dimension": lambda x: nnf.softmax(x, 0),
        "temperature 1.01": lambda x: nnf.softmax(x / 1.01, -1),
    },
)


def _layer_norm(x: Tensor, w: Tensor, b: Tensor, eps: float = 1e-5, unbiased: bool = False) -> Tensor:
    y = x if x.dtype == torch.float64 else x.float()
    mean = y.mean(-1, keepdim=True)
    var = (y - mean).square().sum(-1, keepdim=True) / (y.shape[-1] - int(unbiased))
    return ((y - mean) * torch.rsqrt(var + eps) * w + b).to(x.dtype)


def _folded_layer_norm(x: Tensor, w: Tensor, b: Tensor) -> Tensor:
    y = x.to(torch.promote_types(x.dtype, torch.float32))
    var, mean = torch.var_mean(y, -1, correction=0, keepdim=True)
    scale = torch.rsqrt(var + 1e-5)
    return ((y * scale - mean * scale) * w + b).to(x.dtype)


_program(
    "layer_norm",
    ((20, 48), (48,), (48,)),
    lambda x, w, b: nnf.layer_norm(x, x.shape[-1:], w, b),
    {
        "two pass": _layer_norm,
        "folded": lambda x, w, b: _folded_layer_norm(x, w, b),
    },
    {
        "eps 1e-2": lambda x, w, b: _layer_norm(x, w, b, 1e-2),
        "unbiased": lambda x, w, b: _layer_norm(x, w, b, unbiased=True),
        "bias dropped": lambda x, w, b: _layer_norm(x, w, torch.zeros_like(b)),
        "mean not subtracted": lambda x, w, b: (
            x.double() * torch.rsqrt(x.double().var(-1, correction=0, keepdim=True) + 1e-5) * w + b
        ).to(x.dtype),
    },
)


def _rms_norm(x: Tensor, w: Tensor, eps: float = 1e-6) -> Tensor:
    y = x if x.dtype == torch.float64 else x.float()
    return (y * torch.rsqrt(y.square().mean(-1, keepdim=True) + eps)).to(x.dtype) * w


_program(
    "rms_norm",
    ((20, 48), (48,)),
    _rms_norm,
    {
        "division": lambda x, w: (
            (x.float() / (x.float().square().flip(-1).mean(-1, True) + 1e-6).sqrt()).to(x.dtype) * w
        ),
        "split sum": lambda x, w: (
            (
                x.float() * torch.rsqrt(sum(h.float().square().sum(-1, True) for h in _halves(x)) / x.shape[-1] + 1e-6)
            ).to(x.dtype)
            * w
        ),
    },
    {
        "eps 1e-2": lambda x, w: _rms_norm(x, w, 1e-2),
        "mean over n-1": lambda x, w: (
            (x.double() * torch.rsqrt(x.double().square().sum(-1, True) / (x.shape[-1] - 1))).to(x.dtype) * w
        ),
        "weight + 1": lambda x, w: _rms_norm(x, w + 1),
    },
)

_program(
    "gelu",
    ((24, 40),),
    lambda x: nnf.gelu(x),
    {
        "erf": lambda x: (x.float() * 0.5 * (1 + torch.erf(x.float() * 0.5**0.5))).to(x.dtype),
        "erfc": lambda x: (0.5 * x.double() * torch.erfc(-x.double() * 0.5**0.5)).to(x.dtype),
    },
    {
        "tanh form": lambda x: nnf.gelu(x, approximate="tanh"),
        "sigmoid form": lambda x: x * torch.sigmoid(1.702 * x),
        "relu": lambda x: nnf.relu(x),
    },
)


def _split_k(a: Tensor, b: Tensor, parts: int = 4) -> Tensor:
    wide = torch.promote_types(a.dtype, torch.float32)
    size = -(-a.shape[-1] // parts)
    return sum((x.to(wide) @ y.to(wide) for x, y in zip(a.split(size, -1), b.split(size, -2), strict=True))).to(a.dtype)


_program(
    "matmul",
    ((16, 64), (64, 24)),
    lambda a, b: a @ b,
    {
        "split k": _split_k,
        "reversed k": lambda a, b: a.flip(1) @ b.flip(0),
        "outer products": lambda a, b: sum(
            a[:, k : k + 1].float() * b[k : k + 1].float() for k in range(a.shape[1])
        ).to(a.dtype),
    },
    {
        "last k dropped": lambda a, b: a[:, :-1] @ b[:-1],
        "last k doubled": lambda a, b: a @ b + a[:, -1:] @ b[-1:],
        "transposed b tile": lambda a, b: torch.cat([a @ b[:, :8].roll(1, 1), a @ b[:, 8:]], 1),
    },
)

_program(
    "matmul_deep",
    ((8, 1024), (1024, 12)),
    lambda a, b: a @ b,
    {"split k": lambda a, b: _split_k(a, b, 16), "reversed k": lambda a, b: a.flip(1) @ b.flip(0)},
    {
        "last k dropped": lambda a, b: a[:, :-1] @ b[:-1],
        "one tile of k dropped": lambda a, b: a[:, :-16] @ b[:-16],
        "accumulated in the dtype": lambda a, b: (
            sum((x @ y for x, y in zip(a.split(64, 1), b.split(64, 0), strict=True))) * 1.001
        ),
    },
)

_program(
    "sum",
    ((12, 4000),),
    lambda x: x.sum(-1),
    {
        "reversed": lambda x: x.flip(-1).sum(-1),
        "pairwise": lambda x: x.float().view(12, 40, 100).sum(1).sum(-1).to(x.dtype),
        "cumulative": lambda x: x.float().cumsum(-1)[:, -1].to(x.dtype),
    },
    {
        "last dropped": lambda x: x[:, :-1].sum(-1),
        "last doubled": lambda x: x.sum(-1) + x[:, -1],
        "tail of 32 dropped": lambda x: x[:, :-32].sum(-1),
    },
    rows=False,
)


def _welford(x: Tensor) -> Tensor:
    y = x.float() if x.dtype != torch.float64 else x
    mean, total = torch.zeros_like(y[..., 0]), torch.zeros_like(y[..., 0])
    for k in range(y.shape[-1]):
        delta = y[..., k] - mean
        mean = mean + delta / (k + 1)
        total = total + delta * (y[..., k] - mean)
    return (total / (y.shape[-1] - 1)).to(x.dtype)


_program(
    "var",
    ((32, 64),),
    lambda x: x.var(-1),
    {
        "welford": _welford,
        "reversed": lambda x: x.flip(-1).var(-1),
        "shifted": lambda x: (x.float() - x.float()[:, :1]).var(-1).to(x.dtype),
    },
    {
        "biased": lambda x: x.var(-1, correction=0),
        "last dropped": lambda x: x[..., :-1].var(-1),
        "around the global mean": lambda x: ((x.double() - x.double().mean()).square().sum(-1) / (x.shape[-1] - 1)).to(
            x.dtype
        ),
    },
    rows=False,
)

_program(
    "std_after_offset",
    ((32, 64),),
    lambda x: (x + 10).std(-1),
    {
        "welford": lambda x: _welford(x + 10).sqrt(),
        "centred": lambda x: (
            ((x + 10).float() - (x + 10).float().mean(-1, True)).square().sum(-1).div(63).sqrt().to(x.dtype)
        ),
    },
    {"biased": lambda x: (x + 10).std(-1, correction=0), "of the first half": lambda x: (x + 10)[..., :32].std(-1)},
    rows=False,
)


def _attention(q: Tensor, k: Tensor, v: Tensor, scale: float | None = None, skip: int = 0) -> Tensor:
    wide = torch.promote_types(q.dtype, torch.float32)
    q2, k2, v2 = q.to(wide), k.to(wide), v.to(wide)
    scores = q2 @ k2.mT * (q.shape[-1] ** -0.5 if scale is None else scale)
    if skip:
        scores, v2 = scores[..., :-skip], v2[..., :-skip, :]
    return (scores.softmax(-1) @ v2).to(q.dtype)


def _online_attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    wide = torch.promote_types(q.dtype, torch.float32)
    top = torch.full((*q.shape[:-1], 1), -float("inf"), dtype=wide)
    total, out = torch.zeros_like(top), torch.zeros(q.shape, dtype=wide)
    for kk, vv in zip(k.to(wide).split(5, -2), v.to(wide).split(5, -2), strict=True):
        s = q.to(wide) @ kk.mT * q.shape[-1] ** -0.5
        new = torch.maximum(top, s.amax(-1, keepdim=True))
        p, fix = (s - new).exp(), (top - new).exp()
        total, out, top = total * fix + p.sum(-1, keepdim=True), out * fix + p @ vv, new
    return (out / total).to(q.dtype)


_program(
    "attention",
    ((2, 3, 12, 16), (2, 3, 12, 16), (2, 3, 12, 16)),
    lambda q, k, v: nnf.scaled_dot_product_attention(q, k, v),
    {"plain": _attention, "online": _online_attention},
    {
        "last key skipped": lambda q, k, v: _attention(q, k, v, skip=1),
        "scale 1/15": lambda q, k, v: _attention(q, k, v, scale=1 / 15**0.5),
        "heads swapped": lambda q, k, v: _attention(q, k[:, [1, 0, 2]], v),
    },
)

_program(
    "swiglu",
    ((16, 40), (16, 40)),
    lambda x, y: nnf.silu(x) * y,
    {
        "sigmoid": lambda x, y: (x.float() * torch.sigmoid(x.float()) * y.float()).to(x.dtype),
        "division": lambda x, y: (x.float() / (1 + (-x.float()).exp()) * y.float()).to(x.dtype),
    },
    {
        "gain 1.002": lambda x, y: nnf.silu(x) * y * 1.002,
        "gelu": lambda x, y: nnf.gelu(x) * y,
        "y shifted": lambda x, y: nnf.silu(x) * y.roll(1, -1),
    },
)

_program(
    "logsumexp",
    ((24, 40),),
    lambda x: torch.logsumexp(x, -1),
    {
        "by hand": lambda x: (x.float().amax(-1) + (x.float() - x.float().amax(-1, True)).exp().sum(-1).log()).to(
            x.dtype
        ),
        "pairwise": lambda x: torch.logaddexp(*[torch.logsumexp(h.float(), -1) for h in _halves(x)]).to(x.dtype),
    },
    {
        "last dropped": lambda x: torch.logsumexp(x[..., :-1], -1),
        "of twice": lambda x: torch.logsumexp(torch.cat([x, x[..., -1:]], -1), -1),
    },
    rows=False,
)


def _residual(x: Tensor, w: Tensor, eps: float = 1e-5, blocks: int = 5, scale: float = 0.1) -> Tensor:
    for _ in range(blocks):
        x = x + scale * torch.tanh(nnf.layer_norm(x, x.shape[-1:], eps=eps) @ w)
    return x


_program(
    "residual_chain",
    ((12, 32), (32, 32)),
    _residual,
    {"split k": lambda x, w: _chain_split(x, w)},
    {
        "one block missing": lambda x, w: _residual(x, w, blocks=4),
        "eps 1e-2": lambda x, w: _residual(x, w, eps=1e-2),
        "scale 0.101": lambda x, w: _residual(x, w, scale=0.101),
    },
)


def _chain_split(x: Tensor, w: Tensor) -> Tensor:
    for _ in range(5):
        x = x + 0.1 * torch.tanh(_split_k(_layer_norm(x, torch.ones_like(x[0]), torch.zeros_like(x[0])), w))
    return x


_program(
    "mean",
    ((6, 5, 300),),
    lambda x: x.mean((0, 2)),
    {"reversed": lambda x: x.flip(2).mean((0, 2)), "in two steps": lambda x: x.float().mean(2).mean(0).to(x.dtype)},
    {
        "over n-1": lambda x: x.sum((0, 2)) / (6 * 300 - 1),
        "last dropped": lambda x: x[..., :-1].mean((0, 2)),
        "first row only": lambda x: x[0].mean(-1),
    },
    rows=False,
)

_program(
    "batch_norm",
    ((16, 6, 5), (6,), (6,)),
    lambda x, w, b: nnf.batch_norm(x, None, None, w, b, training=True),
    {
        "folded": lambda x, w, b: _folded_batch_norm(x, w, b),
        "two pass": lambda x, w, b: (
            _layer_norm(x.transpose(0, 1).reshape(6, -1), w.view(6, 1), b.view(6, 1)).view(6, 16, 5).transpose(0, 1)
        ),
    },
    {
        "eps 1e-2": lambda x, w, b: nnf.batch_norm(x, None, None, w, b, training=True, eps=1e-2),
        "unbiased": lambda x, w, b: _folded_batch_norm(x, w, b, 1),
        "over rows": lambda x, w, b: nnf.layer_norm(x, x.shape[1:]) * w.view(6, 1) + b.view(6, 1),
    },
)


def _folded_batch_norm(x: Tensor, w: Tensor, b: Tensor, correction: int = 0) -> Tensor:
    y = x.to(torch.promote_types(x.dtype, torch.float32))
    var, mean = torch.var_mean(y, (0, 2), correction=correction)
    scale = w * torch.rsqrt(var + 1e-5)
    return (y * scale.view(-1, 1) + (b - mean * scale).view(-1, 1)).to(x.dtype)


_program(
    "pooling",
    ((2, 3, 12, 12),),
    lambda x: nnf.avg_pool2d(x, 3, stride=2, padding=1),
    {
        "unfold": lambda x: (
            nnf.unfold(x.float(), 3, padding=1, stride=2).view(2, 3, 9, 36).sum(2).div(9).view(2, 3, 6, 6).to(x.dtype)
        )
    },
    {
        "padding not counted": lambda x: nnf.avg_pool2d(x, 3, stride=2, padding=1, count_include_pad=False),
        "max": lambda x: nnf.max_pool2d(x, 3, stride=2, padding=1),
        "divided by 10": lambda x: nnf.avg_pool2d(x, 3, stride=2, padding=1, divisor_override=10),
    },
)


def _gradient(function: Function) -> Function:
    """The gradient of the function's weighted sum for its first argument: calibrates backward operators."""

    def run(*args: Tensor) -> Tensor:
        leaf = args[0].detach().requires_grad_()
        out = function(leaf, *args[1:])
        weights = torch.linspace(-1, 1, out.numel(), dtype=torch.float64).to(out.dtype).view(out.shape)
        (gradient,) = torch.autograd.grad((out * weights).sum(), leaf)
        return gradient

    return run


def _softmax_by_hand(x: Tensor) -> Tensor:
    weights = (x - x.amax(-1, True).detach()).exp()
    return weights / weights.sum(-1, True)


_program(
    "softmax_gradient",
    ((24, 40),),
    _gradient(lambda x: nnf.softmax(x, -1)),
    {
        "by hand": internally(_gradient(_softmax_by_hand), torch.float32),
        "reversed": _gradient(lambda x: nnf.softmax(x.flip(-1), -1).flip(-1)),
    },
    {
        "correction dropped": lambda x: (
            nnf.softmax(x, -1) * torch.linspace(-1, 1, x.numel(), dtype=torch.float64).to(x.dtype).view(x.shape)
        ),
        "zero": torch.zeros_like,
    },
)

_program(
    "layer_norm_gradient",
    ((20, 48), (48,), (48,)),
    _gradient(lambda x, w, b: nnf.layer_norm(x, x.shape[-1:], w, b)),
    {"two pass": internally(_gradient(_layer_norm), torch.float32)},
    {
        "eps 1e-2": _gradient(lambda x, w, b: nnf.layer_norm(x, x.shape[-1:], w, b, eps=1e-2)),
        "weight dropped": _gradient(lambda x, w, b: nnf.layer_norm(x, x.shape[-1:])),
        "zero": lambda x, w, b: torch.zeros_like(x),
    },
)

_program(
    "embedding_bag",
    ((30, 24),),
    lambda w: nnf.embedding_bag(torch.arange(60).view(10, 6) * 7 % 30, w, mode="mean"),
    {
        "gather": lambda w: w[torch.arange(60).view(10, 6) * 7 % 30].float().mean(1).to(w.dtype),
        "reversed": lambda w: (nnf.embedding(torch.arange(60).view(10, 6).flip(1) * 7 % 30, w.float()).sum(1) / 6).to(
            w.dtype
        ),
    },
    {
        "sum": lambda w: nnf.embedding_bag(torch.arange(60).view(10, 6) * 7 % 30, w, mode="sum"),
        "one index off": lambda w: nnf.embedding_bag(
            (torch.arange(60).view(10, 6) * 7 + (torch.arange(60).view(10, 6) == 59)) % 30, w, mode="mean"
        ),
    },
)

# ---------------------------------------------------------------- held out: never tuned against

_program(
    "conv_relu",
    ((2, 3, 9, 9), (4, 3, 3, 3), (4,)),
    lambda x, w, b: nnf.relu(nnf.conv2d(x, w, b, padding=1)),
    {
        "unfold": lambda x, w, b: nnf.relu(
            (w.float().view(4, -1) @ nnf.unfold(x.float(), 3, padding=1)).view(2, 4, 9, 9) + b.float().view(4, 1, 1)
        ).to(x.dtype)
    },
    {
        "kernel flipped": lambda x, w, b: nnf.relu(nnf.conv2d(x, w.flip(-1), b, padding=1)),
        "bias dropped": lambda x, w, b: nnf.relu(nnf.conv2d(x, w, padding=1)),
        "no relu": lambda x, w, b: nnf.conv2d(x, w, b, padding=1),
        "one channel dropped": lambda x, w, b: nnf.relu(nnf.conv2d(x[:, :-1], w[:, :-1], b, padding=1)),
    },
    held_out=True,
)
_program(
    "cross_entropy",
    ((40, 17),),
    lambda x: nnf.cross_entropy(x, torch.arange(40) % 17, reduction="none"),
    {
        "by hand": lambda x: (torch.logsumexp(x.float(), -1) - x.float()[torch.arange(40), torch.arange(40) % 17]).to(
            x.dtype
        )
    },
    {
        "smoothed": lambda x: nnf.cross_entropy(x, torch.arange(40) % 17, reduction="none", label_smoothing=0.01),
        "last class missing": lambda x: torch.logsumexp(x[:, :-1], -1) - x[torch.arange(40), torch.arange(40) % 17],
    },
    held_out=True,
    rows=False,
)
_program(
    "cumsum",
    ((6, 200),),
    lambda x: x.cumsum(-1),
    {
        "triangular": lambda x: (x.float() @ torch.ones(200, 200).triu()).to(x.dtype),
        "blocks": lambda x: _blocked_cumsum(x),
    },
    {
        "exclusive": lambda x: x.cumsum(-1) - x,
        "block carry lost": lambda x: torch.cat([x[:, :150].cumsum(-1), x[:, 150:].cumsum(-1)], -1),
    },
    held_out=True,
)


def _blocked_cumsum(x: Tensor) -> Tensor:
    y = x.to(torch.promote_types(x.dtype, torch.float32)).view(6, 20, 10)
    inner = y.cumsum(-1)
    carry = inner[..., -1].cumsum(-1) - inner[..., -1]
    return (inner + carry.unsqueeze(-1)).view(6, 200).to(x.dtype)


_program(
    "group_norm_silu",
    ((3, 8, 6, 5), (8,), (8,)),
    lambda x, w, b: nnf.silu(nnf.group_norm(x, 4, w, b)),
    {
        "by layer norm": lambda x, w, b: nnf.silu(
            (nnf.layer_norm(x.float().view(3, 4, -1), (60,)).view_as(x) * w.view(8, 1, 1) + b.view(8, 1, 1)).to(x.dtype)
        )
    },
    {
        "two groups": lambda x, w, b: nnf.silu(nnf.group_norm(x, 2, w, b)),
        "eps 1e-2": lambda x, w, b: nnf.silu(nnf.group_norm(x, 4, w, b, eps=1e-2)),
        "relu": lambda x, w, b: nnf.relu(nnf.group_norm(x, 4, w, b)),
    },
    held_out=True,
)
_program(
    "cosine_similarity",
    ((30, 32), (30, 32)),
    lambda x, y: nnf.cosine_similarity(x, y, -1),
    {
        "normalised": lambda x, y: (
            ((x.float() / x.float().norm(dim=-1, keepdim=True)) * (y.float() / y.float().norm(dim=-1, keepdim=True)))
            .sum(-1)
            .to(x.dtype)
        )
    },
    {
        "last dropped": lambda x, y: nnf.cosine_similarity(x[:, :-1], y[:, :-1], -1),
        "norm of x squared": lambda x, y: (x * y).sum(-1) / (x * x).sum(-1),
    },
    held_out=True,
    rows=False,
)
_program(
    "softplus_chain",
    ((16, 24),),
    lambda x: torch.log1p(nnf.softplus(nnf.softplus(x) - 1).square()),
    {
        "logaddexp": lambda x: torch.log1p(
            torch.logaddexp(torch.logaddexp(x.double(), x.double() * 0) - 1, x.double() * 0).square()
        ).to(x.dtype)
    },
    {
        "beta 1.01": lambda x: torch.log1p(nnf.softplus(nnf.softplus(x, beta=1.01) - 1).square()),
        "log of the square": lambda x: nnf.softplus(nnf.softplus(x) - 1).square().add(1.001).log(),
    },
    held_out=True,
)
_program(
    "mlp",
    ((10, 20), (32, 20), (32, 32), (8, 32)),
    lambda x, a, b, c: nnf.linear(torch.tanh(nnf.linear(nnf.relu(nnf.linear(x, a) / 5), b) / 6), c),
    {"transposed": lambda x, a, b, c: (c @ torch.tanh((b @ nnf.relu((a @ x.T) / 5)) / 6)).T.contiguous()},
    {
        "relu lost": lambda x, a, b, c: nnf.linear(torch.tanh(nnf.linear(nnf.linear(x, a) / 5, b) / 6), c),
        "leaky": lambda x, a, b, c: nnf.linear(
            torch.tanh(nnf.linear(nnf.leaky_relu(nnf.linear(x, a) / 5, 0.01), b) / 6), c
        ),
    },
    held_out=True,
)


def _rope(x: Tensor, base: float = 10000.0, shift: int = 0) -> Tensor:
    half = x.shape[-1] // 2
    wide = torch.promote_types(x.dtype, torch.float32)
    angle = torch.outer(torch.arange(x.shape[-2], dtype=wide) + shift, base ** (-torch.arange(half, dtype=wide) / half))
    cos, sin = angle.cos().to(x.dtype), angle.sin().to(x.dtype)
    a, b = x[..., :half], x[..., half:]
    return torch.cat([a * cos - b * sin, b * cos + a * sin], -1)


def _rope_complex(x: Tensor) -> Tensor:
    half = x.shape[-1] // 2
    wide = torch.promote_types(x.dtype, torch.float32)
    angle = torch.outer(torch.arange(x.shape[-2], dtype=wide), 10000.0 ** (-torch.arange(half, dtype=wide) / half))
    turned = torch.complex(x[..., :half].to(wide), x[..., half:].to(wide)) * torch.polar(torch.ones_like(angle), angle)
    return torch.cat([turned.real, turned.imag], -1).to(x.dtype)


_program(
    "rope",
    ((2, 9, 16),),
    _rope,
    {"complex": _rope_complex},
    {
        "base 500": lambda x: _rope(x, 500.0),
        "one position off": lambda x: _rope(x, shift=1),
        "sine negated": lambda x: _rope(x.flip(-1)).flip(-1),
    },
    held_out=True,
)
_program(
    "distance",
    ((14, 10), (12, 10)),
    lambda x, y: torch.cdist(x.float(), y.float()).to(x.dtype) if x.dtype != torch.float64 else torch.cdist(x, y),
    {"differences": lambda x, y: (x.double()[:, None] - y.double()[None]).square().sum(-1).sqrt().to(x.dtype)},
    {
        "manhattan": lambda x, y: (x[:, None] - y[None]).abs().sum(-1),
        "squared": lambda x, y: (x[:, None] - y[None]).square().sum(-1),
    },
    held_out=True,
)
_program(
    "huber_gradient",
    ((30, 12), (30, 12)),
    _gradient(lambda x, y: nnf.smooth_l1_loss(x.tanh(), y, reduction="none", beta=0.7)),
    {
        "by hand": internally(
            _gradient(
                lambda x, y: torch.where(
                    (x.tanh() - y).abs() < 0.7, 0.5 / 0.7 * (x.tanh() - y) ** 2, (x.tanh() - y).abs() - 0.35
                )
            ),
            torch.float32,
        )
    },
    {
        "beta 0.71": _gradient(lambda x, y: nnf.smooth_l1_loss(x.tanh(), y, reduction="none", beta=0.71)),
        "squared": _gradient(lambda x, y: (x.tanh() - y) ** 2 * 0.7),
    },
    held_out=True,
)
_program(
    "log_softmax_gather_mean",
    ((32, 20),),
    lambda x: nnf.log_softmax(x, -1).exp().log1p().mean(-1),
    {"by softmax": lambda x: nnf.softmax(x.float(), -1).log1p().mean(-1).to(x.dtype)},
    {
        "log of softmax": lambda x: nnf.softmax(x, -1).mean(-1),
        "dimension": lambda x: nnf.log_softmax(x, 0).exp().log1p().mean(-1),
    },
    held_out=True,
    rows=False,
)
