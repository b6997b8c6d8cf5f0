"""After the run: failures are minimized, each by `repro-minify` in a process of its own."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
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
    """The result for one failure: the test as a user would name it, and one sentence.

    cause: what failures with the same fault have in common, empty when unknown.  alike: further tests that have it.
    """

    test: str
    sentence: str
    good: bool
    cause: str = ""
    alike: tuple[str, ...] = ()

    def line(self) -> str:
        """Return what is told of it."""
        more = f" (the cause of {len(self.alike)} more: {', '.join(self.alike[:3])}" if self.alike else ""
        return f"{self.test}: {self.sentence}{more}{', ...' * (len(self.alike) > 3)}{')' * bool(more)}"


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
    """Yield each fault when it is known; scripts go to `.plumbline/repros` under the root.

    A fault that one failure shows is switched off in the others: those that pass without it have the same cause, and
    are not minimized again.  `auto` stops after a few faults.
    """
    left = failures_to_minify(cases, "always")
    for _ in range(len(left) if mode == "always" else FEW):
        if not left:
            return
        case = left.pop(0)
        found = _minified(case, root)
        alike = mended_by(found.cause, [each for each in left if each.column == case.column], root)
        if not found.cause and mode != "always":
            place = case.user_file, case.user_line
            alike = [each for each in left if (each.user_file, each.user_line) == place]
        left = [each for each in left if each not in alike]
        yield replace(found, alike=tuple(_named(each) for each in alike))


def _named(case: CaseRow) -> str:
    return f"{case.test} [{case.column}]"


def _minified(case: CaseRow, root: Path) -> Minified:
    script = root / FOLDER / f"repro_{_file_name(case)}.py"
    command = [sys.executable, "-c", _COMMAND, case.test, "--compiler", case.compiler, "--backend", case.backend]
    script.parent.mkdir(parents=True, exist_ok=True)
    done = _ended([*command, "--out", str(script), "--seconds", str(REDUCING_SECONDS), "--json"], root)
    if done is None:
        return Minified(_named(case), f"not minimized within {SECONDS:.0f} s; run repro-minify by hand", good=False)
    return Minified(_named(case), *_outcome(done.stdout, done.stderr))


def _ended(command: Sequence[str], root: Path, **variables: str) -> subprocess.CompletedProcess[str] | None:
    """Run a command to its end, with more environment variables; None where it takes too long."""
    try:
        return subprocess.run(
            command,
            cwd=root,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
            stdin=subprocess.DEVNULL,
            env={**os.environ, **variables},
        )
    except subprocess.TimeoutExpired:
        return None


def mended_by(rule: str, cases: Sequence[CaseRow], root: Path) -> list[CaseRow]:
    """Return the cases, all of one compiler and backend, that pass where the guilty rule is switched off.

    rule: a value of plumbline's option `bisect`; of another cause nothing can be asked.
    """
    if not cases or ":@" not in rule or cases[0].compiler != "plumbline":
        return []
    command = [sys.executable, "-m", "pytest", *(case.test for case in cases), "-q", "-rp", "--tb=no"]
    variant = [f"--compile-backends={cases[0].backend}", "--compile-compilers=plumbline", "--compile-minify=off"]
    done = _ended([*command, *variant, "-p", "no:cacheprovider"], root, PLUMBLINE_BISECT=rule)
    if done is None:
        return []
    passed = [line.rstrip() for line in done.stdout.splitlines() if line.startswith("PASSED ")]
    return [case for case in cases if any(line.endswith(f" {_with_variant(case)}") for line in passed)]


def _with_variant(case: CaseRow) -> str:
    """Return the id under which pytest runs a case: its own parameters, then the backend."""
    head, bracket, rest = case.test.partition("[")
    return f"{head}[{rest.removesuffix(']')}-{case.column}]" if bracket else f"{head}[{case.column}]"


def _outcome(stdout: str, stderr: str) -> tuple[str, bool, str]:
    """Return the sentence of the command's last line, whether a script was written, and the cause."""
    try:
        answer = json.loads(stdout.strip().splitlines()[-1])
    except (IndexError, ValueError):
        lines = stderr.strip().splitlines()
        return (lines[-1] if lines else "repro-minify printed nothing"), False, ""
    return str(answer["sentence"]), bool(answer["reproduces"]), str(answer.get("cause", ""))


def _file_name(case: CaseRow) -> str:
    name = case.test.split("::")[-1]
    return re.sub(r"[^A-Za-z0-9_]+", "_", f"{name}_{case.compiler}_{case.backend}").strip("_")
