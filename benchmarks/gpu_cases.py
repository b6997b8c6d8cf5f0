"""What `benchmarks/gpu.py` measures: kernels and models, in the sizes of a GPU or, dry, of an interpreter.

A case is made on a device when its turn comes.  `traffic` is the least number of bytes that its forward (and backward,
where it trains) can move through memory: what is read once and what is written once.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812  the field's name for it
from torch import nn

Function = Callable[..., Any]


@dataclass(frozen=True)
class Case:
    """One program: a function or module, its inputs, whether gradients are taken, and the bytes it must move."""

    function: Function
    inputs: tuple[torch.Tensor, ...]
    trains: bool = False
    traffic: int = 0


Maker = Callable[[str, bool], Case]
"""Makes a case on a device; the second argument asks for sizes that an interpreter can bear."""


def drawn(device: str, *shape: int, dtype: torch.dtype = torch.float32, grad: bool = False) -> torch.Tensor:
    """Return normal numbers."""
    return torch.randn(shape, device=device).to(dtype).requires_grad_(grad)


def _moved(*tensors: torch.Tensor, times: int = 1) -> int:
    return times * sum(each.numel() * each.element_size() for each in tensors)


def _rows(dry: bool) -> tuple[int, int]:
    return (8, 40) if dry else (8192, 4096)


def pointwise(device: str, dry: bool) -> Case:
    """Six operators in one pass over two tensors."""
    x, y = drawn(device, *_rows(dry)), drawn(device, *_rows(dry))
    return Case(lambda x, y: ((x * y + 1).sin() * y).relu() - x, (x, y), traffic=_moved(x, y, x))


def half_pointwise(device: str, dry: bool) -> Case:
    """The same in bfloat16."""
    x, y = (drawn(device, *_rows(dry), dtype=torch.bfloat16) for _ in range(2))
    return Case(lambda x, y: ((x * y + 1).sin() * y).relu() - x, (x, y), traffic=_moved(x, y, x))


def softmax(device: str, dry: bool) -> Case:
    """Rows of 4096."""
    x = drawn(device, *_rows(dry))
    return Case(lambda x: x.softmax(-1), (x,), traffic=_moved(x, x))


def long_softmax(device: str, dry: bool) -> Case:
    """Few rows that are cut into parts."""
    x = drawn(device, *((2, 70_000) if dry else (32, 1_048_576)))
    return Case(lambda x: x.softmax(-1), (x,), traffic=_moved(x, x))


def sum_of_all(device: str, dry: bool) -> Case:
    """One number of a whole tensor."""
    x = drawn(device, *((70_000,) if dry else (2**25,)))
    return Case(lambda x: x.sum(), (x,), traffic=_moved(x))


def column_sum(device: str, dry: bool) -> Case:
    """The gradient of a bias."""
    x = drawn(device, *((1100, 40) if dry else (32_768, 1024)))
    return Case(lambda x: x.sum(0), (x,), traffic=_moved(x))


def layer_norm(device: str, dry: bool) -> Case:
    """Forward and backward."""
    x, width = drawn(device, *_rows(dry), grad=True), _rows(dry)[1]
    weight, bias = (drawn(device, width, grad=True) for _ in range(2))
    return Case(lambda x, w, b: F.layer_norm(x, [x.shape[-1]], w, b), (x, weight, bias), True, _moved(x, times=5))


def cross_entropy(device: str, dry: bool) -> Case:
    """Forward and backward of the loss of a language model."""
    rows, classes = (6, 50) if dry else (4096, 32_000)
    x = drawn(device, rows, classes, grad=True)
    return Case(F.cross_entropy, (x, torch.randint(classes, (rows,), device=device)), True, _moved(x, times=3))


def transposed(device: str, dry: bool) -> Case:
    """A transposed read beside a broadcast one."""
    side = 40 if dry else 6144
    x, y, row = drawn(device, side, side), drawn(device, side, side), drawn(device, side)
    return Case(lambda x, y, r: (x.t() + y) * r, (x, y, row), traffic=_moved(x, y, y))


def encoder(device: str, dry: bool) -> Case:
    """torch's own encoder layer, forward and backward."""
    width, length = (16, 5) if dry else (1024, 512)
    layer = nn.TransformerEncoderLayer(width, 4, 4 * width, dropout=0.0, batch_first=True, device=device)
    return Case(layer, (drawn(device, 2 if dry else 16, length, width, grad=True),), True)


def embedding(device: str, dry: bool) -> Case:
    """Rows of a table, forward and backward."""
    count, width, words = (20, 8, 6) if dry else (50_000, 1024, 16_384)
    table = drawn(device, count, width, grad=True)
    places = torch.randint(count, (words,), device=device)
    return Case(lambda t, i: F.embedding(i, t) * 2, (table, places), True, _moved(table) + 4 * words * width * 4)


