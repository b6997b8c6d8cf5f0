"""The models whose run time `benchmarks/models_against_stock.py` measures: small ones of every common kind.

Each builder returns a module in evaluation mode and one call's arguments.  Hugging Face models are made from their
configurations with random weights; the others are written out here.
"""

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812  the field's name for it
import transformers
from torch import nn

Case = tuple[nn.Module, tuple[torch.Tensor, ...]]
Builder = Callable[[], Case]


def _words(rows: int, length: int, count: int = 1000) -> torch.Tensor:
    return torch.randint(0, count, (rows, length))


class _Picked(nn.Module):
    """A Hugging Face model that takes and gives plain tensors."""

    def __init__(self, model: nn.Module, result: str, **fixed: Any) -> None:
        super().__init__()
        self.model, self.result, self.fixed = model, result, fixed

    def forward(self, first: torch.Tensor, second: torch.Tensor | None = None) -> torch.Tensor:
        words = {} if second is None else {"decoder_input_ids": second}
        return getattr(self.model(first, **words, **self.fixed), self.result)  # type: ignore[no-any-return]  # nn.Module.__call__ gives Any


def bert() -> Case:
    """Two layers of width 128, 4 sequences of 64 words."""
    config = transformers.BertConfig(
        vocab_size=1000, hidden_size=128, num_hidden_layers=2, num_attention_heads=4, intermediate_size=512,
        hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0,
    )  # fmt: skip
    return _Picked(transformers.BertModel(config, add_pooling_layer=False), "last_hidden_state"), (_words(4, 64),)


def gpt2() -> Case:
    """Two layers of width 128, 4 sequences of 64 words, with the head."""
    config = transformers.GPT2Config(
        vocab_size=1000, n_embd=128, n_layer=2, n_head=4, n_positions=128, resid_pdrop=0.0, embd_pdrop=0.0,
        attn_pdrop=0.0, use_cache=False,
    )  # fmt: skip
    return _Picked(transformers.GPT2LMHeadModel(config), "logits", use_cache=False), (_words(4, 64),)


def llama() -> Case:
    """Two layers of width 128 with grouped keys, 4 sequences of 64 words."""
    config = transformers.LlamaConfig(
        vocab_size=1000, hidden_size=128, intermediate_size=352, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, max_position_embeddings=128, use_cache=False,
    )  # fmt: skip
    return _Picked(transformers.LlamaModel(config), "last_hidden_state", use_cache=False), (_words(4, 64),)


def t5() -> Case:
    """An encoder and a decoder of two layers of width 128, 4 sequences of 48 and 32 words."""
    config = transformers.T5Config(
        vocab_size=1000, d_model=128, d_kv=32, d_ff=512, num_layers=2, num_heads=4, dropout_rate=0.0, use_cache=False
    )
    model = _Picked(transformers.T5Model(config), "last_hidden_state", use_cache=False)
    return model, (_words(4, 48), _words(4, 32))


def vit() -> Case:
    """Two layers of width 128, 4 images of 64 by 64 in patches of 8."""
    config = transformers.ViTConfig(
        hidden_size=128, num_hidden_layers=2, num_attention_heads=4, intermediate_size=512, image_size=64, patch_size=8,
        hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0,
    )  # fmt: skip
    model = _Picked(transformers.ViTModel(config, add_pooling_layer=False), "last_hidden_state")
    return model, (torch.randn(4, 3, 64, 64),)


class _Residual(nn.Module):
    """Two convolutions with batch norm, and the input added; a stride halves the image."""

    def __init__(self, before: int, after: int, stride: int) -> None:
        super().__init__()
        self.one, self.two = (
            nn.Conv2d(before, after, 3, stride, 1, bias=False),
            nn.Conv2d(after, after, 3, 1, 1, bias=False),
        )
        self.norm_one, self.norm_two = nn.BatchNorm2d(after), nn.BatchNorm2d(after)
        self.down = nn.Sequential(nn.Conv2d(before, after, 1, stride, bias=False), nn.BatchNorm2d(after))
        self.same = before == after and stride == 1

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        inside = self.norm_two(self.two(F.relu(self.norm_one(self.one(x)))))
        return F.relu(inside + (x if self.same else self.down(x)))


