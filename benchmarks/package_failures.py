"""From a failing test of real packages' code to a few lines: how far `repro-minify --by source` cuts it.

    pip install --no-deps --target packages einops nflows normflows kornia kornia_rs torchmetrics lightning-utilities \
        pytorch-metric-learning rotary-embedding-torch torchdiffeq vector-quantize-pytorch torch-einops-utils einx \
        loguru frozendict
    PYTHONPATH=packages python benchmarks/package_failures.py [--only TEXT] [--save FILE] [--seconds S]

Each row is a test, the package's own where it is installed with them, else one that calls its modules.  Capture is made
wrong by a module beside the test, whose import is the only line added to it: no single graph is to blame, and the
package's own Python has to be copied and cut.  The bar is 25 lines.
"""

import argparse
import contextlib
import importlib.util
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from plumbline.compiler.base.errors import PlumblineError
from plumbline.minifier.minify import MinifyOptions
from plumbline.minifier.minify_case import minify_case
from plumbline.minifier.reduce.problem import Budget

BAR = 25
PLANT = """import torch
import torch.nn.functional as F
from plumbline.testing import ignore_guards, replace_captured

fault = {fault}
fault.__enter__()
"""


@dataclass(frozen=True, slots=True)
class PackageTest:
    """A test and the fault it meets.

    fault: an expression, a context in which capture is wrong.  own: file and test of the package itself, else
    body: statements of a test.  package: what has to be installed.
    """

    package: str
    fault: str
    own: str = ""
    body: str = ""

    def written_to(self, folder: Path, name: str) -> str:
        """Write the test and its fault into a folder, and return the test's id."""
        (folder / "planted_fault.py").write_text(PLANT.format(fault=self.fault))
        file = folder / ("_".join(["test", *re.findall(r"\w+", name)]) + ".py")
        if self.own:
            source, _, test = self.own.partition("::")
            text = Path(_folder_of(self.package), source).read_text(encoding="utf-8")
        else:
            test = "test_package"
            text = f"def test_package():\n    torch.manual_seed(0)\n{_indented(self.body)}\n"
        file.write_text(f"import planted_fault\nimport torch\n{text}")
        return f"{file}::{test}"


def _indented(body: str) -> str:
    return "\n".join(f"    {line}" for line in body.strip().splitlines())


def _folder_of(package: str) -> str:
    spec = importlib.util.find_spec(package)
    assert spec is not None
    assert spec.submodule_search_locations, f"{package} is not installed"
    return str(spec.submodule_search_locations[0])


PACKAGE_TESTS: Mapping[str, PackageTest] = {
    "normflows, coupling": PackageTest(
        "normflows",
        "replace_captured(torch.exp, torch.expm1)",
        own="flows/affine/coupling_test.py::CouplingTest::test_mask_affine",
    ),
    "normflows, MADE": PackageTest(
        "normflows", "replace_captured(F.relu, F.gelu)", own="nets/made_test.py::ShapeTest::test_unconditional"
    ),
    "normflows, planar": PackageTest(
        "normflows", "replace_captured(torch.tanh, torch.sin)", own="flows/planar_test.py::PlanarTest::test_planar"
    ),
    "einops": PackageTest(
        "einops",
        "replace_captured('amax', 'amin')",
        body="""
from einops.layers.torch import Rearrange, Reduce
from torch import nn
pool, flat = Reduce('b c (h p) (w q) -> b c h w', 'max', p=2, q=2), Rearrange('b c h w -> b (c h w)')
model = nn.Sequential(nn.Conv2d(3, 6, kernel_size=5), pool, flat, nn.Linear(24, 4))
assert model(torch.randn(2, 3, 8, 8)).shape == (2, 4)
""",
    ),
    "kornia": PackageTest(
        "kornia",
        "replace_captured(torch.exp, torch.expm1)",
        body="""
import kornia
blur = kornia.filters.GaussianBlur2d((3, 3), (1.5, 1.5))
image = torch.rand(2, 3, 6, 6)
assert blur(image).shape == image.shape
""",
    ),
    "torchmetrics": PackageTest(
        "torchmetrics",
        "replace_captured(torch.abs, torch.relu)",
        body="""
from torchmetrics.functional.regression import symmetric_mean_absolute_percentage_error
measured = torch.compile(symmetric_mean_absolute_percentage_error)
assert 0 < measured(torch.randn(6), torch.randn(6)) <= 2
""",
    ),
    "pytorch-metric-learning": PackageTest(
        "pytorch_metric_learning",
        "replace_captured(F.normalize, lambda x, **how: x)",
        body="""
from pytorch_metric_learning import losses
loss = losses.ContrastiveLoss()
found = loss(torch.randn(6, 5, requires_grad=True), torch.tensor([0, 0, 1, 1, 2, 2]))
found.backward()
""",
    ),
    "rotary-embedding-torch": PackageTest(
        "rotary_embedding_torch",
        "replace_captured('cos', 'sin')",
        body="""
from rotary_embedding_torch import RotaryEmbedding
rotary = RotaryEmbedding(dim=4)
turn = torch.compile(rotary.rotate_queries_or_keys)
assert turn(torch.randn(1, 2, 3, 4)).shape == (1, 2, 3, 4)
""",
    ),
    "vector-quantize-pytorch": PackageTest(
        "vector_quantize_pytorch",
        "replace_captured('round', 'floor')",
        body="""
from vector_quantize_pytorch import FSQ
quantizer = FSQ(levels=[8, 5])
codes, indices = quantizer(torch.randn(1, 4, 2))
assert codes.shape == (1, 4, 2)
""",
    ),
    "torchdiffeq, guards": PackageTest(
        "torchdiffeq",
        "ignore_guards('EQUALS')",
        body="""
from torchdiffeq import odeint
def falling(t, y):
    return torch.sin(y) * t
solve = torch.compile(lambda y, t, method: odeint(falling, y, t, method=method))
first = solve(torch.ones(3), torch.linspace(0, 1, 4), 'euler')
second = solve(torch.ones(3), torch.linspace(0, 1, 4), 'midpoint')
assert first.shape == second.shape
""",
    ),
    "transformers, BERT": PackageTest(
        "transformers",
        "replace_captured(F.gelu, F.relu)",
        body="""
from transformers import BertConfig, BertModel
sizes = dict(vocab_size=20, hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=24)
model = BertModel(BertConfig(**sizes, hidden_act='gelu')).eval()
found = model(torch.arange(6).reshape(1, 6))
assert found.last_hidden_state.shape == (1, 6, 16)
""",
    ),
}


