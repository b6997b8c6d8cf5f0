"""What a judged call costs beside the same call in eager: transformers whose bits are equal, differ, or are wrong.

    python benchmarks/judge_cost.py [--only 4M] [--cases equal,differ,fault] [--calls 5] [--findings]

Printed per model and case: CPU seconds (process time, one thread) of the median judged call of five, warm as eager is,
its ratio to the median of eight warm forwards and backwards in eager, the peak memory of the judging process beside
that of the eager one, and the verdict.  Every case runs in a process of its own.

Cases: `equal` is the model itself; `differ` is the model written otherwise (explicit products, softmax, layer norm and
gelu), so that all bits of outputs and gradients differ by legitimate rounding; `fault` is that one with one layer's
attention scaled by 0.99, forward and backward.
"""

import argparse
import json
import math
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import nn
from torch.nn import functional

from plumbline.oracle import Verdict, check

EAGER_CALLS = 8


@dataclass(frozen=True, slots=True)
class Config:
    """The sizes of one transformer; rows of tokens are [batch, length]."""

    vocabulary: int
    width: int
    layers: int
    heads: int
    batch: int
    length: int


CONFIGS = {
    "0.6M": Config(1500, 128, 2, 4, 2, 32),
    "4M": Config(30522, 128, 2, 2, 2, 32),
    "50M": Config(24000, 512, 12, 8, 2, 32),
}
CASES = ("equal", "differ", "fault")


