"""A failing program as a script that stands alone: its text, its history, and a comparison for the exit status."""

from plumbline.oracle.harness.known_compilers import find_compiler
from plumbline.oracle.verdict import Verdict

from .python_program import PythonProgram
from .python_trial import try_python_program


def python_program_script(program: PythonProgram, compiler: str, backend: str, verdict: Verdict) -> str:
    """Return a script that exits with 1 while the compiler and plain Python differ, whatever both raise or print."""
    quoted = program.module.strip().replace("\\", "\\\\").replace("'''", "\\'\\'\\'")
    lines = [
        f"# Found by plumbline fuzz programs: {' '.join(verdict.sentence.split())[:300]}",
        "import sys",
        "from plumbline.fuzz.python_programs.script import compare",
        f"MODULE = '''\n{quoted}\n'''",
        f"HISTORY = {list(program.history)!r}",
        f"sys.exit(compare(MODULE, HISTORY, {compiler!r}, {backend!r}) or 0)",
    ]
    return "\n".join(lines) + "\n"


def compare(module: str, history: list[str], compiler: str, backend: str) -> str:
    """Play a program in plain Python and compiled, and return the first difference in words, empty without one."""
    trial = try_python_program(PythonProgram(module, tuple(history)), find_compiler(compiler, backend), backend)
    return trial.verdict.sentence if trial.signature is not None else ""
