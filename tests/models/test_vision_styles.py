"""Vision models as people write them, tiny: one graph each, outputs, gradients and running statistics of eager."""

import dataclasses
import math

import pytest
import torch
import torch.nn.functional as F  # noqa: N812 - as everyone writes it
from torch import nn

from support.programs import Corpus, check
from support.validated import check_stages

corpus = Corpus()
program = corpus.program


def images(count=2, channels=3, size=8):
    return torch.linspace(-1, 1, count * channels * size * size).reshape(count, channels, size, size)


def with_model(kind, *inputs, train=True):
    """Return a maker of (seeded model, inputs...)."""

    def make():
        torch.manual_seed(3)
        return (kind().train(train), *(value.clone() for value in inputs))

    return make


class ResidualBlock(nn.Module):
    expansion = 2

    def __init__(self, width, out, stride=1):
        super().__init__()
        self.conv1 = nn.Conv2d(width, out, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(out)
        self.conv2 = nn.Conv2d(out, out * self.expansion, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(out * self.expansion)
        self.act = nn.ReLU(inplace=True)
        self.shortcut = None
        if stride != 1 or width != out * self.expansion:
            self.shortcut = nn.Sequential(
                nn.Conv2d(width, out * self.expansion, 1, stride, bias=False), nn.BatchNorm2d(out * self.expansion)
            )

    def forward(self, x):
        identity = x
        out = self.act(self.bn1(self.conv1(x)))
        out = self.bn2(self.conv2(out))
        if self.shortcut is not None:
            identity = self.shortcut(x)
        out += identity
        return self.act(out)


class ResidualNetwork(nn.Module):
    def __init__(self, layout=((4, 1), (8, 2))):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 4, 3, 1, 1), nn.BatchNorm2d(4), nn.ReLU())
        width, stages = 4, []
        for out, stride in layout:
            stages.append(ResidualBlock(width, out, stride))
            width = out * ResidualBlock.expansion
        self.stages = nn.ModuleList(stages)
        self.head = nn.Linear(width, 5)

    def forward(self, x):
        features = []
        x = self.stem(x)
        for stage in self.stages:
            x = stage(x)
            features.append(x.mean(dim=(2, 3)))
        return self.head(torch.flatten(F.adaptive_avg_pool2d(x, 1), 1)), features[-1]


@program(make=with_model(ResidualNetwork, images()), backward=True)
def residual_network(model, x):
    return model(x)


@program(make=with_model(ResidualNetwork, images(), train=False), backward=True)
def residual_network_in_evaluation(model, x):
    return model(x)[0]


class DoubleConv(nn.Sequential):
    def __init__(self, width, out):
        super().__init__(nn.Conv2d(width, out, 3, padding=1), nn.GroupNorm(2, out), nn.SiLU())


class SmallUNet(nn.Module):
    def __init__(self, widths=(4, 8)):
        super().__init__()
        self.down, self.up = nn.ModuleList(), nn.ModuleList()
        width = 3
        for out in widths:
            self.down.append(DoubleConv(width, out))
            width = out
        self.middle = DoubleConv(width, width * 2)
        for out in reversed(widths):
            self.up.append(nn.ConvTranspose2d(out * 2, out, 2, 2))
            self.up.append(DoubleConv(out * 2, out))
        self.last = nn.Conv2d(widths[0], 1, 1)

    def forward(self, x):
        skips = []
        for stage in self.down:
            x = stage(x)
            skips.append(x)
            x = F.max_pool2d(x, 2)
        x = self.middle(x)
        skips = skips[::-1]
        for index in range(0, len(self.up), 2):
            x = self.up[index](x)
            skip = skips[index // 2]
            if x.shape != skip.shape:
                x = F.interpolate(x, size=skip.shape[2:])
            x = self.up[index + 1](torch.cat((skip, x), dim=1))
        return self.last(x)


@program(make=with_model(SmallUNet, images()), backward=True)
def unet(model, x):
    return model(x)


@program(make=with_model(SmallUNet, images(size=10)), backward=True)
def unet_with_odd_sizes(model, x):
    return model(x[..., :9, :9])


class Variational(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(nn.Flatten(), nn.Linear(192, 16), nn.ReLU())
        self.mean, self.log_variance = nn.Linear(16, 4), nn.Linear(16, 4)
        self.decoder = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 192), nn.Sigmoid())

    def reparameterize(self, mean, log_variance):
        if not self.training:
            return mean
        deviation = torch.exp(0.5 * log_variance)
        return mean + torch.randn_like(deviation) * deviation

    def forward(self, x):
        hidden = self.encoder(x)
        mean, log_variance = self.mean(hidden), self.log_variance(hidden)
        z = self.reparameterize(mean, log_variance)
        return self.decoder(z).view_as(x), mean, log_variance


