"""A compiler made wrong on purpose: multiplication divides. `repro-minify` finds the one operator that shows it."""

import torch
from torch import nn

import plumbline
from plumbline.testing import lowering_of, replace_lowering

aten = torch.ops.aten


class GatedBlock(nn.Module):
    """Ordinary layers, with one product among them."""

    def __init__(self) -> None:
        super().__init__()
        self.up = nn.Linear(8, 16)
        self.gate = nn.Linear(8, 16)
        self.down = nn.Linear(16, 8)
        self.norm = nn.LayerNorm(8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return x after one gated step, [batch, 8]."""
        hidden = torch.tanh(self.up(x)) * torch.sigmoid(self.gate(x))
        return self.norm(x + self.down(hidden)).exp().log1p()


torch.manual_seed(0)
block = GatedBlock()
with replace_lowering(aten.mul.Tensor, lowering_of(aten.div.Tensor)):
    plumbline.compile(block)(torch.randn(4, 8))
