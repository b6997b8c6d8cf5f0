"""A small causal transformer in plain torch, with dropout."""

import pytest
import torch
from torch import nn


class CausalAttention(nn.Module):
    def __init__(self, width, heads, dropout):
        super().__init__()
        self.heads, self.dropout = heads, dropout
        self.project = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)

    def forward(self, x):
        batch, length, width = x.shape
        split = self.project(x).view(batch, length, 3, self.heads, width // self.heads)
        query, key, value = split.permute(2, 0, 3, 1, 4)
        scores = query @ key.transpose(-2, -1) / (width // self.heads) ** 0.5
        future = torch.ones(length, length, dtype=torch.bool).triu(1)
        weights = scores.masked_fill(future, float("-inf")).softmax(dim=-1)
        weights = nn.functional.dropout(weights, self.dropout, self.training)
        return self.out((weights @ value).transpose(1, 2).reshape(batch, length, width))


class Block(nn.Module):
    def __init__(self, width, heads, dropout):
        super().__init__()
        self.attention_norm, self.mlp_norm = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = CausalAttention(width, heads, dropout)
        self.mlp = nn.Sequential(
            nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width), nn.Dropout(dropout)
        )

    def forward(self, x):
        x = x + self.attention(self.attention_norm(x))
        return x + self.mlp(self.mlp_norm(x))


class TinyGPT(nn.Module):
    def __init__(self, vocabulary=32, context=16, width=32, heads=2, layers=1, dropout=0.1):
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, width)
        self.positions = nn.Embedding(context, width)
        self.blocks = nn.ModuleList(Block(width, heads, dropout) for _ in range(layers))
        self.norm = nn.LayerNorm(width)

    def forward(self, tokens):
        x = self.tokens(tokens) + self.positions(torch.arange(tokens.shape[1]))
        for block in self.blocks:
            x = block(x)
        return self.norm(x) @ self.tokens.weight.T


@pytest.fixture
def gpt():
    torch.manual_seed(0)
    return TinyGPT()


def test_learns_a_repeating_sentence(gpt):
    sentence = torch.arange(17).remainder(5).expand(4, -1)
    optimizer = torch.optim.AdamW(gpt.parameters(), lr=1e-2)
    losses = []
    for _ in range(8):
        logits = gpt(sentence[:, :-1])
        loss = nn.functional.cross_entropy(logits.flatten(0, 1), sentence[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0]


def test_later_tokens_do_not_change_earlier_logits(gpt):
    gpt.eval()
    tokens = torch.randint(0, 32, (2, 12))
    changed = tokens.clone()
    changed[:, 8:] = 0
    with torch.no_grad():
        torch.testing.assert_close(gpt(tokens)[:, :8], gpt(changed)[:, :8])
