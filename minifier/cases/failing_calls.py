"""The failing call: a session that stops at the first call its judge fails, with the state from before it."""

import contextlib
import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch

from plumbline.oracle.comparison.aspects import aspect_names
from plumbline.oracle.cotangents import differentiable
from plumbline.oracle.harness import interception
from plumbline.oracle.harness.boundary import Boundary, call_roots
from plumbline.oracle.harness.boundary_function import set_inside
from plumbline.oracle.harness.compilers import CompileRequest, CompileStatistics, rungs_below
from plumbline.oracle.harness.known_compilers import find_compiler
from plumbline.oracle.harness.session import JudgeSession, user_frame
from plumbline.oracle.judge import judge_call
from plumbline.oracle.judge_options import JudgeOptions
from plumbline.oracle.runs import CallRuns
from plumbline.oracle.state.run_outcome import RunOutcome
from plumbline.oracle.state.snapshot import Snapshot
from plumbline.oracle.verdict import Finding, Verdict, VerdictKind

from ..sandbox import QUERY_SECONDS, ChildOutcome, in_child, not_longer_than

NO_RETURN = "the call does not return"


class FailureFound(BaseException):
    """Ends the program under test after its first failing call was handled; `except Exception` does not catch it."""


@dataclass(frozen=True, slots=True, eq=False)
class FailingCall:
    """A call that the judge failed, and everything needed to repeat it.

    before: the state that the call started from.  file, line: the user's line that made the call.
    """

    target: Callable[..., Any]
    request: CompileRequest
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    before: Snapshot
    verdict: Verdict
    compiler: str
    backend: str
    label: str = "function"
    file: str = ""
    line: int = 0

    def drive(self, compiled: Callable[..., Any]) -> None:
        """Run a compiled form of the target on this call, forward and, where gradients flow, backward.

        Exceptions are ignored: what was captured until then counts.
        """
        runs = CallRuns(self.before, self.args, self.kwargs, seed=0)
        self.before.rewind()
        with_gradients: list[str] = []

        def noted(outcome: RunOutcome) -> tuple[str, ...]:
            with_gradients.extend(differentiable(outcome))  # asked while the run lives: its results are let go later
            return ()

        if torch.is_grad_enabled():
            runs.full(self.target, noted)
        runs.full(compiled, lambda outcome: with_gradients)

    def judged_with(self, backend: str, *, isolated: bool = False, seconds: float = QUERY_SECONDS) -> Verdict:
        """Judge the same call from the same state with another backend of the same compiler.

        isolated: in a child, which is called a hang after `seconds`.
        """
        options = options_for(self.verdict.worst.aspect if self.verdict.worst is not None else "")

        def judge() -> Verdict:
            self.before.rewind()
            compiler = find_compiler(self.compiler, backend)
            compiler.reset()
            boundary = Boundary(self.target, self.label, self.request, compiler, backend, options)
            judgement = boundary.call(self.args, self.kwargs)
            compiler.reset()
            self.before.rewind()
            assert judgement is not None, "the first call of a boundary is always judged"
            return judgement.verdict

        return verdict_of(in_child(judge, seconds)) if isolated else judge()

    @property
    def hangs(self) -> bool:
        """Return whether the call did not return."""
        return self.verdict.sentence == NO_RETURN

    def first_wrong_backend(self, *, isolated: bool = False, seconds: float = QUERY_SECONDS) -> str:
        """Climb the ladder eager, aot_eager, inductor: the first backend that fails is the guilty stage."""
        for backend in rungs_below(self.backend):
            if self.judged_with(backend, isolated=isolated, seconds=seconds).failed:
                return backend
        return self.backend


def options_for(aspect: str) -> JudgeOptions:
    """Return the options of a judgement that looks for one aspect of a failure; others are not worth their time."""
    if aspect not in aspect_names() or aspect == "exceptions":
        return JudgeOptions()
    return JudgeOptions(ignore=frozenset(aspect_names()) - {aspect, "exceptions"}, gradients=aspect == "gradients")


def verdict_of(outcome: ChildOutcome[Verdict]) -> Verdict:
    """Return the verdict of a child; its death is a verdict too."""
    if outcome.value is not None:
        return outcome.value
    sentence = f"the process died: {outcome.death}" if outcome.death != "hang" else NO_RETURN
    finding = Finding(VerdictKind.CRASH, "exceptions", "exception in the call", sentence)
    return Verdict(VerdictKind.CRASH, sentence, (finding,))


def internal_error(statistics: CompileStatistics) -> Verdict | None:
    """Return a verdict on a compiler that broke and left the call to eager; the program does not feel it."""
    broke = next((event for event in statistics.events if event.kind == "internal_error"), None)
    if broke is None:
        return None
    return Verdict(
        VerdictKind.CRASH,
        broke.what,
        (Finding(VerdictKind.CRASH, "exceptions", "exception in the compiler", broke.what),),
    )


