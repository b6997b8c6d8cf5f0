"""The script of a reduced program: its certificate, the program, and how it is judged again."""

import ast
import textwrap
from collections.abc import Mapping
from dataclasses import asdict, dataclass

from ..failure_signature import FailureSignature
from ..repro.repro_script import Script, environment_facts
from .source_case import SourceCase
from .source_run import PROGRAM_NAME, RunReport, SourceSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceHistory:
    """Where a program came from and what is known of it, for the script's head.

    origin: the script or test.  tried: single edits by kind, all tried in vain; empty: not minimal.
    culprit: a sentence that names the part of the compiler at fault, when it is known.  proofs: fresh processes
    that showed it, 0 before the proof.
    """

    origin: str
    lines_before: int
    queries: int
    tried: Mapping[str, int]
    conditions: str = ""
    command: str = ""
    stage: str = ""
    culprit: str = ""
    proofs: int = 0


def source_script(
    case: SourceCase,
    report: RunReport,
    signature: FailureSignature,
    settings: SourceSettings,
    history: SourceHistory,
    file_name: str,
) -> Script:
    """Write the script; `file_name` is what it will be called."""
    future, program = _future_imports(case)
    chosen = {
        name: value
        for name, value in asdict(settings).items()
        if name not in ("sought", "trace", "children", "folder", "preload", "memory") and value is not None
    }
    parts = [
        f'"""{source_head(case, report, signature, settings, history, file_name)}"""\n',
        *future,
        "import sys\n",
        f"EXPECTED = {asdict(signature)!r}",
        f"SETTINGS = {chosen!r}\n",
        f"if __name__ == {PROGRAM_NAME!r}:",
        textwrap.indent(program, "    "),
        _ALONE if settings.compiler == "torch" else _JUDGED_ONLY,
        _MAIN,
    ]
    return Script("\n".join(parts), None)


def source_head(
    case: SourceCase,
    report: RunReport,
    signature: FailureSignature,
    settings: SourceSettings,
    history: SourceHistory,
    file_name: str,
) -> str:
    """Return what the script says of itself: the failure, how to run it, and its certificate."""
    count = len(case)
    tried = ", ".join(f"{number} {kind}" for kind, number in history.tried.items() if number)
    minimal = f"yes: each was tried without, and none can go: {tried}" if history.tried else "no: the budget ran out"
    stage = f"first wrong stage {settings.compiler}:{history.stage}" if history.stage else "the stage is not known"
    lines = [
        f"{count} line{'s' if count != 1 else ''} of Python that {settings.compiler}:{settings.backend} gets wrong.",
        "",
        f"{signature.sentence()}",
        f"{report.sentence}",
        *([f"Condition:   {history.conditions}"] if history.conditions else []),
        *([f"Culprit:     {history.culprit}"] if history.culprit else []),
        "",
        f"Run:         python {file_name}    exit status 1: reproduces, 0: fixed, 2: fails in another way, 125: cannot",
        f"             pytest {file_name}    (a strict xfail; works with git bisect run python {file_name}, too)",
        "",
        f"From:        {history.origin}",
        f"Size:        {history.lines_before} -> {count} lines in {history.queries} runs",
        *([f"Reproduces:  {history.proofs}/{history.proofs} in fresh processes"] if history.proofs else []),
        f"1-minimal:   {minimal}",
        "Reference:   eager, run first in the same process; the judge measures differences against float64",
        f"Stage:       {stage}",
        *([f"Made:        {history.command}"] if history.command else []),
        "",
        *environment_facts(),
    ]
    return "\n".join(lines).replace("\\", "\\\\").replace('"""', "'''").rstrip() + "\n"


def _future_imports(case: SourceCase) -> tuple[list[str], str]:
    """Split off `from __future__` imports: they must stand first in the file."""
    tree = case.tree()
    future = [node for node in tree.body if isinstance(node, ast.ImportFrom) and node.module == "__future__"]
    tree.body = [node for node in tree.body if node not in future] or [ast.Pass()]
    return [ast.unparse(node) for node in future], ast.unparse(tree) + "\n"


_JUDGED_ONLY = '''
def judged():
    """Return (exit status, sentence) of the judge."""
    try:
        from plumbline.minifier.source.script_replay import replay
    except ImportError as error:
        return 125, f"cannot test: {error}; install plumbline, which is the compiler at fault"
    return replay(__file__, EXPECTED, SETTINGS)
'''

_ALONE = '''
def judged():
    """Return (exit status, sentence): of the judge, or without plumbline of torch alone."""
    try:
        from plumbline.minifier.source.script_replay import replay
    except ImportError:
        return alone()
    return replay(__file__, EXPECTED, SETTINGS)


def alone():
    """Compare what compiled calls give with what they give when nothing is compiled, with torch alone."""
    import runpy
    import torch

    def results(compiles):
        seen, stock, call = [], torch.compile, torch.nn.Module.__call__

        def noted(function, *args, **kwargs):
            try:
                seen.append(function(*args, **kwargs))
            except Exception as error:
                seen.append(error)
                raise
            return seen[-1]

        def compile(model=None, **options):
            if model is None:
                return lambda model: compile(model, **options)
            program = stock(model, **{**options, "backend": SETTINGS["backend"]}) if compiles else model
            return lambda *args, **kwargs: noted(program, *args, **kwargs)

        def outermost(module, *args, **kwargs):
            torch.nn.Module.__call__ = call
            try:
                program = stock(module, backend=SETTINGS["backend"]) if compiles else module
                return noted(program, *args, **kwargs)
            finally:
                torch.nn.Module.__call__ = outermost

        torch.manual_seed(SETTINGS["seed"])
        torch.compile = compile
        if not USES_COMPILE:
            torch.nn.Module.__call__ = outermost
        try:
            runpy.run_path(__file__, run_name="__program__")
        except Exception as error:
            seen.append(error)
        finally:
            torch.compile, torch.nn.Module.__call__ = stock, call
        return seen

    eager, compiled = results(False), results(True)
    for expected, found in zip(eager, compiled):
        if isinstance(found, Exception) or isinstance(expected, Exception):
            if type(found) is not type(expected):
                return 1, f"reproduces: eager gives {expected!r:.200}, compiled {found!r:.200}"
            continue
        try:
            torch.testing.assert_close(found, expected, equal_nan=True)
        except AssertionError as error:
            return 1, f"reproduces: {str(error).splitlines()[0]} {str(error).splitlines()[-1]}"
        except Exception:
            continue
    return 0, "does not reproduce with torch alone; install plumbline, which judges gradients, effects and rounding too"


with open(__file__) as this:
    USES_COMPILE = "torch.compile(" in this.read().split("def judged")[0]
'''

_MAIN = '''

def test_repro():
    """Strict xfail: turns red on the day this is fixed (and when it fails in another way)."""
    status, sentence = judged()
    if status == 125:
        pytest.skip(sentence)
    if status == 2:
        raise RuntimeError(sentence)
    assert status == 0, sentence


if __name__ != "__program__":
    try:
        import pytest
    except ImportError:
        pass
    else:
        test_repro = pytest.mark.xfail(strict=True, raises=AssertionError, reason=EXPECTED["aspect"])(test_repro)

if __name__ == "__main__":
    status, sentence = judged()
    print(sentence)
    sys.exit(status)
'''