class Layer(nn.Module):
    """One layer with norms behind the residuals, written plainly or otherwise; both have the same parameters."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        width = config.width
        self.heads = config.heads
        self.incoming = nn.Linear(width, 3 * width)
        self.outgoing = nn.Linear(width, width)
        self.first_norm, self.second_norm = nn.LayerNorm(width), nn.LayerNorm(width)
        self.widening, self.narrowing = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.otherwise = False
        self.factor = 1.0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the layer's output, [batch, length, width]."""
        linear, norm, gelu = (_linear, _norm, _gelu) if self.otherwise else (_call, _call, functional.gelu)
        batch, length, width = x.shape
        shape = (batch, length, 3, self.heads, width // self.heads)
        query, key, value = linear(self.incoming, x).view(shape).permute(2, 0, 3, 1, 4).unbind(0)
        attend = _attention if self.otherwise else functional.scaled_dot_product_attention
        seen = attend(query, key, value)
        if self.factor != 1.0:
            seen = seen * self.factor
        x = norm(self.first_norm, x + linear(self.outgoing, seen.transpose(1, 2).reshape(batch, length, width)))
        return norm(self.second_norm, x + linear(self.narrowing, gelu(linear(self.widening, x))))


def _call(module: nn.Module, x: torch.Tensor) -> torch.Tensor:
    result = module(x)
    assert isinstance(result, torch.Tensor)
    return result


def _linear(module: nn.Module, x: torch.Tensor) -> torch.Tensor:
    """Return the product in two halves of the summed dimension."""
    assert isinstance(module, nn.Linear)
    half = x.shape[-1] // 2
    first = torch.matmul(x[..., :half], module.weight[:, :half].t())
    return first + torch.matmul(x[..., half:], module.weight[:, half:].t()) + module.bias


def _norm(module: nn.Module, x: torch.Tensor) -> torch.Tensor:
    assert isinstance(module, nn.LayerNorm)
    centred = x - x.mean(-1, keepdim=True)
    variance = centred.square().mean(-1, keepdim=True)
    return centred / torch.sqrt(variance + module.eps) * module.weight + module.bias


def _gelu(x: torch.Tensor) -> torch.Tensor:
    return x * 0.5 * (1.0 + torch.erf(x * math.sqrt(0.5)))


def _attention(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
    scores = (query / math.sqrt(query.shape[-1])) @ key.transpose(-2, -1)
    weights = (scores - scores.amax(-1, keepdim=True).detach()).exp()
    return weights @ value / weights.sum(-1, keepdim=True)


class Transformer(nn.Module):
    """Embeddings of tokens and places, then the layers; the output is [batch, length, width]."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.tokens = nn.Embedding(config.vocabulary, config.width)
        self.places = nn.Embedding(config.length, config.width)
        self.layers = nn.ModuleList(Layer(config) for _ in range(config.layers))

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """Return the last layer's output."""
        x = _call(self.tokens, tokens) + self.places.weight
        for layer in self.layers:
            x = _call(layer, x)
        return x

    def written(self, case: str) -> Callable[[torch.Tensor], torch.Tensor]:
        """Return this model as one of the cases."""

        def run(tokens: torch.Tensor) -> torch.Tensor:
            layers = [layer for layer in self.layers if isinstance(layer, Layer)]
            for layer in layers:
                layer.otherwise = case != "equal"
            layers[0].factor = 0.99 if case == "fault" else 1.0
            try:
                return self(tokens)  # type: ignore[no-any-return]  # torch leaves calls of modules untyped
            finally:
                for layer in layers:
                    layer.otherwise, layer.factor = False, 1.0

        return run


def _model(config: Config) -> tuple[Transformer, torch.Tensor]:
    torch.manual_seed(0)
    return Transformer(config), torch.randint(config.vocabulary, (config.batch, config.length))


def eager_seconds(config: Config) -> float:
    """Return CPU seconds of a warm forward and backward, the median of several."""
    model, tokens = _model(config)
    leaves = list(model.parameters())
    seconds = []
    for _ in range(EAGER_CALLS + 2):
        started = time.process_time()
        output = model(tokens)
        torch.autograd.grad(output, leaves, torch.ones_like(output))
        seconds.append(time.process_time() - started)
    return statistics.median(seconds[2:])


def judged_seconds(config: Config, case: str, calls: int) -> tuple[float, Verdict]:
    """Return CPU seconds of a judged call, the median of several after one on a small model, and the verdict."""
    small, few = _model(Config(10, 16, 1, 2, 1, 4))
    check(small, (few,), compiled=small.written(case))
    model, tokens = _model(config)
    seconds = []
    for _ in range(calls):
        started = time.process_time()
        verdict = check(model, (tokens,), compiled=model.written(case))
        seconds.append(time.process_time() - started)
    return statistics.median(seconds), verdict


def _report(model: str, case: str, calls: int) -> None:
    """Run one case in this process and print it as JSON."""
    torch.set_num_threads(1)
    if case == "eager":
        print(json.dumps({"seconds": eager_seconds(CONFIGS[model]), "megabytes": _peak()}))
        return
    seconds, verdict = judged_seconds(CONFIGS[model], case, calls)
    words = f"{verdict.kind.value} ({len(verdict.findings)} findings)"
    print(json.dumps({"seconds": seconds, "megabytes": _peak(), "verdict": words, "all": str(verdict)}))


def _peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def _child(model: str, case: str, calls: int) -> dict[str, object]:
    command = [sys.executable, __file__, "--child", model, case, "--calls", str(calls)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    found: dict[str, object] = json.loads(done.stdout.splitlines()[-1])
    return found


def main() -> None:
    """Print one line per model and case."""
    parser = argparse.ArgumentParser(description="cost of a judged call")
    parser.add_argument("--only", default=",".join(CONFIGS))
    parser.add_argument("--cases", default=",".join(CASES))
    parser.add_argument("--calls", type=int, default=5)
    parser.add_argument("--findings", action="store_true", help="print the verdicts in full")
    parser.add_argument("--child", nargs=2, metavar=("MODEL", "CASE"))
    arguments = parser.parse_args()
    if arguments.child:
        model, case = arguments.child
        _report(model, case, arguments.calls)
        return
    for model in arguments.only.split(","):
        eager = _child(model, "eager", 1)
        base, memory = float(str(eager["seconds"])), float(str(eager["megabytes"]))
        print(f"{model:<5} eager   {base * 1e3:8.1f} ms {memory:6.0f} MB", flush=True)
        for case in arguments.cases.split(","):
            found = _child(model, case, arguments.calls)
            seconds, peak = float(str(found["seconds"])), float(str(found["megabytes"]))
            ratios = f"{seconds / base:7.1f}x eager  memory {peak:6.0f} MB {peak / memory:5.2f}x"
            print(f"{model:<5} {case:<7} {seconds:8.3f} s  {ratios}  {found['verdict']}", flush=True)
            if arguments.findings:
                print(found["all"])


if __name__ == "__main__":
    main()
