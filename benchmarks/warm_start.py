"""The start of a second process, whose caches are warm: six small models, inference and training, against stock.

    python benchmarks/warm_start.py [--only bert,mlp] [--modes infer,train] [--runs 3] [--cold]

Counted, in CPU seconds of a fresh process and its children: from before `import plumbline` (or `torch.compile`) to the
end of the first call, with its backward under `train`.  Not counted: `import torch`, the model and one eager call of
it, and for BERT the import of transformers, which loads much of what stock needs too.  `own` leaves the children out:
stock starts compile workers whether it needs them or not, so the truth lies between the two columns.  Stock has its
caches on (FX graphs, AOT autograd, kernels), both are run once before to fill them, and runs alternate; the figures
are medians.  --cold: also the process that fills the caches.
"""

import argparse
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile

MODELS = ("bert", "gpt", "mlp", "convnet", "lstm", "pointwise")

CHILD = r"""
import json, resource, sys
import torch
from torch import nn
import torch.nn.functional as F

kind, name, mode, cache = sys.argv[1:]
torch.manual_seed(0)


def cpu(who):
    used = resource.getrusage(who)
    return used.ru_utime + used.ru_stime


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.before, self.between = nn.LayerNorm(width), nn.LayerNorm(width)
        self.mixed, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = (
            part.view(batch, length, self.heads, -1).transpose(1, 2)
            for part in self.mixed(self.before(x)).split(width, 2)
        )
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(x.shape)
        x = x + self.out(y)
        return x + self.down(F.gelu(self.up(self.between(x))))


class Gpt(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.places = nn.Embedding(500, 64), nn.Embedding(64, 64)
        self.blocks = nn.ModuleList(Block(64, 4) for _ in range(3))
        self.end = nn.Linear(64, 500)

    def forward(self, ids):
        x = self.words(ids) + self.places(torch.arange(ids.shape[1]))
        for block in self.blocks:
            x = block(x)
        return self.end(x)


class Lstm(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.layers, self.end = nn.Embedding(100, 32), nn.LSTM(32, 32, 2), nn.Linear(32, 10)

    def forward(self, ids):
        return self.end(self.layers(self.words(ids))[0][-1])


class Pointwise(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.linspace(0.5, 1, 256))

    def forward(self, x):
        for _ in range(5):
            x = torch.tanh(x * self.weight) + F.silu(x) - x.exp().clamp(max=2)
        return x


def made(name):
    if name == "bert":
        from transformers import BertConfig, BertModel

        sizes = {"hidden_size": 128, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 512}
        sizes |= {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
        model = BertModel(BertConfig(vocab_size=1000, **sizes)).eval()
        return lambda run, ids: run(ids).last_hidden_state, model, torch.randint(0, 1000, (2, 32))
    plain = lambda run, x: run(x)
    if name == "gpt":
        return plain, Gpt(), torch.randint(0, 500, (2, 32))
    if name == "mlp":
        layers = nn.Sequential(nn.Linear(64, 128), nn.GELU(), nn.LayerNorm(128), nn.Dropout(0.1), nn.Linear(128, 10))
        return plain, layers, torch.randn(8, 64)
    if name == "convnet":
        layers = [nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2)]
        layers += [nn.Conv2d(8, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.AdaptiveAvgPool2d(1)]
        return plain, nn.Sequential(*layers, nn.Flatten(), nn.Linear(16, 10)), torch.randn(2, 3, 16, 16)
    if name == "lstm":
        return plain, Lstm(), torch.randint(0, 100, (7, 3))
    return plain, Pointwise(), torch.randn(64, 256)


call, model, data = made(name)
model = model.train() if mode == "train" else model.eval()


def step(run):
    if mode == "train":
        torch.manual_seed(1)
        result = call(run, data)
        result.square().mean().backward()
        return result.detach()
    with torch.no_grad():
        return call(run, data)


expected = step(model)
gradients = [part.grad for part in model.parameters() if part.grad is not None]
model.zero_grad()
before = cpu(resource.RUSAGE_SELF), cpu(resource.RUSAGE_CHILDREN)
if kind == "stock":
    compiled = torch.compile(model)
else:
    import plumbline

    compiled = plumbline.compile(model, options={"cache_directory": cache})
found = step(compiled)
own = cpu(resource.RUSAGE_SELF) - before[0]
if kind == "stock":  # its workers are counted when they have ended
    from torch._inductor.async_compile import shutdown_compile_workers

    shutdown_compile_workers()
children = cpu(resource.RUSAGE_CHILDREN) - before[1]
if not (name == "mlp" and mode == "train" and kind == "stock"):  # stock draws other numbers for dropout
    torch.testing.assert_close(found, expected, rtol=1e-3, atol=1e-4)
if kind == "ours":  # stock gives parameters that nothing depends on a gradient of zeros
    for mine, eagers in zip((p.grad for p in model.parameters() if p.grad is not None), gradients, strict=True):
        torch.testing.assert_close(mine, eagers, rtol=1e-3, atol=1e-4)
print(json.dumps([own, children]))
"""


def measure(kind: str, model: str, mode: str, cache: str) -> tuple[float, float]:
    """Return CPU seconds of a fresh process, its own and those of its children."""
    environment = {**os.environ, "TORCHINDUCTOR_CACHE_DIR": f"{cache}/stock", "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-c", CHILD, kind, model, mode, f"{cache}/ours"]
    done = subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE, text=True, timeout=600)
    own, children = json.loads(done.stdout.strip().splitlines()[-1])
    return own, children


def main() -> None:
    """Print one row per model and mode, then geometric means."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", default=",".join(MODELS))
    parser.add_argument("--modes", default="infer,train")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--cold", action="store_true")
    asked = parser.parse_args()
    ratios: dict[str, list[float]] = {"all": [], "own": []}
    print(f"{'':20} {'ours':>6} {'stock':>6} {'ratio':>6}   {'ours':>6} {'stock':>6} {'ratio':>6} (own)")
    with tempfile.TemporaryDirectory(prefix="plumbline-warm-") as cache:
        for model in asked.only.split(","):
            for mode in asked.modes.split(","):
                cold = {kind: measure(kind, model, mode, cache) for kind in ("ours", "stock")}
                if asked.cold:
                    print(f"{model} {mode} cold: ours {sum(cold['ours']):.2f}, stock {sum(cold['stock']):.2f}")
                runs: dict[str, list[tuple[float, float]]] = {"ours": [], "stock": []}
                for _ in range(asked.runs):
                    for kind, found in runs.items():
                        found.append(measure(kind, model, mode, cache))
                total = {kind: statistics.median(sum(each) for each in found) for kind, found in runs.items()}
                own = {kind: statistics.median(each[0] for each in found) for kind, found in runs.items()}
                ratios["all"].append(total["ours"] / total["stock"])
                ratios["own"].append(own["ours"] / own["stock"])
                columns = f"{total['ours']:6.2f} {total['stock']:6.2f} {ratios['all'][-1]:6.2f}   "
                columns += f"{own['ours']:6.2f} {own['stock']:6.2f} {ratios['own'][-1]:6.2f}"
                print(f"{model:12} {mode:7} {columns}", flush=True)
    for name, values in ratios.items():
        print(f"geometric mean, {name}: {math.exp(statistics.mean(map(math.log, values))):.3f}")


if __name__ == "__main__":
    main()