def resnet() -> Case:
    """A stem with max pooling, four residual blocks, a mean: 4 images of 64 by 64."""
    stem = (nn.Conv2d(3, 32, 7, 2, 3, bias=False), nn.BatchNorm2d(32), nn.ReLU(), nn.MaxPool2d(3, 2, 1))
    blocks = (_Residual(32, 32, 1), _Residual(32, 64, 2), _Residual(64, 64, 1), _Residual(64, 128, 2))
    end = (nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(128, 100))
    return nn.Sequential(*stem, *blocks, *end), (torch.randn(4, 3, 64, 64),)


class _ChannelsFirstNorm(nn.Module):
    """Layer norm over the channels of an image."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.norm(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)  # type: ignore[no-any-return]  # nn.Module.__call__ gives Any


class _ConvNextBlock(nn.Module):
    """A depthwise convolution, layer norm over channels, two linear layers with GELU, a scaled residual."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.depthwise, self.norm = nn.Conv2d(width, width, 7, padding=3, groups=width), nn.LayerNorm(width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.scale = nn.Parameter(torch.full((width,), 0.1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        inside = self.norm(self.depthwise(x).permute(0, 2, 3, 1))
        return x + (self.down(F.gelu(self.up(inside))) * self.scale).permute(0, 3, 1, 2)  # type: ignore[no-any-return]  # nn.Module.__call__ gives Any


def convnext() -> Case:
    """A patch stem, two blocks, a halving, two blocks: 4 images of 64 by 64."""
    first = (nn.Conv2d(3, 48, 4, 4), _ChannelsFirstNorm(48), _ConvNextBlock(48), _ConvNextBlock(48))
    second = (_ChannelsFirstNorm(48), nn.Conv2d(48, 96, 2, 2), _ConvNextBlock(96), _ConvNextBlock(96))
    return nn.Sequential(*first, *second, nn.AdaptiveAvgPool2d(1), nn.Flatten()), (torch.randn(4, 3, 64, 64),)


class _HandLstm(nn.Module):
    """An LSTM cell written out, over 12 steps."""

    def __init__(self) -> None:
        super().__init__()
        self.into, self.again = nn.Linear(64, 256), nn.Linear(64, 256)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        state = cell = x.new_zeros(x.shape[0], 64)
        states = []
        for step in x.unbind(1):
            one, two, three, four = (self.into(step) + self.again(state)).chunk(4, 1)
            cell = torch.sigmoid(two) * cell + torch.sigmoid(one) * torch.tanh(three)
            state = torch.sigmoid(four) * torch.tanh(cell)
            states.append(state)
        return torch.stack(states, 1)


def lstm() -> Case:
    """Width 64, 16 sequences of 12 steps."""
    return _HandLstm(), (torch.randn(16, 12, 64),)


class _Twice(nn.Sequential):
    """Two convolutions with batch norm and ReLU."""

    def __init__(self, before: int, after: int) -> None:
        super().__init__(
            nn.Conv2d(before, after, 3, padding=1), nn.BatchNorm2d(after), nn.ReLU(),
            nn.Conv2d(after, after, 3, padding=1), nn.BatchNorm2d(after), nn.ReLU(),
        )  # fmt: skip


