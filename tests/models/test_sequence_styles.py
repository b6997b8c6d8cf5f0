"""Sequence models as people write them, tiny: one graph each, outputs, gradients and state of eager."""

import dataclasses
import math
from dataclasses import dataclass

import pytest
import torch
import torch.nn.functional as F  # noqa: N812 - as everyone writes it
from torch import nn

from support.programs import Corpus, check
from support.validated import check_stages

corpus = Corpus()
program = corpus.program
WORDS = torch.arange(10).reshape(2, 5) * 3 % 11
SIGNAL = torch.linspace(-1, 1, 2 * 5 * 6).reshape(2, 5, 6)


def with_model(kind, *inputs, train=True):
    """Return a maker of (seeded model, inputs...)."""

    def make():
        torch.manual_seed(3)
        return (kind().train(train), *(value.clone() for value in inputs))

    return make


@dataclass
class Settings:
    block: int = 8
    words: int = 11
    layers: int = 2
    heads: int = 2
    width: int = 8
    dropout: float = 0.1
    bias: bool = True


class Norm(nn.Module):
    def __init__(self, width, bias):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))
        self.bias = nn.Parameter(torch.zeros(width)) if bias else None

    def forward(self, x):
        return F.layer_norm(x, self.weight.shape, self.weight, self.bias, 1e-5)


