"""A failing program as a script: plain Python where that shows the failure, else one that asks the fuzzer to compare.

A plain script imports nothing of the fuzzer. Whether it shows the failure is tried, in a fresh process: it has to fail
with the compiler, and to pass where nothing is compiled.
"""

import ast
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from plumbline.oracle.harness.known_compilers import find_compiler
from plumbline.oracle.verdict import Verdict

from .python_program import CALL, PythonProgram
from .python_trial import try_python_program

SECONDS = 120.0  # for one run of a script; most take a few
_COMPILERS = {"plumbline": ("plumbline", "plumbline.compile"), "torch": ("torch", "torch.compile")}
_GIVEN = {
    "disable": "from plumbline import disable",
    "graph_break": "from plumbline import graph_break",
    "reference": "from weakref import ref as reference",
}
_OF_THE_FUZZER = frozenset({"compiled", "shallow_disable"})  # what a program may use and a plain script has not
_GLOBAL = re.compile(r"^state of (?:call \d+|the end)[^)]*\)+\.([A-Za-z_]\w*)")


def python_program_script(program: PythonProgram, compiler: str, backend: str, verdict: Verdict) -> str:
    """Return a script that exits with 1 while the compiler and plain Python differ, whatever both raise or print."""
    for plain in plain_scripts(program, compiler, backend, verdict):
        if _shows(plain, compiler):
            return plain
    quoted = _quoted(program.module)
    lines = [
        _said(verdict),
        "import sys",
        "from plumbline.fuzz.python_programs.script import compare",
        f"MODULE = '''\n{quoted}\n'''",
        f"HISTORY = {list(program.history)!r}",
        f"sys.exit(compare(MODULE, HISTORY, {compiler!r}, {backend!r}) or 0)",
    ]
    return "\n".join(lines) + "\n"


def plain_scripts(program: PythonProgram, compiler: str, backend: str, verdict: Verdict) -> Iterator[str]:
    """Return scripts without the fuzzer that may show the failure, the shortest first."""
    aspect = verdict.findings[0].aspect if verdict.findings else ""
    used = {node.id for node in ast.walk(ast.parse(program.module)) if isinstance(node, ast.Name)}
    if compiler not in _COMPILERS or used & _OF_THE_FUZZER:
        return
    module = "\n".join([*(line for name, line in _GIVEN.items() if name in used), program.module.strip()])
    calls = [text.partition(" = ")[2] for text in program.history if CALL in text]
    only_calls = len(calls) == len(program.history)
    if only_calls and aspect in ("result", "internal error"):
        yield from (_direct(module, calls[-count:], compiler, backend, verdict) for count in {1, len(calls)})
    place = _GLOBAL.match(verdict.sentence)
    observed = {
        "result": "outcome",
        "internal error": "outcome",
        "printed text": "printed.getvalue()",
        "warnings": "[str(one.message) for one in warned]",
        "random numbers": "(torch.rand(1), random.random())",
        "state": f"names[{place.group(1)!r}]" if place is not None else "",
    }.get(aspect)
    if observed:
        yield _apart(module, program.history, observed, compiler, backend, verdict)


def _direct(module: str, calls: list[str], compiler: str, backend: str, verdict: Verdict) -> str:
    """Return a script that calls `step` as it is, then compiled, in one namespace."""
    package, compile_call = _COMPILERS[compiler]
    *before, last = [call.partition("step(")[2].rpartition(")")[0] for call in calls]
    lines = [
        _said(verdict),
        *dict.fromkeys(["import torch", f"import {package}"]),
        module,
        "def outcome(step):",
        "    try:",
        *(f"        step({arguments})" for arguments in before),
        f"        return repr(step({last}))",
        "    except Exception as error:",
        "        return repr(error)",
        f"plain, compiled = outcome(step), outcome({compile_call}(step, backend={backend!r}))",
        "print(plain, compiled, sep='\\n')",
        "raise SystemExit(plain != compiled)",
    ]
    return "\n".join(lines) + "\n"


def _apart(module: str, history: tuple[str, ...], observed: str, compiler: str, backend: str, verdict: Verdict) -> str:
    """Return a script that plays the program twice, each time in a namespace of its own."""
    package, compile_call = _COMPILERS[compiler]
    needs_random = "import random" if "random" in observed else ""
    prints, warns = "printed" in observed, "warned" in observed
    lines = [
        _said(verdict),
        *(["import contextlib, io"] if prints else []),
        *(["import warnings"] if warns else []),
        *([needs_random] if needs_random else []),
        *dict.fromkeys(["import torch", f"import {package}"]),
        f"PROGRAM = '''\n{_quoted(module)}\n'''",
        f"HISTORY = {list(history)!r}",
        "def play(wrap):",
        *(["    torch.manual_seed(0), random.seed(0)"] if needs_random else []),
        "    names, outcome = {'torch': torch}, []",
        "    exec(PROGRAM, names)",
        "    names['step'] = wrap(names['step'])",
        *(["    with contextlib.redirect_stdout(io.StringIO()) as printed:"] if prints else []),
        *(
            ["    with warnings.catch_warnings(record=True) as warned:", "        warnings.simplefilter('always')"]
            if warns
            else []
        ),
        *_indented(
            [
                "for statement in HISTORY:",
                "    try:",
                "        exec(statement, names)",
                "        outcome.append(repr(names.get(statement.partition(' = ')[0])))",
                "    except Exception as error:",
                "        outcome.append(repr(error))",
            ],
            8 if prints or warns else 4,
        ),
        f"    return repr({observed})",
        f"plain, compiled = play(lambda step: step), play(lambda step: {compile_call}(step, backend={backend!r}))",
        "print(plain, compiled, sep='\\n')",
        "raise SystemExit(plain != compiled)",
    ]
    return "\n".join(lines) + "\n"


def _indented(lines: list[str], by: int) -> list[str]:
    return [" " * by + line for line in lines]


def _shows(script: str, compiler: str) -> bool:
    """Return whether a script fails as it is, and passes where its calls are not compiled."""
    compile_call = _COMPILERS[compiler][1]
    return (
        _status(script) == 1
        and _status(script.replace(f"{compile_call}(step, ", "(lambda step, **_: step)(step, ")) == 0
    )


def _status(script: str) -> int | None:
    """Return the exit status of a script in a process of its own; None where it does not end."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "script.py"
        file.write_text(script)
        try:
            return subprocess.run([sys.executable, str(file)], capture_output=True, timeout=SECONDS).returncode
        except subprocess.TimeoutExpired:
            return None


def _said(verdict: Verdict) -> str:
    return f"# Found by plumbline fuzz programs: {' '.join(verdict.sentence.split())[:300]}"


def _quoted(text: str) -> str:
    return text.strip().replace("\\", "\\\\").replace("'''", "\\'\\'\\'")


def compare(module: str, history: list[str], compiler: str, backend: str) -> str:
    """Play a program in plain Python and compiled, and return the first difference in words, empty without one."""
    trial = try_python_program(PythonProgram(module, tuple(history)), find_compiler(compiler, backend), backend)
    return trial.verdict.sentence if trial.signature is not None else ""
