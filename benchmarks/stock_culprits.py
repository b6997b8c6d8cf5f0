"""Which part of stock `torch.compile` is to blame for each silent fault of SilentBench, by stock's own switches.

    python benchmarks/stock_culprits.py [--case TEXT] [--save FILE] [--table] [--seconds S]

Each case that is known to be wrong under this version of torch is bisected as `plumbline bisect --compiler torch` does
it, in a child process of its own. `--save` keeps the answers, one JSON line a case, and a case that it has is not asked
again; `--table` prints it as Markdown and asks nothing.
"""

import argparse
import json
import os
import re
import sys
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", "1")  # a pool of processes does not live in a fork

import torch

from plumbline.fuzz.silent_bench.bench_cases import BenchCase, bench_cases
from plumbline.fuzz.silent_bench.case_judgement import judged_case
from plumbline.minifier.bisect.bisected_cases import is_like
from plumbline.minifier.bisect.stock_culprit import stock_culprit_of
from plumbline.minifier.cases.failing_calls import failing_call
from plumbline.minifier.sandbox import in_child
from plumbline.oracle.harness.compilers import LADDER
from plumbline.oracle.verdict import Verdict

BAR = 0.8
Row = dict[str, object]


def faults_of_stock(text: str) -> list[BenchCase]:
    """Return the cases that are wrong under this torch, those first that need no C++ compiler."""
    chosen = [case for case in bench_cases() if case.status("torch", torch.__version__).is_fault and text in case.name]
    return sorted(chosen, key=lambda case: case.wrong_at == "inductor")


def bisected(case: BenchCase) -> Row:
    """Return what is known of one case, as plain data; for a child process."""
    first: list[Verdict] = []

    def ask(backend: str) -> bool:
        verdict = judged_case(case, "torch", backend).verdict
        if not verdict.failed:
            return False
        first[:] = first or [verdict]
        return is_like(verdict, first[0])

    last = max((name for name in LADDER if case.expected("torch", name, torch.__version__)), key=LADDER.index)
    culprit = stock_culprit_of(ask, last)
    if culprit is None:
        return {"backend": "", "sentence": "it does not fail"}
    return culprit.as_data()


def asked(case: BenchCase, seconds: float) -> Row:
    """Bisect a case in a child; a child that dies or takes too long gives a row that says so."""
    start = time.monotonic()
    try:
        outcome = in_child(lambda: bisected(case), seconds)
        row = outcome.value or {"backend": "", "sentence": f"not finished: {outcome.death}"}
    except RuntimeError as error:
        row = {"backend": "", "sentence": f"not finished: {str(error)[:200]}"}
    known = {"name": case.name, "fault": case.fault, "wrong_at": case.wrong_at, "torch": torch.__version__}
    return known | row | {"took": round(time.monotonic() - start, 1)}


def loaded() -> None:
    """Compile once with stock, so that no child has to import it again."""
    torch.set_num_threads(1)  # no pool of threads that a fork would lack
    failing_call(lambda x: x.sin() + 1, (torch.ones(2),), {}, compiler="torch", backend="inductor")


def kept(file: Path | None) -> dict[str, Row]:
    """Return the rows of a file by case."""
    if file is None or not file.exists():
        return {}
    rows = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    return {str(row["name"]): row for row in rows if row["torch"] == torch.__version__}


def finer(row: Row) -> str:
    """Return what is named beyond the backend: `option`, the counted subsystem, or nothing."""
    application = row.get("application")
    if isinstance(application, dict):
        return str(application["subsystem"])
    return "option" if row.get("option") else ""


def table(rows: Sequence[Row]) -> str:
    """Return a Markdown table: one line for each backend and kind of culprit, with how many cases have it."""
    groups: dict[tuple[str, str], list[str]] = {}
    for row in rows:
        groups.setdefault((str(row["backend"]), finer(row)), []).append(_words(row))
    lines = ["| first wrong | named beyond it | cases | culprits |", "|---|---|---|---|"]
    for (backend, kind), words in sorted(groups.items(), key=lambda group: (group[0][0] not in LADDER, group[0])):
        counted = Counter(filter(None, words)).most_common()
        found = ", ".join(f"{what} ({count})" if count > 1 else what for what, count in counted)
        lines.append(f"| `{backend}` | {kind or 'nothing: none mends it'} | {len(words)} | {found} |")
    return "\n".join(lines)


def _words(row: Row) -> str:
    application, option = row.get("application"), row.get("option")
    if isinstance(application, dict):
        operator = re.search(r"op='([^']+)'", str(application["what"]))
        return str(operator[1] if operator else application["what"])
    return f"{option[1]} = {option[2]}" if isinstance(option, list | tuple) else ""


def summary(rows: Sequence[Row]) -> str:
    """Return the totals in words."""
    right = [row for row in rows if row["backend"] == row["wrong_at"] or _within(row)]
    named = Counter(finer(row) or "backend only" for row in right)
    words = ", ".join(f"{count} {what}" for what, count in named.most_common())
    share = len(right) / len(rows) if rows else 0.0
    return f"{len(right)} of {len(rows)} backends named as known ({share:.0%}); beyond the backend: {words}"


def _within(row: Row) -> bool:
    """The bench's ladder has no rung between aot_eager and inductor; the bisector's has."""
    return row["wrong_at"] == "inductor" and row["backend"] == "aot_eager_decomp_partition"


def main() -> int:
    """Bisect the cases that the arguments choose, and print the figures."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--case", default="", help="cases whose name holds this text")
    parser.add_argument("--save", type=Path, help="file of the answers")
    parser.add_argument("--table", action="store_true", help="print what is saved")
    parser.add_argument("--seconds", type=float, default=900.0, help="of one case")
    chosen = parser.parse_args()
    cases, known = faults_of_stock(chosen.case), kept(chosen.save)
    if not chosen.table:
        loaded()
        for case in cases:
            if case.name in known:
                continue
            row = known[case.name] = asked(case, chosen.seconds)
            print(f"{case.name:50} {row['took']!s:>6} s  {row['sentence']}", flush=True)
            if chosen.save is not None:
                with chosen.save.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(row, default=str) + "\n")
    rows = [known[case.name] for case in cases if case.name in known]
    if chosen.table:
        print(table(rows))
    print(summary(rows))
    return 0 if rows and sum(bool(row["backend"]) for row in rows) >= BAR * len(rows) else 1


if __name__ == "__main__":
    sys.exit(main())