class CausalAttention(nn.Module):
    def __init__(self, settings):
        super().__init__()
        assert settings.width % settings.heads == 0
        self.qkv = nn.Linear(settings.width, 3 * settings.width, bias=settings.bias)
        self.out = nn.Linear(settings.width, settings.width, bias=settings.bias)
        self.attention_dropout, self.dropout = nn.Dropout(settings.dropout), nn.Dropout(settings.dropout)
        self.heads, self.width = settings.heads, settings.width
        self.flash = hasattr(F, "scaled_dot_product_attention") and settings.bias
        if not self.flash:
            mask = torch.tril(torch.ones(settings.block, settings.block))
            self.register_buffer("mask", mask.view(1, 1, settings.block, settings.block))

    def forward(self, x):
        batch, length, width = x.size()
        q, k, v = (
            part.view(batch, length, self.heads, width // self.heads).transpose(1, 2)
            for part in self.qkv(x).split(self.width, dim=2)
        )
        if self.flash:
            y = F.scaled_dot_product_attention(q, k, v, dropout_p=0.1 if self.training else 0, is_causal=True)
        else:
            weights = (q @ k.transpose(-2, -1)) * (1.0 / math.sqrt(k.size(-1)))
            weights = weights.masked_fill(self.mask[:, :, :length, :length] == 0, float("-inf"))
            y = self.attention_dropout(F.softmax(weights, dim=-1)) @ v
        return self.dropout(self.out(y.transpose(1, 2).contiguous().view(batch, length, width)))


class Block(nn.Module):
    def __init__(self, settings):
        super().__init__()
        self.ln_1, self.ln_2 = Norm(settings.width, settings.bias), Norm(settings.width, settings.bias)
        self.attention = CausalAttention(settings)
        up, down = nn.Linear(settings.width, 16), nn.Linear(16, settings.width)
        self.mlp = nn.ModuleDict({"up": up, "act": nn.GELU(), "down": down})

    def forward(self, x):
        x = x + self.attention(self.ln_1(x))
        mlp = self.mlp
        return x + mlp.down(mlp.act(mlp["up"](self.ln_2(x))))


class LanguageModel(nn.Module):
    def __init__(self, settings=None):
        super().__init__()
        self.settings = settings = settings or Settings()
        self.transformer = nn.ModuleDict(
            {
                "wte": nn.Embedding(settings.words, settings.width),
                "wpe": nn.Embedding(settings.block, settings.width),
                "h": nn.ModuleList([Block(settings) for _ in range(settings.layers)]),
                "ln_f": Norm(settings.width, True),
            }
        )
        self.head = nn.Linear(settings.width, settings.words, bias=False)
        self.transformer.wte.weight = self.head.weight

    def forward(self, words, targets=None):
        length = words.size(1)
        assert length <= self.settings.block, f"cannot forward {length} words, block size is {self.settings.block}"
        positions = torch.arange(0, length, dtype=torch.long, device=words.device)
        x = self.transformer.wte(words) + self.transformer.wpe(positions)
        for block in self.transformer.h:
            x = block(x)
        x = self.transformer.ln_f(x)
        if targets is None:
            return self.head(x[:, [-1], :]), None
        logits = self.head(x)
        return logits, F.cross_entropy(logits.view(-1, logits.size(-1)), targets.view(-1), ignore_index=-1)

    @torch.no_grad()
    def generate(self, words, count, temperature=1.0, top=None):
        for _ in range(count):
            seen = words if words.size(1) <= self.settings.block else words[:, -self.settings.block :]
            logits, _ = self(seen)
            logits = logits[:, -1, :] / temperature
            if top is not None:
                best, _ = torch.topk(logits, min(top, logits.size(-1)))
                logits[logits < best[:, [-1]]] = -float("Inf")
            words = torch.cat((words, torch.multinomial(F.softmax(logits, dim=-1), num_samples=1)), dim=1)
        return words


@program(make=with_model(LanguageModel, WORDS, WORDS.roll(-1, 1)), backward=True)
def language_model_loss(model, words, targets):
    return model(words, targets)[1]


@program(make=with_model(lambda: LanguageModel(Settings(bias=False)), WORDS, WORDS), backward=True)
def language_model_with_written_out_attention(model, words, targets):
    return model(words, targets)


@program(make=with_model(LanguageModel, WORDS, train=False))
def language_model_sampling(model, words):
    return model.generate(words, 3, 0.8, 4)


@program(make=with_model(LanguageModel, WORDS))
def parameter_groups(model, words):
    parameters = {name: p for name, p in model.named_parameters() if p.requires_grad}
    decayed = [p for _, p in parameters.items() if p.dim() >= 2]
    rest = [p for _, p in parameters.items() if p.dim() < 2]
    groups = [{"params": decayed, "weight_decay": 0.1}, {"params": rest, "weight_decay": 0.0}]
    return len(decayed), sum(p.numel() for p in rest), groups[0]["params"][0] * 1.0


class Rotary(nn.Module):
    def __init__(self, width, base=10000.0, longest=16):
        super().__init__()
        frequencies = 1.0 / base ** (torch.arange(0, width, 2).float() / width)
        angles = torch.outer(torch.arange(longest), frequencies)
        self.register_buffer("table", torch.polar(torch.ones_like(angles), angles), persistent=False)

    def forward(self, x):
        pairs = torch.view_as_complex(x.float().reshape(*x.shape[:-1], -1, 2))
        return torch.view_as_real(pairs * self.table[: x.shape[1]]).flatten(2).type_as(x)


class RootMeanSquare(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x):
        return (x.float() * torch.rsqrt(x.float().pow(2).mean(-1, keepdim=True) + 1e-6)).type_as(x) * self.weight


@program(
    make=with_model(lambda: nn.Sequential(RootMeanSquare(6), Rotary(6), nn.Linear(6, 4)), SIGNAL),
    backward=True,
    rounding=True,
)
def rotary_embedding_with_complex_numbers(model, x):
    return model(x)


class Cached(nn.Module):
    """One attention layer that keeps keys and values in buffers of a fixed size."""

    def __init__(self, width=6, longest=8):
        super().__init__()
        self.qkv = nn.Linear(width, 3 * width)
        self.register_buffer("keys", torch.zeros(2, longest, width))
        self.register_buffer("values", torch.zeros(2, longest, width))

    def forward(self, x, start):
        q, k, v = self.qkv(x).chunk(3, -1)
        end = start + x.shape[1]
        self.keys[:, start:end] = k
        self.values[:, start:end] = v
        return F.scaled_dot_product_attention(q, self.keys[:, :end], self.values[:, :end])


@program(make=with_model(Cached, SIGNAL, train=False), graphs=1)
def decoding_with_a_static_cache(model, x):
    with torch.no_grad():
        found = [model(x, 0)]
        for step in range(2):
            found.append(model(found[-1][:, -1:], x.shape[1] + step))
    return torch.cat(found, 1)


class TimeMix(nn.Module):
    def __init__(self, width=6):
        super().__init__()
        self.decay, self.first = nn.Parameter(torch.linspace(-1, 0, width)), nn.Parameter(torch.ones(width))
        self.mix = nn.ParameterDict({name: nn.Parameter(torch.full((1, 1, width), 0.3)) for name in "kvr"})
        self.key, self.value, self.receptance = (nn.Linear(width, width, bias=False) for _ in range(3))
        self.shift = nn.ZeroPad2d((0, 0, 1, -1))

    def forward(self, x):
        before = self.shift(x)
        mixed = {name: x * self.mix[name] + before * (1 - self.mix[name]) for name in "kvr"}
        k, v, r = self.key(mixed["k"]), self.value(mixed["v"]), torch.sigmoid(self.receptance(mixed["r"]))
        above = torch.zeros_like(k[:, 0])
        below, most = torch.zeros_like(above), torch.full_like(above, -1e38)
        out = []
        for t in range(x.size(1)):
            now = torch.maximum(most, self.first + k[:, t])
            old, new = torch.exp(most - now), torch.exp(self.first + k[:, t] - now)
            out.append((old * above + new * v[:, t]) / (old * below + new))
            most_next = torch.maximum(most + self.decay, k[:, t])
            old, new = torch.exp(most + self.decay - most_next), torch.exp(k[:, t] - most_next)
            above, below, most = old * above + new * v[:, t], old * below + new, most_next
        return r * torch.stack(out, 1)


@program(make=with_model(TimeMix, SIGNAL), backward=True)
def receptance_weighted_time_mixing(model, x):
    return model(x)


class SelectiveScan(nn.Module):
    def __init__(self, width=6, state=3):
        super().__init__()
        self.conv = nn.Conv1d(width, width, 3, padding=2, groups=width)
        self.project, self.step = nn.Linear(width, 2 * state + 2), nn.Linear(2, width)
        self.log_a = nn.Parameter(torch.log(torch.arange(1, state + 1).float().repeat(width, 1)))
        self.skip = nn.Parameter(torch.ones(width))

    def forward(self, x):
        length = x.shape[1]
        x = F.silu(self.conv(x.transpose(1, 2))[..., :length].transpose(1, 2))
        step, b, c = self.project(x).split([2, 3, 3], dim=-1)
        step = F.softplus(self.step(step))
        decay = torch.exp(torch.einsum("bld,dn->bldn", step, -torch.exp(self.log_a)))
        driven = torch.einsum("bld,bln,bld->bldn", step, b, x)
        state = x.new_zeros(x.shape[0], x.shape[2], 3)
        ys = []
        for t in range(length):
            state = decay[:, t] * state + driven[:, t]
            ys.append(torch.einsum("bdn,bn->bd", state, c[:, t]))
        return torch.stack(ys, dim=1) + x * self.skip


@program(make=with_model(SelectiveScan, SIGNAL), backward=True)
def selective_state_space(model, x):
    return model(x)


class Experts(nn.Module):
    """Top-k routing by dense dispatch: every expert sees every word, weighted by the gate."""

    def __init__(self, width=6, count=3, chosen=2):
        super().__init__()
        self.gate = nn.Linear(width, count, bias=False)
        experts = [nn.Sequential(nn.Linear(width, 8), nn.SiLU(), nn.Linear(8, width)) for _ in range(count)]
        self.experts = nn.ModuleList(experts)
        self.chosen = chosen
        self.balance = 0.0

    def forward(self, x):
        flat = x.reshape(-1, x.shape[-1])
        probabilities = self.gate(flat).softmax(-1)
        weights, indices = torch.topk(probabilities, self.chosen, dim=-1)
        weights = weights / weights.sum(-1, keepdim=True)
        out = torch.zeros_like(flat)
        for number, expert in enumerate(self.experts):
            hit = (indices == number).to(flat.dtype)
            out = out + expert(flat) * (weights * hit).sum(-1, keepdim=True)
        share = F.one_hot(indices, len(self.experts)).float().mean((0, 1))
        self.balance = (share * probabilities.mean(0)).sum() * len(self.experts)
        return out.view_as(x)


@program(make=with_model(Experts, SIGNAL), backward=True)
def mixture_of_experts(model, x):
    return model(x).square().mean() + 0.01 * model.balance


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.rnn = nn.Embedding(11, 6, padding_idx=0), nn.GRU(6, 8, batch_first=True, bidirectional=True)
        self.bridge = nn.Linear(16, 8)

    def forward(self, words):
        outputs, hidden = self.rnn(self.embed(words))
        return outputs, torch.tanh(self.bridge(torch.cat((hidden[-2], hidden[-1]), dim=1)))


class Translator(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder, self.embed, self.cell = Encoder(), nn.Embedding(11, 6), nn.GRUCell(6 + 16, 8)
        self.energy, self.v, self.out = nn.Linear(8 + 16, 8), nn.Linear(8, 1, bias=False), nn.Linear(8, 11)

    def attend(self, hidden, outputs, mask):
        repeated = hidden.unsqueeze(1).repeat(1, outputs.shape[1], 1)
        scores = self.v(torch.tanh(self.energy(torch.cat((repeated, outputs), dim=2)))).squeeze(2)
        return torch.softmax(scores.masked_fill(mask == 0, -1e10), dim=1)

    def forward(self, words, targets, forcing=True):
        outputs, hidden = self.encoder(words)
        mask = words != 0
        word, found = targets[:, 0], []
        for t in range(1, targets.shape[1]):
            weights = self.attend(hidden, outputs, mask)
            context = torch.bmm(weights.unsqueeze(1), outputs).squeeze(1)
            hidden = self.cell(torch.cat((self.embed(word), context), dim=1), hidden)
            logits = self.out(hidden)
            found.append(logits)
            word = targets[:, t] if forcing else logits.argmax(1)
        return torch.stack(found, 1)


@program(make=with_model(Translator, WORDS, WORDS), backward=True, rounding=True)
def translation_with_attention(model, words, targets):
    logits = model(words, targets)
    return F.cross_entropy(logits.flatten(0, 1), targets[:, 1:].flatten(), ignore_index=0)


@program(make=with_model(Translator, WORDS, WORDS, train=False), rounding=True)
def greedy_translation(model, words, targets):
    with torch.no_grad():
        return model(words, targets, forcing=False).argmax(-1)


@program(make=with_model(lambda: nn.LSTM(6, 4, 2, batch_first=True, dropout=0.0), SIGNAL), backward=True, rounding=True)
def stacked_lstm(model, x):
    h = x.new_zeros(2, x.size(0), 4)
    out, (h, c) = model(x, (h, h.clone()))
    return out[:, -1] + h[-1] + c[-1]


class Crf(nn.Module):
    def __init__(self, tags=4):
        super().__init__()
        self.start, self.end = nn.Parameter(torch.zeros(tags)), nn.Parameter(torch.linspace(0, 1, tags))
        self.transitions = nn.Parameter(torch.linspace(-1, 1, tags * tags).reshape(tags, tags))

    def score(self, emissions, tags, mask):
        batch = torch.arange(tags.shape[1])
        score = self.start[tags[0]] + emissions[0, batch, tags[0]]
        for i in range(1, len(tags)):
            score = score + self.transitions[tags[i - 1], tags[i]] * mask[i]
            score = score + emissions[i, batch, tags[i]] * mask[i]
        last = tags[mask.long().sum(dim=0) - 1, batch]
        return score + self.end[last]

    def normalizer(self, emissions, mask):
        score = self.start + emissions[0]
        for i in range(1, emissions.size(0)):
            following = score.unsqueeze(2) + self.transitions + emissions[i].unsqueeze(1)
            score = torch.where(mask[i].bool().unsqueeze(1), torch.logsumexp(following, dim=1), score)
        return torch.logsumexp(score + self.end, dim=1)

    def forward(self, emissions, tags, mask):
        return -(self.score(emissions, tags, mask) - self.normalizer(emissions, mask)).mean()

    def decode(self, emissions):
        score, history = self.start + emissions[0], []
        for emission in emissions[1:]:
            score, indices = (score.unsqueeze(2) + self.transitions + emission.unsqueeze(1)).max(dim=1)
            history.append(indices)
        best = [(score + self.end).argmax(1)]
        for indices in reversed(history):
            best.append(indices.gather(1, best[-1][:, None]).squeeze(1))
        best.reverse()
        return torch.stack(best)


EMISSIONS = torch.linspace(-2, 2, 5 * 2 * 4).sin().reshape(5, 2, 4)
MASK = torch.tensor([[1.0, 1], [1, 1], [1, 1], [1, 0], [1, 0]])


@program(make=with_model(Crf, EMISSIONS, torch.arange(10).reshape(5, 2) % 4, MASK), backward=True)
def conditional_random_field_loss(model, emissions, tags, mask):
    return model(emissions, tags, mask)


@program(make=with_model(Crf, EMISSIONS))
def conditional_random_field_decoding(model, emissions):
    return model.decode(emissions)


@program(
    make=lambda: (torch.linspace(-1, 1, 6 * 2 * 5).reshape(6, 2, 5).requires_grad_(),),
    backward=True,
    graphs=1,
    breaks=1,
)
def connectionist_temporal_classification(logits):
    lengths, targets = torch.full((2,), 6), torch.tensor([[1, 2, 3], [2, 2, 4]])
    probabilities = logits.log_softmax(2)
    return F.ctc_loss(probabilities, targets, lengths, torch.tensor([3, 2]), blank=0, zero_infinity=True)


def _beam_search(table, width=2, steps=3):
    scores, words = torch.zeros(1), torch.zeros(1, 1, dtype=torch.long)
    for _ in range(steps):
        following = scores[:, None] + table[words[:, -1]].log_softmax(-1)
        scores, flat = following.flatten().topk(width)
        parents, chosen = torch.div(flat, table.shape[1], rounding_mode="floor"), flat % table.shape[1]
        words = torch.cat([words[parents], chosen[:, None]], dim=1)
    return words, scores


@program(torch.linspace(-2, 2, 25).sin().reshape(5, 5))
def beam_search(table):
    return _beam_search(table)


def encoder_of_torch():
    layer = nn.TransformerEncoderLayer(6, 2, 8, 0.1, batch_first=True, norm_first=True)
    return nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)


@program(make=with_model(encoder_of_torch, SIGNAL), backward=True)
def transformer_encoder_of_torch(model, x):
    mask = nn.Transformer.generate_square_subsequent_mask(x.size(1))
    return model(x, mask=mask, is_causal=True)


class Positional(nn.Module):
    def __init__(self, width=6, longest=16):
        super().__init__()
        table = torch.zeros(longest, width)
        position = torch.arange(0, longest).unsqueeze(1)
        scale = torch.exp(torch.arange(0, width, 2) * -(math.log(10000.0) / width))
        table[:, 0::2], table[:, 1::2] = torch.sin(position * scale), torch.cos(position * scale)
        self.register_buffer("table", table.unsqueeze(0))

    def forward(self, x):
        return x + self.table[:, : x.size(1)].requires_grad_(False)


@program(
    make=with_model(lambda: nn.Transformer(6, 2, 1, 1, 8, 0.0, batch_first=True), SIGNAL),
    backward=True,
    graphs=2,
    breaks=1,
)
def encoder_and_decoder_of_torch(model, x):
    place = Positional()
    return model(place(x), place(x[:, :3]), tgt_mask=model.generate_square_subsequent_mask(3))


class VectorQuantizer(nn.Module):
    def __init__(self, count=5, width=6, decay=0.9):
        super().__init__()
        self.decay = decay
        codes = torch.linspace(-1, 1, count * width).sin().reshape(count, width)
        self.register_buffer("codes", codes)
        self.register_buffer("sizes", torch.zeros(count))
        self.register_buffer("sums", codes.clone())

    def forward(self, x):
        flat = x.reshape(-1, x.shape[-1])
        distance = flat.pow(2).sum(1, keepdim=True) - 2 * flat @ self.codes.t() + self.codes.pow(2).sum(1)
        index = distance.argmin(1)
        if self.training:
            with torch.no_grad():
                hits = F.one_hot(index, len(self.codes)).type(flat.dtype)
                self.sizes.mul_(self.decay).add_(hits.sum(0), alpha=1 - self.decay)
                self.sums.mul_(self.decay).add_(hits.t() @ flat, alpha=1 - self.decay)
                total = self.sizes.sum()
                smooth = (self.sizes + 1e-5) / (total + len(self.codes) * 1e-5) * total
                self.codes.copy_(self.sums / smooth.unsqueeze(1))
        quantized = F.embedding(index, self.codes).view_as(x)
        commitment = F.mse_loss(quantized.detach(), x)
        return x + (quantized - x).detach(), commitment, index.view(x.shape[:-1])


@program(make=with_model(lambda: nn.ModuleList([nn.Linear(6, 6), VectorQuantizer()]), SIGNAL), backward=True)
def vector_quantization(parts, x):
    quantized, commitment, _ = parts[1](parts[0](x))
    return quantized.mean() + commitment


class CausalConvolutions(nn.Module):
    def __init__(self, width=6, dilations=(1, 2, 4)):
        super().__init__()
        self.layers = nn.ModuleList(
            nn.utils.parametrizations.weight_norm(nn.Conv1d(width, width * 2, 2, dilation=d)) for d in dilations
        )
        self.skip = nn.Conv1d(width, 3, 1)

    def forward(self, x):
        total = 0
        for layer in self.layers:
            padded = F.pad(x, (layer.dilation[0] * (layer.kernel_size[0] - 1), 0))
            values, gates = layer(padded).chunk(2, dim=1)
            x = x + torch.tanh(values) * torch.sigmoid(gates)
            total = total + self.skip(x)
        return total


CONVOLUTIONS = with_model(CausalConvolutions)()[0]  # parametrization makes a class for each module


@program(CONVOLUTIONS, SIGNAL.mT.contiguous(), backward=True, rounding=True)
def dilated_causal_convolutions(model, x):
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
