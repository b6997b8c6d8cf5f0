"""From a failing test of real packages' code to a few lines: how far `repro-minify --by source` cuts it.

    pip install --no-deps --target packages einops nflows normflows kornia kornia_rs x-transformers torchmetrics \
        lightning-utilities pytorch-metric-learning rotary-embedding-torch torchdiffeq vector-quantize-pytorch \
        torch-einops-utils einx loguru frozendict
    PYTHONPATH=packages python benchmarks/package_failures.py [--only TEXT] [--save FILE] [--seconds S]

Each row is a test that calls a package, with a fault of capture planted, so that no single graph is to blame and the
package's own Python has to be copied and cut.  The bar is 25 lines.
"""

import argparse
import contextlib
import importlib.util
import json
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

from plumbline.compiler.base.errors import PlumblineError
from plumbline.minifier.minify import MinifyOptions
from plumbline.minifier.minify_case import minify_case
from plumbline.minifier.reduce.problem import Budget

BAR = 25
PACKAGE_TESTS: Mapping[str, tuple[str, str, str]] = {
    # package: (plant, imports, body of the test)
    "einops": (
        "'reshape', lambda x, shape: x.reshape(shape) + 1",
        "from einops.layers.torch import Rearrange",
        "torch.compile(Rearrange('b (h w) -> b w h', h=2))(torch.randn(2, 6))",
    ),
    "nflows": (
        "torch.sigmoid, torch.tanh",
        "from nflows.transforms.nonlinearities import Sigmoid",
        "torch.compile(Sigmoid())(torch.randn(3, 4))",
    ),
    "normflows": (
        "torch.exp, torch.expm1",
        "from normflows.flows import AffineConstFlow",
        "torch.compile(AffineConstFlow((4,)))(torch.randn(3, 4))",
    ),
    "kornia": (
        "torch.exp, torch.expm1",
        "from kornia.filters import get_gaussian_kernel1d",
        "torch.compile(lambda sigma: get_gaussian_kernel1d(5, sigma))(torch.tensor([[1.5]]))",
    ),
    "x-transformers": (
        "F.normalize, lambda x, **how: x",
        "from x_transformers.x_transformers import RMSNorm",
        "torch.compile(RMSNorm(8))(torch.randn(2, 3, 8))",
    ),
    "torchmetrics": (
        "torch.abs, torch.relu",
        "from torchmetrics.functional import mean_absolute_error",
        "torch.compile(mean_absolute_error)(torch.randn(6), torch.randn(6))",
    ),
    "pytorch-metric-learning": (
        "F.normalize, lambda x, **how: x",
        "from pytorch_metric_learning.distances import CosineSimilarity",
        "torch.compile(CosineSimilarity())(torch.randn(4, 5), torch.randn(4, 5))",
    ),
    "rotary-embedding-torch": (
        "'cos', 'sin'",
        "from rotary_embedding_torch import RotaryEmbedding",
        "torch.compile(RotaryEmbedding(dim=4).rotate_queries_or_keys)(torch.randn(1, 2, 3, 4))",
    ),
    "vector-quantize-pytorch": (
        "'round', 'floor'",
        "from vector_quantize_pytorch import FSQ",
        "torch.compile(FSQ(levels=[8, 5]))(torch.randn(1, 4, 2))",
    ),
    "torchdiffeq": (
        "torch.sin, torch.cos",
        "from torchdiffeq import odeint",
        "torch.compile(lambda x, t: odeint(lambda t, y: torch.sin(y) * t, x, t, method='euler'))"
        "(torch.randn(3), torch.linspace(0, 1, 4))",
    ),
}


def failing_test(plant: str, imports: str, body: str) -> str:
    """Return a test file: the fault is in force as soon as it is imported."""
    return f"""import torch
import torch.nn.functional as F
{imports}
from plumbline.testing import replace_captured


def test_package():
    torch.manual_seed(0)
    with replace_captured({plant}):
        {body.replace(chr(10), chr(10) + "    ")}
"""


def minified(name: str, seconds: float) -> dict[str, object]:
    """Minify one test and return what came of it."""
    start = time.monotonic()
    # pytest takes the settings of the folder it runs in, which are to be those of no repository.
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        case, out = Path(folder, "test_package.py"), Path(folder, "repro.py")
        case.write_text(failing_test(*PACKAGE_TESTS[name]))
        options = MinifyOptions(out=out, proofs=5, budget=Budget(400, seconds), seconds=300.0)
        row: dict[str, object] = {"name": name, "script": False, "minimal": False, "before": 0, "lines": 0, "runs": 0}
        try:
            told = (f"{case}::test_package", "plumbline", "eager", options)
            found = minify_case(*told, by="source", progress=lambda line: print(f"  {line}", file=sys.stderr))
            said = out.read_text()
            row |= {"script": found.reproduces, "minimal": "1-minimal:   yes" in said, "before": found.ops_before}
            row |= {"lines": found.ops, "runs": found.queries, "text": said}
        except PlumblineError as error:
            row["text"] = error.one_line()
    return row | {"seconds": round(time.monotonic() - start)}


def main() -> int:
    """Minify what is installed and was not done before; print a line each and the total."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", default="", help="packages whose name holds this text")
    parser.add_argument("--save", type=Path, help="file of the rows")
    parser.add_argument("--seconds", type=float, default=1800.0, help="of one reduction")
    chosen = parser.parse_args()
    if chosen.save is not None:
        chosen.save = chosen.save.absolute()
    lines = chosen.save.read_text().splitlines() if chosen.save is not None and chosen.save.exists() else []
    rows = {row["name"]: row for row in map(json.loads, lines)}
    for name in PACKAGE_TESTS:
        if chosen.only in name and name not in rows and importlib.util.find_spec(name.replace("-", "_")):
            rows[name] = row = minified(name, chosen.seconds)
            if chosen.save is not None:
                with chosen.save.open("a") as file:
                    file.write(json.dumps(row) + "\n")
        if name in rows:
            row = rows[name]
            words = f"{row['before']} -> {row['lines']} lines in {row['runs']} runs, {row['seconds']} s"
            print(f"{name:26} {words}" if row["script"] else f"{name:26} no script: {row['text']}", flush=True)
    short = sum(bool(row["script"]) and row["lines"] <= BAR for row in rows.values())
    print(f"{short} of {len(rows)} tests became scripts of at most {BAR} lines")
    return 0 if short == len(rows) else 1


if __name__ == "__main__":
    sys.exit(main())
