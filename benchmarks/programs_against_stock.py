"""Count graphs and breaks of every small program under stock torch.compile and under ours, and print where they differ.

Usage: python benchmarks/programs_against_stock.py [name of a file or program ...]
"""

import importlib
import sys
from pathlib import Path

import torch
import torch._dynamo as dynamo

from plumbline.compiler.base.events import Broke, Captured, RanEagerly, recording

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests"))
sys.path.insert(0, str(ROOT / "tests" / "programs"))

from support.programs import Program, compiled, outcome  # noqa: E402 - the path comes first


def stock_costs(program: Program) -> tuple[int, int, str]:
    """Return (graphs with operations, breaks, kind of error) of the first call under stock."""
    dynamo.reset()
    dynamo.utils.counters.clear()
    graphs = 0

    def backend(graph: torch.fx.GraphModule, inputs: list[torch.Tensor]) -> object:
        nonlocal graphs
        graphs += any(node.op.startswith("call_") for node in graph.graph.nodes)
        return graph.forward

    result = outcome(torch.compile(program.function, backend=backend), program.arguments(), None, program.backward)[0]
    breaks = sum(dynamo.utils.counters["graph_break"].values())
    return graphs, breaks, result[1].__name__ if result[0] == "raises" else ""


def our_costs(program: Program) -> tuple[int, int, int]:
    """Return (graphs, breaks, functions that ran eagerly) of the first call under ours."""
    run = compiled(program.function, **{"strict": False} | program.settings)
    with recording() as events:
        outcome(run, program.arguments(), None, program.backward)
    graphs, breaks, eager = (sum(isinstance(e, kind) for e in events) for kind in (Captured, Broke, RanEagerly))
    return graphs, breaks, eager


def main(wanted: list[str]) -> None:
    """Print a row for every program whose cost differs from stock or from what its test expects."""
    fewer = more = same = 0
    for path in sorted((ROOT / "tests" / "programs").glob("test_*.py")):
        corpus = getattr(importlib.import_module(path.stem), "corpus", None)  # test_gaps.py has none
        for program in corpus.programs if corpus else []:
            if wanted and not any(word in (program.id, program.id.partition(".")[0]) for word in wanted):
                continue
            stock, ours = stock_costs(program), our_costs(program)
            same += ours[:2] == stock[:2]
            fewer += ours[1] + ours[2] < stock[1]
            more += ours[1] + ours[2] > stock[1]
            expected = (program.graphs, program.breaks, program.eager)
            if stock[:2] != ours[:2] or stock[:2] != expected[:2]:
                print(f"{program.id:<60} expected {expected}  stock {stock}  ours {ours}", flush=True)
    print(f"same cost: {same}; fewer breaks than stock: {fewer}; more breaks than stock: {more}")


if __name__ == "__main__":
    main(sys.argv[1:])
