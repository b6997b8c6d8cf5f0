"""Stock's accuracy minifier beside `repro-minify`, on twelve silent faults of stock `torch.compile`.

    python benchmarks/minifiers_side_by_side.py [--only TEXT] [--save FILE] [--table] [--seconds S] [--deep]

The cases are chosen by a rule: the programs of SilentBench that are silently wrong under the installed torch, that
capture is not to blame for and whose values differ (stock's minifier sees graphs and their values, nothing else); one
of each class in turn, in the order of the data, until there are twelve.  `--deep` puts a small network before and
behind what is wrong, which has to be cut away.

stock: the program is run with TORCHDYNAMO_REPRO_LEVEL=4 and TORCHDYNAMO_REPRO_AFTER=dynamo, and again with aot; the
launcher that it leaves is run; the repro.py that this leaves is run in fresh processes and has to raise
AccuracyError in each.  ours: `repro-minify --compiler torch`; its script has to exit with 1 in as many fresh processes.
Times are CPU seconds of all processes up to the script, without those fresh ones; a command that takes more than
`--seconds` of them is ended.
"""

import argparse
import ast
import itertools
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path

import torch

from plumbline.fuzz.silent_bench.bench_cases import BenchCase, Status, bench_cases

CASES = 12
PROOFS = 2
SEEN = ("values", "output", "argument", "mutations")
Row = dict[str, object]

_PASSED = "which is likely an unrelated issue"
"""What stock logs when a comparison raises; it then counts the graph as right: `passed over`."""

DEEP = '''
_compile = torch.compile


def _around(target, **how):
    """Compile the target between layers that have no part in what is wrong."""
    before, after = torch.nn.Linear(8, 8), torch.nn.Linear(8, 8)

    def network(*args, **kwargs):
        noise = torch.ones(4, 8)
        for _ in range(6):
            noise = torch.nn.functional.gelu(before(noise)) + noise
        found = target(*args, **kwargs)
        for _ in range(6):
            noise = torch.nn.functional.layer_norm(after(noise).tanh(), (8,))
        return found, noise

    torch.manual_seed(0)
    return _compile(network, **how)


torch.compile = _around
'''


def chosen_cases() -> list[BenchCase]:
    """Return the cases of the rule above."""
    classes: dict[str, list[BenchCase]] = defaultdict(list)
    for case in bench_cases():
        live = case.status("torch", torch.__version__) is Status.LIVE
        if live and case.wrong_at != "eager" and case.seen_in in SEEN:
            classes[case.fault].append(case)
    rounds = itertools.chain.from_iterable(itertools.zip_longest(*classes.values()))
    return [case for case in rounds if case is not None][:CASES]


def program_text(case: BenchCase, deep: bool) -> str:
    """Return the case as a script."""
    text = case.file.read_text(encoding="utf-8")
    return f"{text}\n{DEEP * deep}\n\nif __name__ == '__main__':\n    {case.test}()\n"


class Shell:
    """Runs commands in a folder with caches of its own, and counts their processor seconds."""

    def __init__(self, folder: Path, seconds: float) -> None:
        self.folder = folder
        self.left = seconds  # of each of its commands
        self.environment = {
            name: value for name, value in os.environ.items() if not name.startswith(("TORCHDYNAMO", "TORCHINDUCTOR"))
        }
        self.environment |= {
            "TORCHINDUCTOR_CACHE_DIR": str(folder / "inductor"),
            "TORCHINDUCTOR_COMPILE_THREADS": "1",
            "TORCH_COMPILE_DEBUG_DIR": str(folder / "debug"),
            "PLUMBLINE_CACHE_DIRECTORY": str(folder / "plumbline"),
            "OMP_NUM_THREADS": "1",
        }

    def run(self, command: Sequence[str], **more: str) -> tuple[int, str]:
        """Return (exit status, output); the status is -1 for a command that uses up the time."""
        environment = self.environment | more
        with tempfile.TemporaryFile("w+") as output:
            child = subprocess.Popen(
                command, cwd=self.folder, env=environment, stdout=output, stderr=output, start_new_session=True
            )
            while child.poll() is None and _processor_seconds(child.pid) < self.left:
                time.sleep(0.5)
            if child.poll() is None:
                os.killpg(child.pid, 9)
                child.wait()
                return -1, ""
            output.seek(0)
            return child.returncode, output.read()