class _UNet(nn.Module):
    """Two levels down by max pooling, two up by bilinear and nearest upsampling, with joins."""

    def __init__(self) -> None:
        super().__init__()
        self.one, self.two, self.low = _Twice(3, 16), _Twice(16, 32), _Twice(32, 64)
        self.up_two, self.up_one, self.head = _Twice(96, 32), _Twice(48, 16), nn.Conv2d(16, 4, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        one = self.one(x)
        two = self.two(F.max_pool2d(one, 2))
        low = self.low(F.max_pool2d(two, 2))
        up = F.interpolate(low, scale_factor=2, mode="bilinear", align_corners=False)
        two = self.up_two(torch.cat([up, two], 1))
        up = F.interpolate(two, scale_factor=2, mode="nearest")
        return self.head(self.up_one(torch.cat([up, one], 1)))  # type: ignore[no-any-return]  # nn.Module.__call__ gives Any


def unet() -> Case:
    """2 images of 64 by 64."""
    return _UNet(), (torch.randn(2, 3, 64, 64),)


class _MixerBlock(nn.Module):
    """Layer norm and two linear layers over positions, then over channels."""

    def __init__(self, positions: int, width: int) -> None:
        super().__init__()
        self.norm_one, self.norm_two = nn.LayerNorm(width), nn.LayerNorm(width)
        self.across = nn.Sequential(nn.Linear(positions, 2 * positions), nn.GELU(), nn.Linear(2 * positions, positions))
        self.along = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.across(self.norm_one(x).transpose(1, 2)).transpose(1, 2)
        return x + self.along(self.norm_two(x))  # type: ignore[no-any-return]  # nn.Module.__call__ gives Any


def mixer() -> Case:
    """Two blocks, 4 images as 64 patches of width 128."""
    return nn.Sequential(_MixerBlock(64, 128), _MixerBlock(64, 128)), (torch.randn(4, 64, 128),)


class _Recommender(nn.Module):
    """Eight tables summed by bags, the dot products of their rows, and a perceptron."""

    def __init__(self) -> None:
        super().__init__()
        self.tables = nn.ModuleList(nn.EmbeddingBag(1000, 32, mode="sum") for _ in range(8))
        self.low = nn.Sequential(nn.Linear(13, 64), nn.ReLU(), nn.Linear(64, 32), nn.ReLU())
        self.top = nn.Sequential(nn.Linear(32 + 36, 64), nn.ReLU(), nn.Linear(64, 1))
        self.register_buffer("places", torch.tril_indices(9, 9, -1))

    def forward(self, dense: torch.Tensor, words: torch.Tensor) -> torch.Tensor:
        low = self.low(dense)
        rows = torch.stack([low, *(table(words[:, n]) for n, table in enumerate(self.tables))], 1)
        products = rows @ rows.transpose(1, 2)
        return torch.sigmoid(self.top(torch.cat([low, products[:, self.places[0], self.places[1]]], 1)))  # type: ignore[index]  # a buffer is a tensor or a module to mypy


def dlrm() -> Case:
    """256 rows of 13 numbers and 8 bags of 4 words."""
    return _Recommender(), (torch.randn(256, 13), torch.randint(0, 1000, (256, 8, 4)))


class _Words(nn.Module):
    """Words and positions, a layer norm."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.places, self.norm = nn.Embedding(1000, 128), nn.Embedding(128, 128), nn.LayerNorm(128)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        at = torch.arange(x.shape[1], device=x.device)
        return self.norm(self.words(x) + self.places(at))  # type: ignore[no-any-return]  # nn.Module.__call__ gives Any


def embedding() -> Case:
    """8 sequences of 128 words."""
    return _Words(), (_words(8, 128),)


def conv_block() -> Case:
    """Three times convolution, batch norm, ReLU: 4 images of 32 by 32."""
    layers: list[nn.Module] = []
    for before, after in ((16, 32), (32, 32), (32, 64)):
        layers += [nn.Conv2d(before, after, 3, padding=1, bias=False), nn.BatchNorm2d(after), nn.ReLU()]
    return nn.Sequential(*layers), (torch.randn(4, 16, 32, 32),)


def group_norm() -> Case:
    """Twice convolution, group norm, SiLU: 4 images of 32 by 32."""
    layers: list[nn.Module] = []
    for before, after in ((16, 32), (32, 64)):
        layers += [nn.Conv2d(before, after, 3, padding=1), nn.GroupNorm(8, after), nn.SiLU()]
    return nn.Sequential(*layers), (torch.randn(4, 16, 32, 32),)


class _GatedBlock(nn.Module):
    """RMS norm and a gated perceptron, with a residual."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm, self.gate = nn.RMSNorm(width), nn.Linear(width, 2 * width, bias=False)
        self.up, self.down = nn.Linear(width, 2 * width, bias=False), nn.Linear(2 * width, width, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        inside = self.norm(x)
        return x + self.down(F.silu(self.gate(inside)) * self.up(inside))  # type: ignore[no-any-return]  # nn.Module.__call__ gives Any


def rms_norm() -> Case:
    """Three gated blocks of width 128, 256 rows."""
    return nn.Sequential(*(_GatedBlock(128) for _ in range(3))), (torch.randn(256, 128),)


def mlp() -> Case:
    """Four linear layers of width 256 with ReLU, 128 rows."""
    layers: list[nn.Module] = []
    for _ in range(4):
        layers += [nn.Linear(256, 256), nn.ReLU()]
    return nn.Sequential(*layers), (torch.randn(128, 256),)


class _Attention(nn.Module):
    """Softmax attention written out, with a causal mask."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads, self.into, self.out = heads, nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        rows, length, width = x.shape
        q, k, v = self.into(x).view(rows, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        scores = q @ k.transpose(-1, -2) / (width // self.heads) ** 0.5
        mask = torch.ones(length, length, dtype=torch.bool, device=x.device).tril()
        weights = scores.masked_fill(~mask, float("-inf")).softmax(-1)
        return self.out((weights @ v).transpose(1, 2).reshape(rows, length, width))  # type: ignore[no-any-return]  # nn.Module.__call__ gives Any


def attention() -> Case:
    """Width 128, 4 heads, 4 sequences of 128."""
    return _Attention(128, 4), (torch.randn(4, 128, 128),)


class _Pointwise(nn.Module):
    """Ten pointwise operators in a row."""

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        z = torch.sin(x) * y + torch.cos(y) * x
        return F.gelu(z) * torch.sigmoid(z) + torch.exp(-z * z).clamp(0.1, 0.9)


def pointwise() -> Case:
    """64K elements."""
    return _Pointwise(), (torch.randn(256, 256), torch.randn(256, 256))


class _Stencil(nn.Module):
    """Five steps of heat in the plane, with slices written into copies."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for _ in range(5):
            inside = x[1:-1, 1:-1]
            around = x[:-2, 1:-1] + x[2:, 1:-1] + x[1:-1, :-2] + x[1:-1, 2:]
            x = x.clone()
            x[1:-1, 1:-1] = inside + 0.1 * (around - 4 * inside)
        return x


def stencil() -> Case:
    """256 by 256."""
    return _Stencil(), (torch.randn(256, 256),)


class _Encoder(nn.TransformerEncoderLayer):
    """PyTorch's own encoder layer, which never takes its one fused operator for the whole of itself."""

    def train(self, mode: bool = True) -> "_Encoder":
        return super().train(True)


def encoder() -> Case:
    """One encoder layer of PyTorch's own without dropout, 4 sequences of 64."""
    layer = _Encoder(128, 4, 512, dropout=0.0, batch_first=True, activation="gelu", norm_first=True)
    return layer, (torch.randn(4, 64, 128),)


def separable() -> Case:
    """Depthwise and pointwise convolutions with batch norm and ReLU6, average pooling: 4 images of 32 by 32."""
    layers: list[nn.Module] = [nn.Conv2d(3, 16, 3, 2, 1, bias=False), nn.BatchNorm2d(16), nn.ReLU6()]
    for before, after in ((16, 32), (32, 64)):
        layers += [nn.Conv2d(before, before, 3, 1, 1, groups=before, bias=False), nn.BatchNorm2d(before), nn.ReLU6()]
        layers += [nn.Conv2d(before, after, 1, bias=False), nn.BatchNorm2d(after), nn.ReLU6(), nn.AvgPool2d(2)]
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(64 * 16, 10)), (torch.randn(4, 3, 32, 32),)


class _AutoEncoder(nn.Module):
    """A variational autoencoder without its noise: linear layers, GELU, softplus."""

    def __init__(self) -> None:
        super().__init__()
        self.into, self.mean, self.spread = nn.Linear(784, 128), nn.Linear(128, 16), nn.Linear(128, 16)
        self.back, self.out = nn.Linear(16, 128), nn.Linear(128, 784)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        inside = F.gelu(self.into(x))
        code = self.mean(inside) * F.softplus(self.spread(inside))
        return torch.sigmoid(self.out(F.gelu(self.back(code))))


def autoencoder() -> Case:
    """64 rows of 784."""
    return _AutoEncoder(), (torch.rand(64, 784),)


INFERENCE: dict[str, Builder] = {
    each.__name__: each
    for each in (
        attention, autoencoder, bert, conv_block, convnext, dlrm, embedding, encoder, gpt2, group_norm, llama, lstm,
        mixer, mlp, pointwise, resnet, rms_norm, separable, stencil, t5, unet, vit,
    )
}  # fmt: skip
TRAINING: dict[str, Builder] = {
    each.__name__: each
    for each in (
        attention, bert, conv_block, convnext, embedding, gpt2, group_norm, llama, lstm, mixer, mlp, resnet, rms_norm,
        unet,
    )
}  # fmt: skip