@program(make=with_model(Variational, images().abs()), backward=True)
def variational_autoencoder_loss(model, x):
    reconstruction, mean, log_variance = model(x)
    reconstruction_loss = F.binary_cross_entropy(reconstruction, x, reduction="sum")
    divergence = -0.5 * torch.sum(1 + log_variance - mean.pow(2) - log_variance.exp())
    return {"loss": reconstruction_loss + divergence, "kl": divergence.detach()}


class TimeEmbedding(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.width = width

    def forward(self, time):
        half = self.width // 2
        frequencies = torch.exp(torch.arange(half, device=time.device) * -(math.log(10000) / (half - 1)))
        angles = time[:, None] * frequencies[None, :]
        return torch.cat((angles.sin(), angles.cos()), dim=-1)


class Denoiser(nn.Module):
    def __init__(self, steps=10):
        super().__init__()
        betas = torch.linspace(1e-4, 0.02, steps)
        self.register_buffer("betas", betas)
        self.register_buffer("kept", torch.cumprod(1 - betas, dim=0))
        self.embed = nn.Sequential(TimeEmbedding(8), nn.Linear(8, 3))
        self.net = nn.Conv2d(3, 3, 3, padding=1)
        self.steps = steps

    def predict(self, x, time):
        return self.net(x + self.embed(time)[:, :, None, None])

    def forward(self, x):
        time = torch.randint(0, self.steps, (x.shape[0],), device=x.device)
        noise = torch.randn_like(x)
        kept = self.kept[time].view(-1, *([1] * (x.dim() - 1)))
        noisy = kept.sqrt() * x + (1 - kept).sqrt() * noise
        return F.mse_loss(self.predict(noisy, time), noise)

    @torch.no_grad()
    def sample(self, x):
        for step in reversed(range(self.steps)):
            time = torch.full((x.shape[0],), step, dtype=torch.long)
            noise = torch.randn_like(x) if step > 0 else 0
            x = x - self.betas[step] * self.predict(x, time) + self.betas[step].sqrt() * noise
        return x


@program(make=with_model(Denoiser, images()), backward=True)
def diffusion_training_loss(model, x):
    return model(x)


@program(make=with_model(lambda: Denoiser(3), images()))
def diffusion_sampling(model, x):
    return model.sample(x)


class PatchEmbedding(nn.Module):
    def __init__(self, width=8, patch=4, size=8):
        super().__init__()
        self.projection = nn.Conv2d(3, width, patch, patch)
        self.cls = nn.Parameter(torch.zeros(1, 1, width))
        self.position = nn.Parameter(torch.randn(1, (size // patch) ** 2 + 1, width) * 0.02)

    def forward(self, x):
        x = self.projection(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.cls.expand(x.shape[0], -1, -1), x], dim=1)
        return x + self.position[:, : x.size(1)]


class Attention(nn.Module):
    def __init__(self, width, heads=2, fused=True):
        super().__init__()
        self.heads, self.scale, self.fused = heads, (width // heads) ** -0.5, fused
        self.qkv, self.out = nn.Linear(width, width * 3), nn.Linear(width, width)
        self.dropout = nn.Dropout(0.1)

    def forward(self, x):
        batch, length, width = x.shape
        qkv = self.qkv(x).reshape(batch, length, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        q, k, v = qkv.unbind(0)
        if self.fused:
            x = F.scaled_dot_product_attention(q, k, v)
        else:
            weights = self.dropout((q @ k.transpose(-2, -1) * self.scale).softmax(dim=-1))
            x = weights @ v
        return self.out(x.transpose(1, 2).reshape(batch, length, width))


class DropPath(nn.Module):
    def __init__(self, rate):
        super().__init__()
        self.rate = rate

    def forward(self, x):
        if self.rate == 0.0 or not self.training:
            return x
        keep = 1 - self.rate
        mask = x.new_empty((x.shape[0],) + (1,) * (x.ndim - 1)).bernoulli_(keep)
        return x * mask.div_(keep)


class Layer(nn.Module):
    def __init__(self, width, fused, rate):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = Attention(width, fused=fused)
        self.mlp = nn.Sequential(nn.Linear(width, width * 2), nn.GELU(), nn.Linear(width * 2, width))
        self.drop_path = DropPath(rate) if rate > 0 else nn.Identity()

    def forward(self, x):
        x = x + self.drop_path(self.attention(self.norm1(x)))
        return x + self.drop_path(self.mlp(self.norm2(x)))


class VisionTransformer(nn.Module):
    def __init__(self, fused=True):
        super().__init__()
        self.embed = PatchEmbedding()
        rates = [rate.item() for rate in torch.linspace(0, 0.2, 2)]
        self.layers = nn.Sequential(*(Layer(8, fused, rate) for rate in rates))
        self.head = nn.Linear(8, 3)

    def forward(self, x):
        return self.head(self.layers(self.embed(x))[:, 0])


@program(make=with_model(VisionTransformer, images()), backward=True)
def vision_transformer(model, x):
    return F.cross_entropy(model(x), torch.tensor([0, 2]), label_smoothing=0.1)


@program(make=with_model(lambda: VisionTransformer(fused=False), images()), backward=True)
def vision_transformer_with_written_out_attention(model, x):
    return model(x)


class MixerBlock(nn.Module):
    def __init__(self, tokens, width):
        super().__init__()
        self.norms = nn.ModuleDict({"tokens": nn.LayerNorm(width), "channels": nn.LayerNorm(width)})
        self.tokens, self.channels = nn.Linear(tokens, tokens), nn.Linear(width, width)

    def forward(self, x):
        x = x + F.gelu(self.tokens(self.norms["tokens"](x).mT)).mT
        return x + F.gelu(self.channels(self.norms["channels"](x)))


@program(
    make=with_model(
        lambda: nn.ModuleList(MixerBlock(4, 6) for _ in range(2)), torch.linspace(-1, 1, 48).reshape(2, 4, 6)
    ),
    backward=True,
)
def mlp_mixer(blocks, x):
    for block in blocks:
        x = block(x)
    return x.mean(1)


class ConvNextBlock(nn.Module):
    def __init__(self, width=4, scale=1e-6):
        super().__init__()
        self.depthwise = nn.Conv2d(width, width, 7, padding=3, groups=width)
        self.norm = nn.LayerNorm(width, eps=1e-6)
        self.up, self.act, self.down = nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)
        self.gamma = nn.Parameter(scale * torch.ones(width), requires_grad=True) if scale > 0 else None

    def forward(self, x):
        residual = x
        x = self.depthwise(x).permute(0, 2, 3, 1)
        x = self.down(self.act(self.up(self.norm(x))))
        if self.gamma is not None:
            x = self.gamma * x
        return residual + x.permute(0, 3, 1, 2)


@program(make=with_model(ConvNextBlock, images(channels=4)), backward=True)
def convnext_block(model, x):
    return model(x)


class SqueezeExcite(nn.Module):
    def __init__(self, width, reduction=2):
        super().__init__()
        self.gate = nn.Sequential(
            nn.AdaptiveAvgPool2d(1),
            nn.Conv2d(width, width // reduction, 1),
            nn.ReLU(),
            nn.Conv2d(width // reduction, width, 1),
            nn.Hardsigmoid(),
        )

    def forward(self, x):
        return x * self.gate(x)


class DenseLayers(nn.ModuleDict):
    def __init__(self):
        super().__init__()
        for index in range(3):
            self[f"layer{index}"] = nn.Conv2d(4 + 2 * index, 2, 3, padding=1)

    def forward(self, x):
        features = [x]
        for _, layer in self.items():
            features.append(F.relu(layer(torch.cat(features, 1))))
        return torch.cat(features, 1)


@program(
    make=with_model(lambda: nn.Sequential(SqueezeExcite(4), DenseLayers(), nn.PixelShuffle(1)), images(channels=4)),
    backward=True,
)
def squeeze_excite_and_dense_layers(model, x):
    return model(x)


def generalized_iou(a, b):
    """Return the pairwise generalised intersection over union of boxes (x0, y0, x1, y1)."""

    def area(box):
        return (box[:, 2] - box[:, 0]) * (box[:, 3] - box[:, 1])

    low = torch.max(a[:, None, :2], b[None, :, :2])
    high = torch.min(a[:, None, 2:], b[None, :, 2:])
    inner = (high - low).clamp(min=0).prod(-1)
    union = area(a)[:, None] + area(b)[None, :] - inner
    hull = (torch.max(a[:, None, 2:], b[None, :, 2:]) - torch.min(a[:, None, :2], b[None, :, :2])).clamp(min=0).prod(-1)
    return inner / union - (hull - union) / hull


class SetPrediction(nn.Module):
    def __init__(self):
        super().__init__()
        self.queries = nn.Embedding(4, 8)
        self.attention = nn.MultiheadAttention(8, 2, batch_first=True)
        self.classes, self.boxes = nn.Linear(8, 3), nn.Linear(8, 4)

    def forward(self, memory):
        queries = self.queries.weight.unsqueeze(0).repeat(memory.size(0), 1, 1)
        found, _ = self.attention(queries, memory, memory, need_weights=False)
        return {"logits": self.classes(found), "boxes": self.boxes(found).sigmoid()}


def corners(boxes):
    x, y, w, h = boxes.unbind(-1)
    return torch.stack([x - w / 2, y - h / 2, x + w / 2, y + h / 2], dim=-1)


@program(make=with_model(SetPrediction, torch.linspace(-1, 1, 80).reshape(2, 5, 8)), backward=True)
def set_prediction_costs(model, memory):
    targets = [
        {"labels": torch.tensor([1]), "boxes": torch.tensor([[0.5, 0.5, 0.2, 0.4]])},
        {"labels": torch.tensor([0, 2]), "boxes": torch.rand(2, 4) * 0.5 + 0.2},
    ]
    out = model(memory)
    probabilities = out["logits"].flatten(0, 1).softmax(-1)
    labels = torch.cat([target["labels"] for target in targets])
    boxes = torch.cat([target["boxes"] for target in targets])
    cost = torch.cdist(out["boxes"].flatten(0, 1), boxes, p=1) - probabilities[:, labels]
    cost = cost - generalized_iou(corners(out["boxes"].flatten(0, 1)), corners(boxes))
    parts = cost.view(2, 4, -1).split([len(target["labels"]) for target in targets], -1)
    chosen = [part[index].argmin(0) for index, part in enumerate(parts)]
    pairs = enumerate(zip(parts, chosen, strict=True))
    return cost.mean() + sum(part[index].gather(0, best[None]).sum() for index, (part, best) in pairs)


class FakeQuantize(nn.Module):
    def __init__(self, bits=8):
        super().__init__()
        self.low, self.high = 0, 2**bits - 1
        self.register_buffer("least", torch.tensor(float("inf")))
        self.register_buffer("most", torch.tensor(float("-inf")))

    def forward(self, x):
        if self.training:
            self.least.copy_(torch.minimum(self.least, x.detach().amin()))
            self.most = torch.maximum(self.most, x.detach().amax())
        scale = ((self.most - self.least) / (self.high - self.low)).clamp(min=1e-8)
        zero = (self.low - self.least / scale).round()
        quantized = ((x / scale + zero).round().clamp(self.low, self.high) - zero) * scale
        return x + (quantized - x).detach()


@program(
    make=with_model(
        lambda: nn.Sequential(FakeQuantize(), nn.Linear(4, 4), FakeQuantize(4)), torch.linspace(-1, 1, 12).reshape(3, 4)
    ),
    backward=True,
)
def quantization_aware_training(model, x):
    return model(x)


@corpus.parametrize()
def test_program(program):
    check(program)


@pytest.mark.slow
@corpus.parametrize()
def test_program_through_our_own_tracing(program):
    check(dataclasses.replace(program, rounding=True, settings=program.settings | {"backend": "aot_eager"}))


@pytest.mark.cc
@corpus.parametrize()
def test_every_stage_agrees(program):
    check_stages(program)
