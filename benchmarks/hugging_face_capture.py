"""Time the first call of Hugging Face models under backend "eager": ours against stock torch.compile, in one process.

Usage: python benchmarks/hugging_face_capture.py [--repeat N] [family ...]

CPU seconds of the first call (capture, guards, one run), minimum over the repetitions, each from an empty cache.
Both see one unrelated compilation first, so that imports are not counted.
"""

import argparse
import gc
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import torch._dynamo as dynamo

from plumbline.compiler import api
from plumbline.compiler.base.options import Options

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from support.hugging_face import FAMILIES, Family

Compile = Callable[[Any], Any]
COMPILERS: dict[str, Compile] = {
    "ours": lambda model: api.compile(model, backend="eager", fullgraph=True, options=Options(strict=True)),
    "stock": lambda model: torch.compile(model, backend="eager", fullgraph=True),
}


def first_call(family: Family, compiler: Compile) -> float:
    """Return the CPU seconds of compiling and calling a fresh model once; raises if the answer is not eager's."""
    api.reset()
    dynamo.reset()
    model, inputs = family.make(), family.inputs()
    with torch.no_grad():
        expected = model(**inputs)[0]
        run = compiler(model)
        gc.collect()
        start = time.process_time()
        actual = run(**inputs)[0]
        seconds = time.process_time() - start
    if not torch.equal(expected, actual):
        raise AssertionError("the captured model gives another answer")
    return seconds


def main() -> None:
    """Print a row for each family and the geometric mean of the ratios."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("families", nargs="*", default=list(FAMILIES))
    options = parser.parse_args()
    for compiler in COMPILERS.values():
        compiler(lambda x: torch.relu(x) + 1)(torch.ones(2))
    ratios = []
    print(f"{'model':<12} {'ours s':>8} {'stock s':>8} {'ratio':>6}")
    for name in options.families:
        times: dict[str, list[float]] = {compiler: [] for compiler in COMPILERS}
        for _ in range(options.repeat):
            for label, compiler in COMPILERS.items():
                times[label].append(first_call(FAMILIES[name], compiler))
        ours, stock = min(times["ours"]), min(times["stock"])
        ratios.append(ours / stock)
        print(f"{name:<12} {ours:8.3f} {stock:8.3f} {ours / stock:6.2f}", flush=True)
    print(f"geometric mean of the ratios: {statistics.geometric_mean(ratios):.2f}")


if __name__ == "__main__":
    main()
