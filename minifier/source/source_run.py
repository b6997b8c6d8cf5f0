"""One run of a candidate program, in a child process: which of its compiled calls fails first, and how."""

import contextlib
import io
import mmap
import resource
import runpy
import sys
import threading
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import FrameType, ModuleType
from typing import Any

import torch

from plumbline.oracle.harness.boundary_function import set_inside
from plumbline.oracle.harness.compilers import Candidate, CompileRequest, CompilerUnderTest, CompileStatistics
from plumbline.oracle.harness.session import JudgeSession
from plumbline.oracle.judge_options import JudgeOptions
from plumbline.oracle.state.scope import seed_everything
from plumbline.oracle.verdict import Finding, Verdict, VerdictKind

from ..cases.failing_calls import FailureFound, options_for
from ..failure_signature import FailureSignature, finding_signature, signature_of
from .child_calls import ChildCall, child_calls
from .inlining import can_be_copied

STORM = "recompiles"
"""Aspect of a program that is compiled again and again until the compiler gives up."""
PROGRAM_NAME = "__program__"
"""`__name__` of a program while it is run here, so that a script can hold its program under a condition on it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceSettings:
    """How candidates are run.

    compiler, backend: under test.  seed: of every random generator.  folder: where the program's own modules are.
    threads: of torch's kernels, None as the machine has them.  seconds: until a run is called a hang.
    memory: bytes that one run may have.  sought: a failure to pass others by for.  trace: note the lines that run.
    children: run what is compiled once, for the calls of its children, and judge nothing.
    gradients: judge them too where no failure is sought.
    warm: the run finds the caches on disk as an equal run before it left them; else they are empty.
    repeat: runs of one candidate, until one fails.  preload: modules that the warm process imports once.
    """

    compiler: str
    backend: str
    seed: int = 0
    folder: str = ""
    threads: int | None = None
    seconds: float = 120.0
    memory: int = 0
    sought: FailureSignature | None = None
    trace: bool = False
    children: bool = False
    gradients: bool = True
    warm: bool = False
    repeat: int = 1
    preload: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RunReport:
    """The result of one run.  signature None: no call fails.

    sentence: what fails, or why nothing does.  own_error: the program fails without any compiler.
    line: of the failing call.  lines: those that ran, where they were traced.  calls: judged.
    imported: modules of installed packages that the run loaded, in their order.
    children: calls of the children of the compiled module, where they were asked for.
    """

    signature: FailureSignature | None
    sentence: str
    own_error: str = ""
    line: int = 0
    lines: frozenset[int] = field(default=frozenset())
    calls: int = 0
    imported: tuple[str, ...] = ()
    children: tuple[ChildCall, ...] = ()


class CompiledMark:
    """One byte that outlives the child: whether it was inside compiled code when it died."""

    def __init__(self) -> None:
        self._byte = mmap.mmap(-1, 1)

    @property
    def compiled(self) -> bool:
        """Return whether compiled code is, or was at the end, running."""
        return self._byte[0] == 1

    @compiled.setter
    def compiled(self, inside: bool) -> None:
        self._byte[0] = int(inside)


class _WatchedCandidate:
    """A compiled program that notes when it runs and what it raises."""

    def __init__(self, inner: Candidate, session: "SourceSession") -> None:
        self.inner, self.session = inner, session

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        self.session.phase.compiled = True
        try:
            return self.inner(*args, **kwargs)
        except Exception as error:
            self.session.raised = error
            raise
        finally:
            self.session.phase.compiled = False

    def statistics(self) -> CompileStatistics:
        """Return what the compiler did."""
        return self.inner.statistics()


class _WatchedCompiler:
    def __init__(self, inner: CompilerUnderTest, session: "SourceSession") -> None:
        self.inner, self.session = inner, session
        self.name, self.backends, self.double_backward = inner.name, inner.backends, inner.double_backward

    def compile(self, target: Callable[..., Any], backend: str, request: CompileRequest, *, rng: str) -> Candidate:
        self.session.phase.compiled = True
        try:
            return _WatchedCandidate(self.inner.compile(target, backend, request, rng=rng), self.session)
        finally:
            self.session.phase.compiled = False

    def reset(self) -> None:
        self.inner.reset()


class SourceSession(JudgeSession):
    """Judges every call of a program, like others or not, and ends it at the first failure that is sought."""

    def __init__(self, settings: SourceSettings, phase: CompiledMark) -> None:
        super().__init__(compiler=settings.compiler, backend=settings.backend, options=_options(settings))
        self.compiler = _WatchedCompiler(self.compiler, self)
        self.settings = settings
        self.phase = phase
        self.raised: BaseException | None = None
        self.found: RunReport | None = None

    def call(
        self, target: Callable[..., Any], request: CompileRequest, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        """Judge one call, whether or not it is like an earlier one."""
        if self.settings.children:
            self._end_with_children(target, args, kwargs)
        for boundary in self._boundaries.values():
            boundary.signatures.clear()
        count = len(self.calls)
        self.raised = None
        try:
            result = super().call(target, request, args, kwargs)
        finally:
            for judged in self.calls[count:]:
                self._note(judged.verdict, judged.user_line)
        internal = self._internal()
        if internal is not None:
            self._end_with(internal)
        return result

    def _end_with_children(self, target: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.inside = True
        set_inside(True)
        children = child_calls(target, args, kwargs) if isinstance(target, torch.nn.Module) else ()
        self.found = RunReport(None, "not judged", children=children)
        raise FailureFound

    def _note(self, verdict: Verdict, line: int) -> None:
        if not verdict.failed:
            return
        found = [finding_signature(one) for one in verdict.findings if _counts(one)]
        own = signature_of(verdict, self.raised)
        signatures = [own, *found] if own is not None else found
        sought = self.settings.sought
        matching = [one for one in signatures if sought is None or sought.matches(one)]
        self._end_with(RunReport((matching or signatures)[0], verdict.sentence, line=line, calls=len(self.calls)))

    def _internal(self) -> RunReport | None:
        """Return a failure that the program does not feel: the compiler broke and went on without compiling."""
        for event in self.statistics().events:
            if event.kind == "internal_error":
                stage, _, error = event.what.removeprefix("internal error in ").partition(": ")
                name = error.partition("(")[0].partition(":")[0].strip()
                signature = FailureSignature(VerdictKind.CRASH.value, "exceptions", f"compile ({stage})", name)
                return RunReport(signature, event.what, calls=len(self.calls))
            if event.kind == "ran_eagerly" and event.what.startswith("limit"):
                signature = FailureSignature(VerdictKind.CRASH.value, STORM)
                return RunReport(signature, event.what, calls=len(self.calls))
        return None

    def _end_with(self, report: RunReport) -> None:
        sought = self.settings.sought
        if sought is None or (report.signature is not None and sought.matches(report.signature)):
            self.found = report
            raise FailureFound
        self.found = self.found or report


def _options(settings: SourceSettings) -> JudgeOptions:
    """Return the options of a judgement that looks for one aspect, or for all."""
    if settings.sought is None:
        return JudgeOptions(gradients=settings.gradients)
    return options_for(settings.sought.aspect)


def _counts(finding: Finding) -> bool:
    return finding.kind.fails and finding.aspect != "exceptions"


def run_source(file: str, settings: SourceSettings, phase: CompiledMark) -> RunReport:
    """Run a program file as `python file` would, each compiled call judged; for a child process.

    What it prints is discarded.  Nothing that it changes is undone.
    """
    if settings.memory:
        resource.setrlimit(resource.RLIMIT_AS, (settings.memory, settings.memory))
    if settings.threads is not None:
        torch.set_num_threads(settings.threads)
    sys.argv, sys.path[:0] = [file], [folder for folder in (settings.folder,) if folder]
    seed_everything(settings.seed)
    session = SourceSession(settings, phase)
    lines: set[int] = set()
    known = frozenset(sys.modules)
    own = ""
    nowhere = io.StringIO()
    try:
        watched = _traced(file, lines) if settings.trace else contextlib.nullcontext()
        with session, contextlib.redirect_stdout(nowhere), contextlib.redirect_stderr(nowhere), watched:
            runpy.run_path(file, run_name=PROGRAM_NAME)
    except FailureFound:
        pass
    except SystemExit as ending:
        own = f"SystemExit: {ending.code}" if ending.code not in (None, 0) else ""
    except BaseException as error:
        own = "".join(traceback.format_exception_only(error)).strip()[:300]
    sentence = f"{len(session.calls)} judged calls, none fails"
    report = session.found or RunReport(None, own or sentence, own, calls=len(session.calls))
    return replace(report, lines=frozenset(lines), imported=_imported(known, settings.folder))


def _imported(known: frozenset[str], folder: str) -> tuple[str, ...]:
    """Return the modules of packages that were loaded since; not those of the program's folder, which may change."""
    names = [name for name in sys.modules if name not in known]
    return tuple(name for name in names if is_of_package(name) and not _is_below(sys.modules[name], folder))


def is_of_package(name: str) -> bool:
    """Return whether a module may be loaded before the program imports it."""
    return can_be_copied(name) or name.startswith("plumbline.testing")


def _is_below(module: ModuleType, folder: str) -> bool:
    """Return whether a module lies in a folder; an environment that lies there too is not meant."""
    file = Path(getattr(module, "__file__", None) or "")
    return bool(folder) and Path(folder) in file.parents and "site-packages" not in file.parts


@contextlib.contextmanager
def _traced(file: str, lines: set[int]) -> Any:
    """Note which lines of a file run."""
    resolved = str(Path(file))

    def local(frame: FrameType, event: str, _argument: object) -> Any:
        lines.add(frame.f_lineno)
        return local

    def trace(frame: FrameType, event: str, _argument: object) -> Any:
        if frame.f_code.co_filename != resolved:
            return None
        lines.add(frame.f_lineno)
        return local

    sys.settrace(trace)
    threading.settrace(trace)
    try:
        yield
    finally:
        sys.settrace(None)
        threading.settrace(None)
