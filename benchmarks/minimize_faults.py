"""How well `repro-minify` does on planted faults: success, minimality, queries, operators compiled, seconds.

    python benchmarks/minimize_faults.py [--only TEXT] [--statements N ...] [--graphs] [--seconds S]

Programs: one fault of each kind in a function of 5 to 120 statements; each is minified as `repro-minify` does it and
its script run in five fresh processes. Graphs: the faulty backends of the tests in graphs of 38 to 730 operators.
"""

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from plumbline.compiler.base.errors import PlumblineError
from plumbline.minifier.graphs.graph_case import case_of
from plumbline.minifier.minify import MinifyOptions
from plumbline.minifier.minify_case import minify_case
from plumbline.minifier.reduce.graph_judge import RULES, judge_case
from plumbline.minifier.reduce.problem import Budget
from plumbline.minifier.reduce.reduction import reduce_graph
from support.faulty_backends import FAULTS, LEAST_OPS, backend, layers

STATEMENTS = (5, 15, 40, 120)
GRAPHS = (30, 150, 600)

HEAD = """
import os, time, torch, plumbline
from plumbline.testing import ignore_guards, lowering_of, replace_captured, replace_lowering
aten = torch.ops.aten
"""
RELU = ("torch.relu(h)", "compiled(x, 2)")
PLANTS = {
    # kind: (plant, the statement in the program, the calls)
    "captured function": ("replace_captured(torch.relu, torch.sin)", *RELU),
    "captured method": ("replace_captured('exp', 'cos')", "h.exp()", "compiled(x, 2)"),
    "random numbers": (
        "replace_captured(torch.rand_like, torch.ones_like)",
        "h + torch.rand_like(h)",
        "compiled(x, 2)",
    ),
    "mutation": ("replace_captured('add_', 'sub_')", "x.add_(1) + h", "compiled(x, 2)"),
    "stale guard": ("ignore_guards('EQUALS')", "h * n", "compiled(x, 2); compiled(x, 3)"),
    "third call": ("ignore_guards('EQUALS')", "h * n", "compiled(x, 2); compiled(x, 2); compiled(x, 3)"),
    "internal error": ("replace_lowering(aten.relu.default, refuse)", *RELU),
    "wrong value": ("replace_lowering(aten.relu.default, lowering_of(aten.sin.default))", *RELU),
    "only backward": (
        "replace_lowering(aten.cos.default, lowering_of(aten.sin.default))",
        "torch.sin(h)",
        "compiled(x.requires_grad_(), 2)",
    ),
    "segmentation fault": ("replace_lowering(aten.relu.default, dies)", *RELU),
    "hang": ("replace_lowering(aten.relu.default, hangs)", *RELU),
    "now and then": ("replace_lowering(aten.relu.default, sometimes)", *RELU),
    "warm cache": ("replace_lowering(aten.relu.default, warm)", *RELU),
    "threads": ("replace_lowering(aten.relu.default, threads)", *RELU),
}
LOWERINGS = """
def refuse(call):
    raise ValueError("refused")
def dies(call):
    os.kill(os.getpid(), 11)
def hangs(call):
    time.sleep(10000)
def sometimes(call):
    return lowering_of(aten.sin.default if os.urandom(1)[0] < 120 else aten.relu.default)(call)
def warm(call):
    folder = os.environ.get("PLUMBLINE_CACHE_DIRECTORY")
    seen = os.path.join(folder, "seen") if folder else os.devnull
    wrong = bool(folder) and os.path.exists(seen)
    open(seen, "w").close()
    return lowering_of(aten.sin.default if wrong else aten.relu.default)(call)
def threads(call):
    return lowering_of(aten.sin.default if torch.get_num_threads() > 1 else aten.relu.default)(call)
"""


