"""A script and its certificate for every program that stock `torch.compile` is silently wrong on, by `repro-minify`.

    python benchmarks/live_case_scripts.py [--case TEXT] [--save FILE] [--seconds S] [TEST ...]

The programs are those of SilentBench that are `live` under the installed torch, or the tests that are named
(FILE::TEST); the first backend of eager, aot_eager and inductor that is wrong is asked.  A row is good if the script
fails in five fresh processes, none of the things that its certificate lists could be left out, and it has no more than
`LINES` lines or operators.  `--save` keeps the rows; what it has is not done again.
"""

import argparse
import json
import re
import statistics
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import torch
from minifiers_side_by_side import Shell, counted

from plumbline.fuzz.silent_bench.bench_cases import Status, bench_cases

PROOFS = 5
LINES = 25
BACKENDS = ("eager", "aot_eager", "inductor")
FINE = "it does not fail"
Row = dict[str, object]


def asked(tests: Sequence[str]) -> Iterator[tuple[str, str, tuple[str, ...]]]:
    """Yield (name, test, backends of which the first wrong one is reduced)."""
    for test in tests:
        yield test.rpartition("/")[2], test, BACKENDS
    if tests:
        return
    for case in bench_cases():
        if case.status("torch", torch.__version__) is Status.LIVE:
            wrong = [name for name in BACKENDS if case.expected("torch", name, torch.__version__)]
            yield case.name, f"{case.file}::{case.test}", tuple(wrong[:1])


def scripted(test: str, backends: Sequence[str], seconds: float) -> Row:
    """Return what `repro-minify` makes of a test at the first of these backends at which it fails."""
    row: Row = {"good": False, "said": FINE}
    for backend in backends:
        row = _at_backend(test, backend, seconds)
        if row["said"] != FINE:
            break
    return row


def _at_backend(test: str, backend: str, seconds: float) -> Row:
    with tempfile.TemporaryDirectory() as name:
        shell = Shell(Path(name), seconds)
        command = [sys.executable, "-m", "plumbline.minifier.command_minify", test, "--json", "--compiler", "torch"]
        command += ["--backend", backend, "--out", "repro.py", "--proofs", str(PROOFS)]
        output: list[str] = []

        def work() -> str:
            status, text = shell.run(command)
            output.append(text)
            return "out of time" if status == -1 else ""

        said, spent = counted(work)
        row: Row = {"backend": backend, "good": False, "said": said, "processor": round(spent)}
        if said:
            return row
        lines = [json.loads(line) for line in output[0].splitlines() if line.startswith("{")]
        if not lines or lines[-1]["path"] is None:
            said = lines[-1]["sentence"] if lines else output[0].strip()[-300:]
            return row | {"said": FINE if "the case is fine under this backend" in said else said}
        found = lines[-1]
        text = Path(name, "repro.py").read_text(encoding="utf-8")
        minimal = re.search(r"^1-minimal: +yes", text, re.MULTILINE) is not None
        row |= {"unit": found["unit"], "left": found["ops"], "minimal": minimal, "text": text}
        row |= {"script": found["reproduces"], "stage": found["stage"]}
        return row | {"good": bool(found["reproduces"]) and minimal and int(found["ops"]) <= LINES}


def said_of(name: str, row: Row) -> str:
    """Return a row as one line."""
    if row["said"]:
        return f"{name:60} no script: {row['said']}"
    fails = "reproduces" if row["script"] else "DOES NOT REPRODUCE"
    minimal = "1-minimal" if row["minimal"] else "NOT MINIMAL"
    words = f"{row['left']} {row['unit']}, {fails}, {minimal}, {row['processor']} s of CPU"
    return f"{name:60} {row['backend']:9} {words}"


def main() -> int:
    """Reduce what is asked for and not known; print a line each and the totals."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("tests", nargs="*", help="tests, in place of SilentBench's programs")
    parser.add_argument("--case", default="", help="programs whose name holds this text")
    parser.add_argument("--save", type=Path, help="file of the rows")
    parser.add_argument("--seconds", type=float, default=900.0, help="of a processor, of one command")
    chosen = parser.parse_args()
    lines = chosen.save.read_text().splitlines() if chosen.save is not None and chosen.save.exists() else []
    rows: dict[str, Row] = {str(row["name"]): row for row in map(json.loads, lines)}
    shown = []
    for name, test, backends in asked([str(Path(test).resolve()) for test in chosen.tests]):
        if chosen.case not in name:
            continue
        if name not in rows:
            rows[name] = {"name": name, **scripted(test, backends, chosen.seconds)}
            if chosen.save is not None:
                with chosen.save.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(rows[name]) + "\n")
        shown.append(rows[name])
        print(said_of(name, rows[name]), flush=True)
    good = sum(bool(row["good"]) for row in shown)
    spent = statistics.median([int(str(row.get("processor", 0))) for row in shown] or [0])
    words = (
        f"{good} of {len(shown)} became scripts of at most {LINES} operators or lines that fail {PROOFS} of {PROOFS}"
    )
    print(f"{words} times and are 1-minimal; CPU seconds: median {spent:.0f}")
    return 0 if good == len(shown) else 1


if __name__ == "__main__":
    sys.exit(main())