class FailureSession(JudgeSession):
    """A judge session that hands its first failing call to `on_failure` and then ends the program.

    isolated: every judgement happens in a forked child first; the program itself goes on with eager's results.
    seconds: of one judgement, after which this process, a child, ends; 0 for no limit.
    gradients: judge them too; of a large model they take most of the time.
    """

    def __init__(
        self,
        compiler: str,
        backend: str,
        on_failure: Callable[[FailingCall], None],
        *,
        isolated: bool,
        seconds: float = 0.0,
        gradients: bool = True,
    ) -> None:
        super().__init__(compiler=compiler, backend=backend, options=JudgeOptions(gradients=gradients))
        self.on_failure = on_failure
        self.isolated = isolated
        self.seconds = seconds
        self.failure: FailingCall | None = None
        self.trouble: BaseException | None = None
        self.judged = 0
        self.graphs = 0
        self.ops = 0

    def call(
        self, target: Callable[..., Any], request: CompileRequest, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        """Judge one call; handle the first failing one and raise FailureFound."""
        before = Snapshot.take(call_roots(target, "function", args, kwargs))
        if self.isolated:
            return self._call_in_child(target, request, args, kwargs, before)
        count = len(self.calls)
        limit = not_longer_than(self.seconds) if self.seconds else contextlib.nullcontext()
        try:
            with limit:
                return super().call(target, request, args, kwargs)
        finally:
            self.judged += len(self.calls) - count
            failed = next((call for call in self.calls[count:] if call.verdict.failed), None)
            verdict = failed.verdict if failed is not None else internal_error(self.statistics())
            seen = failed or (self.calls[-1] if self.calls else None)
            if verdict is not None and seen is not None and self.failure is None:
                place = seen.boundary, seen.user_file, seen.user_line
                failing = (target, request, args, kwargs, before, verdict)
                self._handle(FailingCall(*failing, self.compiler.name, self.backend, *place))

    def _call_in_child(
        self,
        target: Callable[..., Any],
        request: CompileRequest,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        before: Snapshot,
    ) -> Any:
        def judge() -> Verdict:
            with contextlib.suppress(Exception):  # the verdict holds it
                super(FailureSession, self).call(target, request, args, kwargs)
            verdict = self.calls[-1].verdict
            return verdict if verdict.failed else internal_error(self.statistics()) or verdict

        verdict = verdict_of(in_child(judge, self.seconds or QUERY_SECONDS))
        self.judged += 1
        self.graphs, self.ops = max(self.graphs, verdict.graphs), max(self.ops, verdict.ops)
        if verdict.failed and self.failure is None:
            frame = user_frame()
            file, line = (frame.f_code.co_filename, frame.f_lineno) if frame else ("", 0)
            failing = (target, request, args, kwargs, before, verdict)
            self._handle(FailingCall(*failing, self.compiler.name, self.backend, self._label(target), file, line))
        self.mode = "reference"
        try:
            return super().call(target, request, args, kwargs)
        finally:
            self.mode = "judge"

    def _handle(self, failing: FailingCall) -> None:
        self.failure = failing
        self.inside = True
        set_inside(True)
        interception.watch_modules(False)
        try:
            self.on_failure(failing)
        except Exception as error:
            self.trouble = error
        finally:
            self.inside = False
            set_inside(False)
        raise FailureFound

    def what_happened(self) -> str:
        """Return why there is no failing call, in words for a person."""
        statistics = self.statistics()
        if not self.judged:
            return "it never calls anything compiled"
        if not (statistics.graphs or self.graphs) or not (statistics.ops or self.ops):
            return "nothing in it was compiled"
        return f"{self.judged} judged call{'s' if self.judged > 1 else ''} of compiled code, none fails"


def failing_call(
    target: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    *,
    compiler: str,
    backend: str,
    request: CompileRequest | None = None,
) -> FailingCall | Verdict:
    """Judge one call; return it with the state from before it if it fails, else the verdict."""
    compile_request = request or CompileRequest()
    roots = call_roots(target, "function", args, kwargs)
    before = Snapshot.take(roots)
    under_test = find_compiler(compiler, backend)
    under_test.reset()
    candidate = under_test.compile(target, backend, compile_request, rng="eager")
    verdict = judge_call(target, lambda *a, **k: candidate(*a, **k), args, kwargs, JudgeOptions(), roots).verdict
    under_test.reset()
    before.rewind()
    statistics = candidate.statistics()
    verdict = replace(verdict, graphs=statistics.graphs, ops=statistics.ops)
    if not verdict.failed:
        return verdict
    label = type(target).__name__ if isinstance(target, torch.nn.Module) else getattr(target, "__name__", "function")
    return FailingCall(target, compile_request, args, dict(kwargs), before, verdict, compiler, backend, label)


def place_of(call: FailingCall) -> str:
    """Return `file:line` of a failing call, relative to here where that is shorter; empty when unknown."""
    if not call.file:
        return ""
    try:
        relative = os.path.relpath(call.file)
    except ValueError:  # another drive
        relative = call.file
    return f"{min(relative, call.file, key=len)}:{call.line}"