def program(kind: str, statements: int) -> str:
    """Return a program with one fault: its statement stands in the middle of others that do not matter."""
    plant, statement, calls = PLANTS[kind]
    lines = [f"    h = h.tanh() * 1.01 + {number % 7}" for number in range(statements)]
    lines.insert(statements // 2, f"    h = {statement}")
    body = "\n".join(["def program(x, n):", "    h = x.cos()", *lines, "    return h"])
    call = f"with {plant}:\n    compiled = plumbline.compile(program)\n    x = torch.randn(4, 4)\n    {calls}"
    return f"{HEAD}{LOWERINGS}\n{body}\n\n{call}\n"


def minify_programs(only: str, sizes: Sequence[int], seconds: float) -> None:
    """Print one line per program, and the totals."""
    rows = []
    print(f"{'kind':20} {'statements':>10} {'script':>7} {'1-minimal':>9} {'runs':>6} {'size':>12} {'seconds':>8}")
    for kind in PLANTS:
        for statements in sizes if only in kind else ():
            with tempfile.TemporaryDirectory() as folder:
                case, out = Path(folder, "case.py"), Path(folder, "repro.py")
                case.write_text(program(kind, statements))
                options = MinifyOptions(out=out, proofs=5, budget=Budget(400, seconds), seconds=20.0)
                start = time.monotonic()
                try:
                    found = minify_case(str(case), "plumbline", "inductor", options, progress=lambda _: None)
                    text = out.read_text()
                    minimal = "budget" not in found.sentence and "1-minimal:   no" not in text
                    row = (True, minimal, found.queries, f"{found.ops} {found.unit}")
                except PlumblineError as error:
                    row = (False, False, 0, error.one_line()[:60])
            rows.append(row)
            took = time.monotonic() - start
            print(
                f"{kind:20} {statements:10} {row[0]!s:>7} {row[1]!s:>9} {row[2]:6} {row[3]:>12} {took:8.0f}", flush=True
            )
    good = sum(row[0] for row in rows)
    print(f"scripts {good}/{len(rows)}, 1-minimal {sum(row[1] for row in rows)}/{good}")


def minify_graphs() -> None:
    """Print one line per fault and size of graph: queries, operators compiled in all of them, operators left."""
    asked, compiled = [], []
    print(f"{'fault':10} {'operators':>9} {'queries':>8} {'compiled':>9} {'left':>5} {'least':>6} {'seconds':>8}")
    for size in GRAPHS:
        for fault in FAULTS:
            gm, inputs = layers(size)
            case = case_of(gm, inputs)
            seen = 0

            def compile_graph(graph, values, fault=fault):
                nonlocal seen
                seen += sum(node.op == "call_function" for node in graph.graph.nodes)
                return backend(FAULTS[fault])(graph, values)

            first = judge_case(case, compile_graph, RULES["aot"])
            start, seen = time.monotonic(), 0
            found = reduce_graph(case, first, compile_graph, RULES["aot"])
            took = time.monotonic() - start
            numbers = f"{len(case):9} {found.queries:8} {seen:9} {len(found.case):5} {LEAST_OPS[fault]:6} {took:8.1f}"
            print(f"{fault:10} {numbers}", flush=True)
            if size == GRAPHS[-1]:
                asked.append(found.queries)
                compiled.append(seen)
    words = f"queries median {statistics.median(asked)}, worst {max(asked)}"
    print(f"largest graphs: {words}; operators compiled median {statistics.median(compiled)}")


def main() -> None:
    """Run what the arguments choose."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", default="", help="only programs, of the kinds that contain this text")
    parser.add_argument("--graphs", action="store_true", help="only the graphs, with backends that cost nothing")
    parser.add_argument("--statements", type=int, nargs="+", default=STATEMENTS, help="of the programs")
    parser.add_argument("--seconds", type=float, default=600.0, help="of the reduction of one program")
    chosen = parser.parse_args()
    if not chosen.only:
        minify_graphs()
    if not chosen.graphs:
        minify_programs(chosen.only, chosen.statements, chosen.seconds)


if __name__ == "__main__":
    main()