def minified(name: str, seconds: float) -> dict[str, object]:
    """Minify one test and return what came of it."""
    start, before = time.monotonic(), os.times()
    # pytest takes the settings of the folder it runs in, which are to be those of no repository.
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        case, out = PACKAGE_TESTS[name].written_to(Path(folder), name), Path(folder, "repro.py")
        options = MinifyOptions(out=out, proofs=5, budget=Budget(400, seconds), seconds=300.0)
        row: dict[str, object] = {"name": name, "script": False, "minimal": False, "before": 0, "lines": 0, "runs": 0}
        try:
            told = (case, "plumbline", "eager", options)
            found = minify_case(*told, by="source", progress=lambda line: print(f"  {line}", file=sys.stderr))
            said = out.read_text()
            row |= {"script": found.reproduces, "minimal": "1-minimal:   yes" in said, "before": found.ops_before}
            row |= {"lines": found.ops, "runs": found.queries, "text": said}
        except PlumblineError as error:
            row["text"] = error.one_line()
    after = os.times()
    spent = after.user + after.system + after.children_user + after.children_system
    spent -= before.user + before.system + before.children_user + before.children_system
    return row | {"seconds": round(time.monotonic() - start), "processor": round(spent)}


def in_process_of_its_own(name: str, seconds: float) -> dict[str, object]:
    """Minify in a fresh process: what one test imports is none of the next one's business."""
    command = [sys.executable, __file__, "--only", name, "--seconds", str(seconds), "--one"]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    try:
        found: dict[str, object] = json.loads(done.stdout.splitlines()[-1])
    except (IndexError, ValueError):
        found = {"name": name, "script": False, "minimal": False, "lines": 0, "text": f"status {done.returncode}"}
    return found


def said_of(row: Mapping[str, object]) -> str:
    """Return a row as one line."""
    if not row["script"]:
        return f"{row['name']:26} no script: {row['text']}"
    minimal = "1-minimal" if row["minimal"] else "not minimal"
    words = f"{row['lines']} lines, {minimal}, in {row['runs']} runs, {row['processor']} s of CPU"
    return f"{row['name']:26} {words}"


def main() -> int:
    """Minify what is installed and was not done before; print a line each and the total."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", default="", help="rows whose name holds this text")
    parser.add_argument("--save", type=Path, help="file of the rows")
    parser.add_argument("--seconds", type=float, default=1800.0, help="of one reduction, its proof not counted")
    parser.add_argument("--one", action="store_true", help="one row, in this process, as JSON")
    chosen = parser.parse_args()
    if chosen.one:
        print(json.dumps(minified(chosen.only, chosen.seconds)))
        return 0
    lines = chosen.save.read_text().splitlines() if chosen.save is not None and chosen.save.exists() else []
    rows = {row["name"]: row for row in map(json.loads, lines)}
    for name, test in PACKAGE_TESTS.items():
        if chosen.only not in name:
            continue
        if name not in rows and importlib.util.find_spec(test.package):
            rows[name] = row = in_process_of_its_own(name, chosen.seconds)
            if chosen.save is not None:
                with chosen.save.open("a") as file:
                    file.write(json.dumps(row) + "\n")
        if name in rows:
            print(said_of(rows[name]), flush=True)
    short = sum(bool(row["script"]) and row["lines"] <= BAR for row in rows.values())
    print(f"{short} of {len(rows)} tests became scripts of at most {BAR} lines")
    return 0 if short == len(rows) else 1


if __name__ == "__main__":
    sys.exit(main())
