"""One case under the judge: its program, run as a test would be, with every call of what it compiled judged."""

import contextlib
import importlib.util
import io
import sys
from collections.abc import Callable

from plumbline.compiler.base.errors import UserError
from plumbline.oracle.harness.session import JudgeSession
from plumbline.oracle.state.scope import seed_everything
from plumbline.oracle.verdict import Verdict, VerdictKind

from ..findings import TrialResult, signature_of
from .bench_cases import BenchCase

SEED = 0


def judged_case(case: BenchCase, compiler: str, backend: str) -> TrialResult:
    """Return the most serious verdict of a case's calls; its details say how the program itself ended.

    The details have `ended`, the program's own exception in words or "", and `calls`, how many were judged.
    """
    program = program_of(case)
    session = JudgeSession(compiler=compiler, backend=backend, boundary="explicit")
    seed_everything(SEED)
    ended = ""
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        try:
            with session:
                program()
        except Exception as error:  # the program's own, or what the compiler raised in it
            ended = f"{type(error).__name__}: {error}".splitlines()[0][:200]
    verdicts = [call.verdict for call in session.calls]
    verdict = max(verdicts, key=lambda one: one.kind.weight, default=Verdict(VerdictKind.VACUOUS, "no call was judged"))
    first = next((one for one in verdicts if one.failed), verdict)
    details = {"ended": ended, "calls": len(verdicts)}
    return TrialResult(first, signature_of(first, (case.name,)), details=details)


_HINT = "each entry of fuzz/silent_bench/cases.toml names a function of its class's file"


def program_of(case: BenchCase) -> Callable[[], object]:
    """Return the function of a case, from a fresh copy of its module: no case meets what another one left there.

    Raises UserError if the file has no such function.
    """
    name = f"silent_bench_{case.fault}"
    spec = importlib.util.spec_from_file_location(name, case.file)
    if spec is None or spec.loader is None or not case.file.is_file():
        raise UserError(f"the program of {case.name} is missing", where=str(case.file), hint=_HINT)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # a compiler may look the module up by its name
    spec.loader.exec_module(module)
    program: Callable[[], object] | None = getattr(module, case.test, None)
    if program is None:
        raise UserError(f"the program {case.test} is missing", where=str(case.file), hint=_HINT)
    return program