def _processor_seconds(process: int) -> float:
    """Return the processor seconds of a process and of the children that it has waited for."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")


def counted(work: Callable[[], str]) -> tuple[str, float]:
    """Return (what work returns, processor seconds of the children it waited for)."""
    before = os.times()
    said = work()
    after = os.times()
    spent = after.children_user + after.children_system - before.children_user - before.children_system
    return said, spent


def stock_row(case: BenchCase, after: str, deep: bool, seconds: float) -> Row:
    """Return what stock's minifier makes of a case."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "case.py").write_text(program_text(case, deep))
        shell = Shell(folder, seconds)
        said, spent = counted(lambda: _stock_script(shell, after))
        repro = folder / "repro.py"
        row: Row = {"said": said, "processor": spent, "good": False}
        if said:
            return row
        text = repro.read_text()
        runs = [Shell(folder, seconds).run([sys.executable, "repro.py"]) for _ in range(PROOFS)]
        shown = sum(status != 0 and "AccuracyError" in output for status, output in runs)
        elements = sum(_product(shape) for shape in re.findall(r"reader\.tensor\(\w+, \(([^)]*)\)", text))
        row |= {"operators": operators(text), "elements": elements, "text": text}
        if shown == PROOFS:
            return row | {"good": True}
        return row | {"said": f"the script reproduces {shown} of {PROOFS} times", "last": runs[-1][1][-600:]}


def _stock_script(shell: Shell, after: str) -> str:
    """Leave repro.py in the shell's folder, or say why there is none."""
    asked = {"TORCHDYNAMO_REPRO_AFTER": after, "TORCHDYNAMO_REPRO_LEVEL": "4"}
    status, output = shell.run([sys.executable, "case.py"], **asked)
    launchers = sorted(shell.folder.glob("debug/**/minifier_launcher.py"))
    if not launchers:
        if status == -1:
            return "out of time"
        if status:
            return f"no launcher: {_last_line(output)}"
        return "passed over" if _PASSED in output else "not seen"
    status, output = shell.run([sys.executable, str(launchers[0])])
    if not (shell.folder / "repro.py").exists():
        return "out of time" if status == -1 else f"no script: {_last_line(output)}"
    return "" if status != -1 else "out of time"


def our_row(case: BenchCase, deep: bool, seconds: float) -> Row:
    """Return what `repro-minify` makes of a case."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "case.py").write_text(program_text(case, deep))
        shell = Shell(folder, seconds)
        backend = "aot_eager" if case.wrong_at == "aot_eager" else "inductor"
        command = [sys.executable, "-m", "plumbline.minifier.command_minify", "case.py", "--json", "--proofs", "1"]
        command += ["--compiler", "torch", "--backend", backend, "--out", "repro.py"]
        answer: list[str] = []

        def work() -> str:
            status, output = shell.run(command)
            answer.append(output)
            return "" if status == 0 else "out of time" if status == -1 else _last_line(output)

        said, spent = counted(work)
        row: Row = {"said": said, "processor": spent, "good": False}
        if said:
            return row
        found = next(json.loads(line) for line in answer[0].splitlines() if line.startswith("{"))
        text = (folder / "repro.py").read_text()
        runs = [Shell(folder, seconds).run([sys.executable, "repro.py"])[0] for _ in range(PROOFS)]
        row |= {
            found["unit"]: found["ops"],
            "text": text,
            "minimal": "1-minimal:  yes" in text.replace(":   y", ":  y"),
        }
        if found["unit"] == "operators":
            shapes = re.findall(r"^    # \w+: \w+\[([^\]]*)\]", text, re.MULTILINE)
            row["elements"] = sum(map(_product, shapes))
        shown = runs.count(1)
        return row | {"good": shown == PROOFS, "said": "" if shown == PROOFS else f"{shown} of {PROOFS} times"}


def _product(shape: str) -> int:
    found = 1
    for size in filter(None, shape.replace(" ", "").split(",")):
        found *= int(size)
    return found


def _last_line(output: str) -> str:
    lines = [
        line.strip() for line in output.splitlines() if re.match(r"[\w.]*(Error|Exception|Failure)\b|repro-min", line)
    ]
    return (lines or output.strip().splitlines() or [""])[-1][:160]


def operators(text: str) -> int:
    """Return how many statements of the `forward` in a script of stock's call something."""
    forwards = [
        node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.FunctionDef) and node.name == "forward"
    ]
    return sum(any(isinstance(part, ast.Call) for part in ast.walk(line)) for line in forwards[0].body)


