"""Count what the shapes of code found in real packages cost under ours and under stock torch.compile.

A row has a few calls of one program. Graphs, breaks and functions that ran eagerly are counted over all of them, and
results are compared with eager's. Rows whose package is not installed are left out, with a line that says so. A row
costs more than under stock if it takes more breaks and eager functions together, or more graphs; not so where stock
compiles nothing at all: it leaves the function to eager then, and any graph is more than it gives.

Usage: python benchmarks/packages_against_stock.py [--all] [word of a row's name ...]
Without --all, only rows where ours costs more than stock, gives another answer, or was asked for by name are printed.
"""

import importlib
import sys
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import torch._dynamo as dynamo

import plumbline
from plumbline.compiler.base.events import Broke, Captured, CompilerFailed, RanEagerly, recording

ROOT = Path(__file__).resolve().parent
sys.path.insert(0, str(ROOT))

from package_programs import ROWS, Compiler, Row  # noqa: E402 - the path comes first


@dataclass
class Costs:
    """What the calls of one row cost; wrong: how the results differ from eager's, empty where they do not."""

    graphs: int = 0
    breaks: int = 0
    eager: int = 0
    wrong: str = ""
    reasons: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.graphs} graphs, {self.breaks} breaks, {self.eager} eager" + (self.wrong and f", {self.wrong}")


def answers(row: Row, compiler: Compiler) -> list[Any]:
    """Return what the calls of a row give, or the error that one ends with."""
    torch.manual_seed(0)
    given: list[Any] = []
    try:
        given.extend(row.run(compiler))
    except Exception as error:
        given.append(error)
    return given


def difference(expected: list[Any], actual: list[Any]) -> str:
    """Return in words how results differ, empty where they do not."""
    for wanted, got in zip(expected, actual, strict=False):
        if isinstance(wanted, Exception) or isinstance(got, Exception):
            if type(wanted) is not type(got):
                return f"{type(got).__name__}: {str(got).strip().splitlines()[0][:100] if str(got) else ''}"
            continue
        try:
            torch.testing.assert_close(got, wanted, equal_nan=True)
        except AssertionError:
            return "another answer"
        except TypeError:  # it compares tensors, numbers and containers of them
            if type(got) is not type(wanted):
                return f"a {type(got).__name__}"
    return "" if len(expected) == len(actual) else "fewer answers"


def stock_costs(row: Row, expected: list[Any]) -> Costs:
    """Run a row under stock, in the state of a new process."""
    dynamo.reset()
    dynamo.utils.counters.clear()
    costs = Costs()

    def backend(graph: torch.fx.GraphModule, inputs: list[torch.Tensor]) -> Callable[..., Any]:
        costs.graphs += any(node.op.startswith("call_") for node in graph.graph.nodes)
        return graph.forward

    costs.wrong = difference(expected, answers(row, lambda model: torch.compile(model, backend=backend)))
    costs.breaks = sum(dynamo.utils.counters["graph_break"].values())
    frames = dynamo.utils.counters["frames"]
    costs.eager = frames["total"] - frames["ok"]
    return costs


def our_costs(row: Row, expected: list[Any]) -> Costs:
    """Run a row under ours."""
    with recording() as events:
        wrong = difference(expected, answers(row, lambda model: plumbline.compile(model, backend="eager")))
    counts = (sum(isinstance(event, kind) for event in events) for kind in (Captured, Broke, RanEagerly))
    reasons = [f"{event.reason}: {event.what}" for event in events if isinstance(event, Broke | RanEagerly)]
    reasons += [event.text() for event in events if isinstance(event, CompilerFailed)]
    return Costs(*counts, wrong, tuple(reasons))


def usable(rows: tuple[Row, ...]) -> Iterator[Row]:
    """Give the rows whose package is installed, and say which are left out."""
    for row in rows:
        try:
            importlib.import_module(row.package or "torch")
        except ImportError:
            print(f"{row.name:<44} left out: {row.package} is not installed")
            continue
        yield row


def main(words: list[str]) -> None:
    """Print the costs of the rows, and a line that counts them."""
    warnings.simplefilter("ignore")
    everything, words = "--all" in words, [word for word in words if word != "--all"]
    less = same = more = wrong = 0
    for row in usable(tuple(row for row in ROWS if not words or any(word in row.name for word in words))):
        expected = answers(row, lambda model: model)
        ours, stock = our_costs(row, expected), stock_costs(row, expected)
        spent, stocks = (costs.breaks + costs.eager for costs in (ours, stock))
        worse = (spent > stocks or ours.graphs > stock.graphs > 0) and not stock.wrong
        less += (ours.graphs, spent) < (stock.graphs, stocks) and not worse
        same += (ours.graphs, spent) == (stock.graphs, stocks)
        more += worse
        wrong += bool(ours.wrong)
        if everything or words or worse or ours.wrong:
            print(f"{row.name:<44} ours: {ours}; stock: {stock}", flush=True)
            for reason in ours.reasons if worse or words else ():
                print(f"{'':<8}{reason[:200]}")
    print(f"same as stock: {same}; less: {less}; more: {more}; other answers than eager: {wrong}")


if __name__ == "__main__":
    main(sys.argv[1:])
