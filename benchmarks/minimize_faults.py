"""How well `repro-minify` does on planted faults: success, minimality, queries, operators compiled, seconds.

    python benchmarks/minimize_faults.py [--graphs] [--only TEXT] [--operators N ...] [--save FILE] [--seconds S]

Programs: one fault of each kind in programs of 20 to 2000 operators and in five real models; each is minified as
`repro-minify` does it, and its script run in five fresh processes.  `--save` keeps the rows, and what it has is not
done again.  `--graphs`: the faulty backends of the tests in graphs of 38 to 730 operators, which cost nothing to
compile.
"""

import argparse
import json
import resource
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from planted_programs import FAULT_KINDS, FAULTY_MODELS, made_program, model_program

from plumbline.compiler.base.errors import PlumblineError
from plumbline.minifier.graphs.graph_case import case_of
from plumbline.minifier.minify import MinifyOptions
from plumbline.minifier.minify_case import minify_case
from plumbline.minifier.reduce.graph_judge import RULES, judge_case
from plumbline.minifier.reduce.problem import Budget
from plumbline.minifier.reduce.reduction import reduce_graph
from support.faulty_backends import FAULTS, LEAST_OPS, backend, layers

OPERATORS = (20, 200, 2000)
GRAPHS = (30, 150, 600)
PROOFS = 5
Row = dict[str, object]


SECONDS, SECONDS_OF_LARGE, LARGE = 60.0, 300.0, 1000
"""After which one judgement is a hang, in programs and in those of many operators, whose gradients are as many."""


def programs(sizes: list[int]) -> Iterator[tuple[str, str, float]]:
    """Yield (name, program, seconds of one judgement).

    Every kind at the smallest size comes first, then the models, then every kind at the other sizes.
    """
    for place, operators in enumerate(sizes):
        for kind in FAULT_KINDS:
            limit = SECONDS if operators < LARGE else SECONDS_OF_LARGE
            yield f"{kind}, {operators} operators", made_program(kind, operators), limit
        for name in FAULTY_MODELS if place == 0 else ():
            yield f"{name}, model", model_program(name), SECONDS


def minified(name: str, text: str, seconds: float, limit: float) -> Row:
    """Minify one program and return what came of it; seconds: of the reduction, limit: of one judgement."""
    start, before = time.monotonic(), _processor_seconds()
    with tempfile.TemporaryDirectory() as folder:
        case, out = Path(folder, "case.py"), Path(folder, "repro.py")
        case.write_text(text)
        options = MinifyOptions(out=out, proofs=PROOFS, budget=Budget(400, seconds), seconds=limit)
        row: Row = {"name": name, "script": False, "minimal": False, "queries": 0, "left": ""}
        try:
            found = minify_case(str(case), "plumbline", "inductor", options, progress=lambda _: None)
            said = out.read_text()
            row |= {"script": found.reproduces, "minimal": "1-minimal:  yes" in said or "1-minimal:   yes" in said}
            row |= {"queries": found.queries, "left": f"{found.ops_before} -> {found.ops} {found.unit}"}
            row |= {"stage": found.stage, "culprit": found.culprit.partition("\n")[0], "text": said}
        except PlumblineError as error:
            row["left"] = error.one_line()[:200]
    return row | {"seconds": time.monotonic() - start, "processor": _processor_seconds() - before}


def _processor_seconds() -> float:
    return sum(
        used.ru_utime + used.ru_stime
        for used in (resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN))
    )


def minify_programs(only: str, sizes: list[int], seconds: float, save: Path | None) -> None:
    """Print one line per program, and the totals."""
    lines = save.read_text(encoding="utf-8").splitlines() if save is not None and save.exists() else []
    known = {row["name"]: row for row in map(json.loads, lines)}
    rows = []
    print(f"{'fault':44} {'script':>6} {'1-minimal':>9} {'queries':>7} {'left':>24} {'seconds':>8} {'CPU':>6}")
    for name, text, limit in programs(sizes):
        if only not in name:
            continue
        row = known.get(name) or minified(name, text, seconds, limit)
        rows.append(row)
        yes = {True: "yes", False: "no"}
        print(
            f"{name:44} {yes[bool(row['script'])]:>6} {yes[bool(row['minimal'])]:>9} {row['queries']:>7} "
            f"{row['left']:>24} {row['seconds']:8.0f} {row['processor']:6.0f}",
            flush=True,
        )
        if save is not None and name not in known:
            with save.open("a", encoding="utf-8") as file:
                file.write(json.dumps(row) + "\n")
    good = [row for row in rows if row["script"]]
    minimal = sum(bool(row["minimal"]) for row in good)
    print(f"scripts that reproduce {PROOFS}/{PROOFS}: {len(good)} of {len(rows)}; 1-minimal {minimal} of {len(good)}")


def minify_graphs() -> None:
    """Print one line per fault and size of graph: queries, operators compiled in all of them, operators left.

    queries: up to the smallest graph; inputs: of these, those that make the inputs plainer.  checks: that it is
    minimal.
    """
    asked, compiled = [], []
    head = f"{'operators':>9} {'queries':>7} {'inputs':>6} {'checks':>6} {'compiled':>8} {'left':>4} {'least':>5}"
    print(f"{'fault':8} {head} {'seconds':>8}")
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
            numbers = f"{len(case):9} {found.queries:7} {found.input_queries:6} {found.checks:6} {seen:8}"
            print(f"{fault:8} {numbers} {len(found.case):4} {LEAST_OPS[fault]:5} {took:8.1f}", flush=True)
            if size == GRAPHS[-1]:
                asked.append(found.queries - found.input_queries)
                compiled.append(seen)
    words = f"queries for operators median {statistics.median(asked)}, worst {max(asked)}"
    print(f"largest graphs: {words}; operators compiled median {statistics.median(compiled)}")


def main() -> None:
    """Run what the arguments choose."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", default="", help="programs whose name holds this text")
    parser.add_argument("--graphs", action="store_true", help="graphs in place of programs")
    parser.add_argument("--operators", type=int, nargs="+", default=list(OPERATORS), help="of the programs")
    parser.add_argument("--seconds", type=float, default=1200.0, help="of the reduction of one program")
    parser.add_argument("--save", type=Path, help="file of the rows")
    chosen = parser.parse_args()
    if chosen.graphs:
        minify_graphs()
    else:
        minify_programs(chosen.only, chosen.operators, chosen.seconds, chosen.save)


if __name__ == "__main__":
    main()