ASKED: dict[str, Callable[[BenchCase, bool, float], Row]] = {
    "stock, dynamo": lambda case, deep, seconds: stock_row(case, "dynamo", deep, seconds),
    "stock, aot": lambda case, deep, seconds: stock_row(case, "aot", deep, seconds),
    "repro-minify": our_row,
}


def words(row: Row) -> str:
    """Return one cell of the table."""
    size = f"{row['lines']} lines" if "lines" in row else f"{row.get('operators')} op., {row.get('elements')} el."
    said = str(row["said"]).replace("|", "/")
    return f"{size if row['good'] else said}; {row['processor']:.0f} s"


def table(rows: dict[str, Row]) -> str:
    """Return the Markdown table and the totals."""
    names = list(dict.fromkeys(key.split("; ")[0] for key in rows))
    lines = [f"| program | {' | '.join(ASKED)} |", f"|---|{'---|' * len(ASKED)}"]
    for name in names:
        cells = [words(rows[f"{name}; {tool}"]) if f"{name}; {tool}" in rows else "" for tool in ASKED]
        lines.append(f"| `{name}` | {' | '.join(cells)} |")
    totals = []
    for tool in ASKED:
        own = [row for key, row in rows.items() if key.endswith(f"; {tool}")]
        spent = sorted(float(str(row["processor"])) for row in own)
        middle = f", median {spent[len(spent) // 2]:.0f} s of CPU, {sum(spent):.0f} in all" if spent else ""
        totals.append(f"{tool}: {sum(bool(row['good']) for row in own)} of {len(own)} scripts reproduce{middle}")
    return "\n".join([*lines, "", *totals])


def main() -> int:
    """Run what the arguments choose."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", default="", help="cases whose name holds this text")
    parser.add_argument("--save", type=Path, help="file of the rows; what it has is not done again")
    parser.add_argument("--table", action="store_true", help="print what is saved, and do nothing")
    parser.add_argument("--seconds", type=float, default=240.0, help="of a processor, of one command")
    parser.add_argument("--deep", action="store_true", help="layers around what is wrong")
    chosen = parser.parse_args()
    lines = chosen.save.read_text().splitlines() if chosen.save is not None and chosen.save.exists() else []
    kept = {str(row["key"]): row for row in map(json.loads, lines)}
    rows: dict[str, Row] = {}
    for case in chosen_cases():
        for tool, ask in ASKED.items():
            key = f"{case.name}{' (deep)' * chosen.deep}; {tool}"
            if chosen.only not in case.name or (chosen.table and key not in kept):
                continue
            if key not in kept:
                kept[key] = {"key": key, **ask(case, chosen.deep, chosen.seconds)}
                print(f"{key:64} {words(kept[key])}", file=sys.stderr, flush=True)
                if chosen.save is not None:
                    with chosen.save.open("a") as file:
                        file.write(json.dumps(kept[key]) + "\n")
            rows[key] = kept[key]
    print(table(rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())
