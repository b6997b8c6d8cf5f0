"""Dynamic sizes: how many graphs and libraries ten sizes need, and what a call costs against fixed sizes and stock.

    python benchmarks/dynamic_sizes.py [--stock] [--only mlp,gpt] [--train] [--seconds 0.3] [--threads 1]

Each model is called with ten sizes (batch or sequence length, odd ones among them) under `backend="inductor"`; `first`
counts what the first two calls made (the first for its own size, the second with dynamic sizes), `later` what the other
eight did.  Then, at three of the sizes: CPU microseconds of a call (process time, all threads; minimum over interleaved
repetitions) of our open kernels, of ours compiled for that size alone, of eager, and with --stock of
`torch.compile(dynamic=True)`, which compiles for some ten seconds per model.  --train: forward and backward.
"""

import argparse
import time
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812  the field's name for it
from torch import nn

import plumbline
from plumbline.compiler.base.events import Captured, KernelBuilt, recording

Make = Callable[[int], tuple[torch.Tensor, ...]]
SIZES = (24, 17, 33, 8, 64, 100, 31, 48, 2, 127)
TIMED = (17, 64, 127)


class Block(nn.Module):
    """A transformer block with a causal mask."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.before, self.between = nn.LayerNorm(width), nn.LayerNorm(width)
        self.mixed, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """x: [batch, length, width]."""
        batch, length, width = x.shape
        parts = self.mixed(self.before(x)).chunk(3, -1)
        q, k, v = (part.view(batch, length, self.heads, -1).transpose(1, 2) for part in parts)
        seen = torch.tril(torch.ones(length, length, dtype=torch.bool))
        scores = (q @ k.transpose(-2, -1)) / (width // self.heads) ** 0.5
        mixed = scores.masked_fill(~seen, float("-inf")).softmax(-1) @ v
        x = x + self.out(mixed.transpose(1, 2).reshape(batch, length, width))
        return x + self.down(F.gelu(self.up(self.between(x))))


class Gpt(nn.Module):
    """Token and position embeddings, four blocks, a head."""

    def __init__(self) -> None:
        super().__init__()
        self.tokens, self.places = nn.Embedding(512, 128), nn.Embedding(256, 128)
        self.blocks = nn.ModuleList(Block(128, 4) for _ in range(4))
        self.last, self.head = nn.LayerNorm(128), nn.Linear(128, 512)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        """ids: [batch, length]."""
        x = self.tokens(ids) + self.places(torch.arange(ids.shape[1]))
        for block in self.blocks:
            x = block(x)
        return self.head(self.last(x))


class Convolutions(nn.Module):
    """Two convolutions with a pooling between, on images of any size."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Conv2d(3, 16, 3, padding=1), nn.Conv2d(16, 32, 3, padding=1)
        self.norm, self.head = nn.BatchNorm2d(16), nn.Linear(32, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """x: [batch, 3, height, width]."""
        x = F.max_pool2d(F.relu(self.norm(self.first(x))), 2)
        return self.head(F.relu(self.second(x)).mean((2, 3)))


class Cell(nn.Module):
    """One step of an LSTM."""

    def __init__(self) -> None:
        super().__init__()
        self.inward, self.onward = nn.Linear(64, 512), nn.Linear(128, 512)

    def forward(self, x: torch.Tensor, hidden: torch.Tensor, cell: torch.Tensor) -> torch.Tensor:
        """x: [batch, 64]; hidden, cell: [batch, 128]."""
        enter, forget, value, leave = (self.inward(x) + self.onward(hidden)).chunk(4, -1)
        cell = forget.sigmoid() * cell + enter.sigmoid() * value.tanh()
        return torch.cat([leave.sigmoid() * cell.tanh(), cell], -1)


def models() -> dict[str, tuple[nn.Module, Make]]:
    """Return each model with the maker of its inputs by size."""
    mlp = nn.Sequential(nn.Linear(128, 256), nn.GELU(), nn.LayerNorm(256), nn.Linear(256, 64), nn.Softmax(-1))
    return {
        "mlp": (mlp, lambda n: (torch.randn(n, 128),)),
        "cell": (Cell(), lambda n: (torch.randn(n, 64), torch.randn(n, 128), torch.randn(n, 128))),
        "block": (Block(128, 4), lambda n: (torch.randn(2 + n % 7, n, 128),)),
        "gpt": (Gpt(), lambda n: (torch.randint(0, 512, (2 + n % 7, n)),)),
        "conv": (Convolutions(), lambda n: (torch.randn(2 + n % 7, 3, n + 6, n + 6),)),
    }


def step(call: Callable[..., torch.Tensor], model: nn.Module, inputs: tuple[torch.Tensor, ...], train: bool) -> Any:
    """Run forward, and backward into fresh gradients where asked; return everything that came out."""
    result = call(*inputs)
    if not train:
        return (result,)
    for parameter in model.parameters():
        parameter.grad = None
    result.square().mean().backward()
    return (result, *(parameter.grad for parameter in model.parameters()))


def apart(found: Any, wanted: Any) -> float:
    """Return the greatest difference, in units of eps times the greatest value of each tensor."""
    scale = torch.finfo(torch.float32).eps
    pairs = zip(found, wanted, strict=True)
    return max(float((a - b).detach().abs().max() / (scale * b.detach().abs().max().clamp(min=1e-3))) for a, b in pairs)


def fastest(calls: dict[str, Callable[[], object]], seconds: float) -> dict[str, float]:
    """Return the least CPU microseconds of each, taken in turns."""
    found = dict.fromkeys(calls, float("inf"))
    for call in calls.values():
        call()
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        for name, call in calls.items():
            start = time.process_time()
            for _ in range(3):
                call()
            found[name] = min(found[name], (time.process_time() - start) / 3 * 1e6)
    return found


def count(model: nn.Module, make: Make, train: bool) -> tuple[Callable[..., torch.Tensor], str]:
    """Call a model with all sizes; return what is compiled, and in words what was made and how far off it is."""
    compiled = plumbline.compile(model, backend="inductor")
    made = {"first": [0, 0], "later": [0, 0]}
    worst = 0.0
    for number, size in enumerate(SIZES):
        inputs = make(size)
        wanted = step(model, model, inputs, train)
        with recording() as events:
            found = step(compiled, model, inputs, train)
        worst = max(worst, apart(found, wanted))
        row = made["first" if number < 2 else "later"]
        row[0] += sum(isinstance(event, Captured) for event in events)
        row[1] += sum(isinstance(event, KernelBuilt) for event in events)
    words = "  ".join(f"{when}: {graphs} graphs {built} libraries" for when, (graphs, built) in made.items())
    return compiled, f"{words}  off by {worst:.0f} units"


def main() -> None:
    """Print one line per model, and one per model and timed size."""
    parser = argparse.ArgumentParser(description="dynamic sizes: builds and run time")
    parser.add_argument("--stock", action="store_true")
    parser.add_argument("--train", action="store_true")
    parser.add_argument("--only", default="")
    parser.add_argument("--seconds", type=float, default=0.3)
    parser.add_argument("--threads", type=int, default=1)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    torch.manual_seed(0)
    for name, (model, make) in models().items():
        if arguments.only and name not in arguments.only.split(","):
            continue
        model.requires_grad_(arguments.train).train(arguments.train)
        compiled, words = count(model, make, arguments.train)
        print(f"{name:6} {words}")
        stock = torch.compile(model, dynamic=True) if arguments.stock else None
        for size in TIMED:
            inputs = make(size)
            fixed = plumbline.compile(model, backend="inductor", dynamic=False)
            runs = {"open": compiled, "fixed": fixed, "eager": model, **({"stock": stock} if stock is not None else {})}
            calls = {
                kind: (lambda run=run, model=model, inputs=inputs: step(run, model, inputs, arguments.train))
                for kind, run in runs.items()
            }
            found = fastest(calls, arguments.seconds)
            shown = "  ".join(f"{kind} {value:8.0f} us" for kind, value in found.items())
            ratios = "  ".join(f"open/{kind} {found['open'] / found[kind]:.2f}" for kind in found if kind != "open")
            print(f"  {size:4}  {shown}  {ratios}")


if __name__ == "__main__":
    main()
