"""What a call of a compiled function costs besides its graph, against torch.compile, in one run.

    python benchmarks/dispatch_overhead.py [--chunks 40] [--no-stock]

The graph is replaced by a function that returns a constant, so a row is guards, fetching the inputs and calling.
CPU microseconds per call on one thread; ours and stock alternate in chunks; the minimum and the median over chunks.
Cases: `x + 1`; 50 and 250 `Linear(4, 4)` in a Sequential (100 and 500 parameters).
"""

import argparse
import statistics
import time
from collections.abc import Callable

import torch

import plumbline

Call = Callable[[torch.Tensor], object]
Graph = Callable[..., object]
TARGETS = {"x + 1": 0.12, "100 parameters": 0.5, "500 parameters": 0.6}
CALLS = {"x + 1": 2000, "100 parameters": 100, "500 parameters": 30}


def null_backend(module: torch.fx.GraphModule, examples: list[object]) -> Graph:
    """Return a graph that was run once and then gives the same outputs at no cost."""
    outputs: list[object] = []

    def run(*args: object) -> object:
        if not outputs:
            outputs.append(module.forward(*args))
        return outputs[0]

    return run


def add_one(x: torch.Tensor) -> torch.Tensor:
    """Return x + 1."""
    return x + 1


def layers(count: int) -> torch.nn.Module:
    """Return a module of 2 * count parameters."""
    return torch.nn.Sequential(*(torch.nn.Linear(4, 4) for _ in range(count)))


def cases() -> dict[str, tuple[Call, torch.Tensor]]:
    """Return name -> (program, its argument)."""
    return {
        "x + 1": (add_one, torch.randn(4)),
        "100 parameters": (layers(50), torch.randn(2, 4)),
        "500 parameters": (layers(250), torch.randn(2, 4)),
    }


def measure(calls: list[Call], x: torch.Tensor, count: int, chunks: int) -> list[tuple[float, float]]:
    """Return (minimum, median) CPU microseconds per call of each, over alternating chunks of `count` calls."""
    times: list[list[float]] = [[] for _ in calls]
    for call in calls:
        for _ in range(3):
            call(x)
    for _ in range(chunks):
        for call, taken in zip(calls, times, strict=True):
            start = time.thread_time_ns()
            for _ in range(count):
                call(x)
            taken.append((time.thread_time_ns() - start) / count / 1000)
    return [(min(taken), statistics.median(taken)) for taken in times]


def main() -> None:
    """Print one line per case."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--chunks", type=int, default=40, help="chunks per case and compiler")
    parser.add_argument("--no-stock", action="store_true", help="leave torch.compile out")
    options = parser.parse_args()
    torch.set_num_threads(1)
    print(f"{'case':16} {'ours min':>9} {'median':>9} {'stock min':>10} {'median':>9} {'ratio':>6} {'target':>7}")
    for name, (program, x) in cases().items():
        calls: list[Call] = [plumbline.compile(program, backend=null_backend)]
        if not options.no_stock:
            calls.append(torch.compile(program, backend=null_backend))
        found = measure(calls, x, CALLS[name], options.chunks)
        row = f"{name:16} {found[0][0]:9.2f} {found[0][1]:9.2f}"
        if len(found) > 1:
            ratio = found[0][1] / found[1][1]
            row += f" {found[1][0]:10.2f} {found[1][1]:9.2f} {ratio:6.3f} {TARGETS[name]:7.2f}"
        print(row)


if __name__ == "__main__":
    main()
