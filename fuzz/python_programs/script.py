"""A failing program as a script that stands alone: its text, its history, and a comparison that sets the exit status."""

import sys

from plumbline.oracle.harness.known_compilers import find_compiler
from plumbline.oracle.verdict import Verdict

from .program_trial import try_python_program
from .programs import PythonProgram


def python_program_script(program: PythonProgram, compiler: str, backend: str, verdict: Verdict) -> str:
    """Return a script that exits with 1 while the compiler and plain Python differ, whatever either raises or prints."""
    quoted = program.module.strip().replace("\\", "\\\\").replace("'''", "\\'\\'\\'")
    lines = [
        f"# Found by plumbline fuzz programs: {' '.join(verdict.sentence.split())[:300]}",
        "from plumbline.fuzz.python_programs.script import compare",
        "",
        f"MODULE = '''\n{quoted}\n'''",
        f"HISTORY = {list(program.history)!r}",
        f"compare(MODULE, HISTORY, {compiler!r}, {backend!r})",
    ]
    return "\n".join(lines) + "\n"


def compare(module: str, history: list[str], compiler: str, backend: str) -> None:
    """Play a program in plain Python and compiled, print the first difference, and exit with 1 if there is one."""
    trial = try_python_program(PythonProgram(module, tuple(history)), find_compiler(compiler, backend), backend)
    print(trial.verdict.sentence)
    sys.exit(int(trial.signature is not None))
