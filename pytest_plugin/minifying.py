"""After the run: failures are minimized, each by `repro-minify` in a process of its own."""

import json
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from plumbline.oracle.verdict import VerdictKind
from plumbline.reports.rows import CaseRow

MODES = ("off", "auto", "always")
FEW = 3
"""How many failures `auto` minimizes; a broken compiler fails everywhere, and the first few show how."""
SECONDS = 900.0
REDUCING_SECONDS = 600.0
"""Of those, how long the reduction itself may take; what it has then is proved and written."""
FOLDER = Path(".plumbline") / "repros"
_COMMAND = "from plumbline.minifier.command_minify import main; main()"


@dataclass(frozen=True, slots=True)
class Minified:
    """The result for one failure: the test as a user would name it, and one sentence."""

    test: str
    sentence: str
    good: bool


def failures_to_minify(cases: Sequence[CaseRow], mode: str) -> list[CaseRow]:
    """Return the failing cases worth a script: where the fault begins, each line of the user's once."""
    chosen: dict[tuple[object, ...], CaseRow] = {}
    for case in cases:
        failing = case.outcome == "failed" and case.verdict and VerdictKind(case.verdict).fails
        if failing and case.stage in (None, case.backend):
            place = (case.compiler, case.test) if mode == "always" else (case.user_file, case.user_line)
            chosen.setdefault(place, case)
    failures = list(chosen.values())
    return failures if mode == "always" else failures[:FEW]


def minify(cases: Sequence[CaseRow], mode: str, root: Path) -> Iterator[Minified]:
    """Yield the result of each failure when it is there; scripts go to `.plumbline/repros` under the root."""
    for case in failures_to_minify(cases, mode):
        named = f"{case.test} [{case.column}]"
        script = root / FOLDER / f"repro_{_file_name(case)}.py"
        command = [sys.executable, "-c", _COMMAND, case.test, "--compiler", case.compiler, "--backend", case.backend]
        script.parent.mkdir(parents=True, exist_ok=True)
        try:
            done = subprocess.run(
                [*command, "--out", str(script), "--seconds", str(REDUCING_SECONDS), "--json"],
                cwd=root,
                capture_output=True,
                text=True,
                timeout=SECONDS,
                check=False,
                stdin=subprocess.DEVNULL,
            )
        except subprocess.TimeoutExpired:
            yield Minified(named, f"not minimized within {SECONDS:.0f} s; run repro-minify by hand", good=False)
            continue
        yield Minified(named, *_outcome(done.stdout, done.stderr))


def _outcome(stdout: str, stderr: str) -> tuple[str, bool]:
    """Return the sentence of the command's last line, and whether a script was written."""
    try:
        answer = json.loads(stdout.strip().splitlines()[-1])
    except (IndexError, ValueError):
        lines = stderr.strip().splitlines()
        return (lines[-1] if lines else "repro-minify printed nothing"), False
    return str(answer["sentence"]), bool(answer["reproduces"])


def _file_name(case: CaseRow) -> str:
    name = case.test.split("::")[-1]
    return re.sub(r"[^A-Za-z0-9_]+", "_", f"{name}_{case.compiler}_{case.backend}").strip("_")
