"""A script or test bisected: run to its first failing call, and that call, or the whole program, asked again."""

import contextlib
import re
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from plumbline.compiler.base.errors import UserError

from ..cases.case_run import run_node, run_script
from ..cases.failing_calls import FailingCall, FailureSession
from ..sandbox import in_child
from .bisected_cases import CallFailure, InChild, ProgramFailure
from .culprit import Culprit, culprit_of


@dataclass(frozen=True, slots=True, kw_only=True)
class BisectOptions:
    """How to bisect.

    folder: for `before` and `after`.  budget: the most runs.  isolated: each run in a child process, which may die.
    whole: run the whole program for each answer, not its failing call alone.
    """

    folder: Path
    budget: int = 200
    isolated: bool = False
    whole: bool = False


def bisect_call(
    call: FailingCall, options: BisectOptions, progress: Callable[[str], None] = lambda _: None
) -> Culprit | None:
    """Return the culprit of a failing call; None where the call does not fail by itself."""
    case = CallFailure(call)
    asked = InChild(case) if options.isolated else case
    try:
        return culprit_of(asked, options.folder, budget=options.budget, progress=progress)
    finally:
        call.before.rewind()


def bisect_program(
    case: str, backend: str, options: BisectOptions, progress: Callable[[str], None] = lambda _: None
) -> Culprit:
    """Return the culprit of the first failing call of a script or test under plumbline.

    Raises UserError where nothing fails, or no longer does.
    """
    first: list[FailingCall] = []
    culprits: list[Culprit | None] = []

    def on_failure(call: FailingCall) -> None:
        first.append(call)
        progress(f"{call.label}: {call.verdict.kind.value}: {call.verdict.sentence}")
        culprits.append(None if options.whole else bisect_call(call, options, progress))

    session = FailureSession("plumbline", backend, on_failure, isolated=options.isolated)
    (run_node if "::" in case else run_script)(case, session)
    if session.trouble is not None:
        raise session.trouble
    if not first:
        raise UserError(f"nothing to bisect: {session.what_happened()}", where=case, hint="give a case that fails")
    culprit = culprits[0]
    if culprit is None:
        progress("asking the whole program" if options.whole else "the call alone does not fail: the whole program")
        failure = InChild(ProgramFailure(case, "plumbline", backend, first[0].verdict))
        culprit = culprit_of(failure, options.folder, budget=options.budget, progress=progress)
    if culprit is None:
        hint = "it may depend on what ran before it in its process; run it alone"
        raise UserError("the failure does not come again", where=case, hint=hint)
    return culprit


FEW_QUESTIONS = 60
"""Of a reduced program, whose applications are few."""


def culprit_of_text(text: str, backend: str, seconds: float) -> str:
    """Return a sentence on what plumbline does wrong to a program of a few lines; empty where it is not found.

    It is asked in a child of this process.  seconds: that this may take.  No line is named, for the program is given
    as text.
    """
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "program.py")
        file.write_text(text, encoding="utf-8")
        options = BisectOptions(folder=Path(folder, "culprit"), budget=FEW_QUESTIONS)
        with contextlib.suppress(RuntimeError):  # no failing call in this process, or not again
            found = in_child(lambda: bisect_program(str(file), backend, options).sentence, seconds)
            return re.sub(rf", from {re.escape(str(file))}:\d+", "", found.value or "")
    return ""