def running_sum(device: str, dry: bool) -> Case:
    """cumsum between two operators."""
    x = drawn(device, *_rows(dry))
    return Case(lambda x: (x * 2).cumsum(-1) + 1, (x,), traffic=_moved(x, x))


def group_norm(device: str, dry: bool) -> Case:
    """32 groups of an image's channels, forward and backward."""
    channels, side = (4, 6) if dry else (256, 56)
    x = drawn(device, 2 if dry else 32, channels, side, side, grad=True)
    weight, bias = (drawn(device, channels, grad=True) for _ in range(2))
    groups = 2 if dry else 32
    return Case(lambda x, w, b: F.group_norm(x, groups, w, b), (x, weight, bias), True, _moved(x, times=5))


def pooling(device: str, dry: bool) -> Case:
    """The greatest of windows of 3 x 3."""
    x = drawn(device, *((1, 2, 8, 8) if dry else (64, 64, 112, 112)))
    return Case(lambda x: F.max_pool2d(x, 3, 2, 1).relu(), (x,), traffic=_moved(x) * 5 // 4)


KERNELS: dict[str, Maker] = {
    "pointwise chain": pointwise,
    "pointwise chain, bf16": half_pointwise,
    "softmax": softmax,
    "softmax of long rows": long_softmax,
    "sum of all": sum_of_all,
    "column sum": column_sum,
    "layer norm, training": layer_norm,
    "cross entropy, training": cross_entropy,
    "transposed broadcast": transposed,
    "encoder layer, training": encoder,
    "embedding, training": embedding,
    "cumsum": running_sum,
    "group norm, training": group_norm,
    "pooling": pooling,
}


class FirstResult(nn.Module):
    """A model of transformers that gives its first result alone."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, given: torch.Tensor) -> torch.Tensor:
        """Return the first tensor of what the model gives."""
        result: torch.Tensor = self.model(given)[0]
        return result


def _model(name: str, dry: bool, small: dict[str, Any], large: dict[str, Any]) -> nn.Module:
    library: Any = importlib.import_module("transformers")
    config = library.AutoConfig.for_model(name, **(small if dry else large))
    return FirstResult(library.AutoModel.from_config(config))


def _language(name: str, small: dict[str, Any], large: dict[str, Any]) -> Maker:
    def make(device: str, dry: bool) -> Case:
        model = _model(name, dry, {"vocab_size": 100, **small}, large).to(device)
        return Case(model, (torch.randint(100, (1, 6) if dry else (8, 512), device=device),), True)

    return make


def _images(name: str, small: dict[str, Any], large: dict[str, Any]) -> Maker:
    def make(device: str, dry: bool) -> Case:
        model = _model(name, dry, small, large).to(device)
        side = 32 if dry else 224
        return Case(model, (torch.rand((1 if dry else 32, 3, side, side), device=device),), True)

    return make


def adam(device: str, dry: bool) -> Case:
    """One step of Adam over four tensors."""
    shape = (6, 8) if dry else (4096, 1024)
    parts = tuple(torch.rand(shape, device=device) for _ in range(4))

    def update(p: torch.Tensor, g: torch.Tensor, m: torch.Tensor, v: torch.Tensor) -> tuple[torch.Tensor, ...]:
        m = m * 0.9 + g * 0.1
        v = v * 0.999 + g * g * 0.001
        return p - 1e-3 * (m / 0.1) / ((v / 0.001).sqrt() + 1e-8), m, v

    return Case(update, parts, traffic=_moved(*parts) + _moved(*parts[:3]))


_NARROW = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32}
_QUIET = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}  # draws are not what is compared
MODELS: dict[str, Maker] = {
    "BERT": _language("bert", {**_NARROW, **_QUIET}, {"num_hidden_layers": 4, **_QUIET}),
    "GPT-2": _language(
        "gpt2",
        {"n_embd": 16, "n_layer": 1, "n_head": 2, "resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0},
        {"n_layer": 4, "resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0},
    ),
    "Llama": _language(
        "llama",
        _NARROW,
        {"hidden_size": 1024, "intermediate_size": 2816, "num_hidden_layers": 4, "num_attention_heads": 16},
    ),
    "ViT": _images(
        "vit", {**_NARROW, **_QUIET, "image_size": 32, "patch_size": 16}, {"num_hidden_layers": 4, **_QUIET}
    ),
    "ResNet": _images(
        "resnet",
        {"depths": [1], "hidden_sizes": [16], "embedding_size": 8},
        {"depths": [3, 4, 6, 3]},
    ),
    "Adam step": adam,
}
