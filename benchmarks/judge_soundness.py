"""What the judge says of programs that are right: false alarms, and programs whose outcome judging changed.

    python benchmarks/judge_soundness.py identity [--only SOURCE ...] [--seed 0] [--minutes M] [--resume FILE]
    python benchmarks/judge_soundness.py pairs --compiler plumbline --backend inductor [--dtypes float32 bfloat16] ...

identity: every call is judged against the same function, so whatever fails is a false alarm.  A program is played
three times from equal seeds, plain and judged, and what it leaves (results, state, gradients after its own backward,
generators, modes, exceptions) is compared bit by bit: a difference is a changed outcome, unless plain differs from
plain.  pairs: every call is compiled and judged; each alarm is to be read by hand, as a false alarm or as a fault.

Programs come from sources (`benchmarks/soundness/sources.py`): programs with state, training, kinds of tensors; those
of tests/programs; torch's tables of modules and operators; the fuzzers; Hugging Face families.  They run in a child
process that may die.  Rows are JSON lines, one for each task; --resume goes on where a file ends, and --list prints the
alarms and changes of a file that are not in `judge_soundness_confirmed.toml`: alarms read by hand and found true.
"""

import argparse
import collections
import json
import time
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from soundness.playing import identity_rows, pair_rows
from soundness.sources import SOURCES, Source

from plumbline.fuzz.findings import TrialResult
from plumbline.fuzz.isolation import Workshop
from plumbline.fuzz.operator_sweep.row_store import RowStore
from plumbline.oracle.verdict import Verdict, VerdictKind

TASK_SECONDS = 240.0
CONFIRMED = Path(__file__).with_name("judge_soundness_confirmed.toml")
_DONE = Verdict(VerdictKind.EQUAL, "the rows say it")


def main() -> None:
    """Go through the sources and print the table."""
    options = _options()
    if options.list:
        _print_findings(options.resume, options.compiler if options.way == "pairs" else "")
        return
    file = options.resume or Path(f"judge-soundness-{options.way}.jsonl")
    settings = {"way": options.way, "seed": options.seed, "compiler": options.compiler, "backend": options.backend}
    end = time.monotonic() + 60 * options.minutes if options.minutes else float("inf")

    def attempt(task: str, _: str) -> TrialResult:
        source, name = task.split("/", 1)
        return TrialResult(_DONE, details={"rows": list(_rows(SOURCES[source], name, options))})

    with RowStore(file, settings, resume=options.resume is not None) as store, Workshop(attempt, TASK_SECONDS) as child:
        for task in _tasks(options):
            if time.monotonic() > end:
                break
            if task in store.rows:
                continue
            started = time.monotonic()
            trial = child.try_one(task)
            rows = (trial.details or {}).get("rows")
            died = "" if rows is not None else trial.verdict.sentence
            seconds = round(time.monotonic() - started, 2)
            store.append({"task": task, "faults": [], "rows": rows or [], "died": died, "seconds": seconds})
        _print_table(store.rows, options.compiler if options.way == "pairs" else "")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("way", choices=("identity", "pairs"))
    parser.add_argument("--only", nargs="*", default=list(SOURCES), choices=list(SOURCES), metavar="SOURCE")
    parser.add_argument("--match", default="", help="only tasks whose name has this text")
    parser.add_argument("--dtypes", nargs="*", default=[], help="only programs in these dtypes, where the name says it")
    parser.add_argument("--compiler", default="plumbline")
    parser.add_argument("--backend", default="inductor")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--minutes", type=float)
    parser.add_argument("--resume", type=Path)
    parser.add_argument("--list", action="store_true")
    return parser.parse_args()


def _tasks(options: argparse.Namespace) -> Iterator[str]:
    for name in options.only:
        for task in SOURCES[name].tasks(options.seed):
            if options.match in task:
                yield f"{name}/{task}"


def _rows(source: Source, task: str, options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    for program in source.programs(task, options.seed):
        if options.dtypes and not any(dtype in program.name.split() for dtype in options.dtypes):
            continue
        started = time.monotonic()
        row = (
            identity_rows(program)
            if options.way == "identity"
            else pair_rows(program, options.compiler, options.backend)
        )
        yield row | {"seconds": round(time.monotonic() - started, 2)}


def _confirmed(compiler: str) -> list[dict[str, Any]]:
    """Return the alarms of a compiler that were found true by hand."""
    entries: list[dict[str, Any]] = tomllib.loads(CONFIRMED.read_text(encoding="utf-8"))["confirmed"]
    return [entry for entry in entries if entry["compiler"] == compiler]


def _is_true(task: str, row: dict[str, Any], known: list[dict[str, Any]]) -> bool:
    return bool(row["alarm"]) and any(
        task in entry["programs"] and entry["says"] in row["alarm"].partition("\n")[0] for entry in known
    )


def _print_table(tasks: dict[str, dict[str, Any]], compiler: str) -> None:
    kinds: collections.Counter[str] = collections.Counter()
    known = _confirmed(compiler)
    print(f"{'source':<12}{'programs':>10}{'calls':>8}{'alarms':>8}{'true':>6}{'changed':>9}{'died':>6}{'seconds':>9}")
    for name in SOURCES:
        mine = [row for task, row in tasks.items() if task.startswith(f"{name}/")]
        rows = [one for row in mine for one in row["rows"] if one["calls"]]
        true = sum(_is_true(row["task"], one, known) for row in mine for one in row["rows"])
        kinds.update(one["verdict"] for one in rows)
        alarms, changed = (sum(bool(one[key]) for one in rows) for key in ("alarm", "changed"))
        calls, died = sum(one["calls"] for one in rows), sum(bool(row["died"]) for row in mine)
        seconds = sum(row["seconds"] for row in mine)
        print(f"{name:<12}{len(rows):>10}{calls:>8}{alarms:>8}{true:>6}{changed:>9}{died:>6}{seconds:>9.0f}")
    print("verdicts:", ", ".join(f"{kind} {count}" for kind, count in kinds.most_common()))


def _print_findings(file: Path, compiler: str) -> None:
    known = _confirmed(compiler)
    for line in file.read_text(encoding="utf-8").splitlines()[1:]:
        task = json.loads(line)
        if task["died"]:
            print(f"{task['task']} DIED: {task['died']}")
        for row in task["rows"]:
            if (row["alarm"] and not _is_true(task["task"], row, known)) or row["changed"]:
                print(f"{task['task']} | {row['program']}")
                print("\n".join(f"    {part}" for part in (row["alarm"], row["changed"]) if part))


if __name__ == "__main__":
    main()
