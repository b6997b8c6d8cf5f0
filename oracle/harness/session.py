"""A session: judges the calls of every boundary that one test body makes on its thread, and collects the verdicts."""

import contextlib
import logging
import sys
import threading
from collections.abc import Callable, Iterable
from dataclasses import replace
from types import FrameType, FunctionType, TracebackType
from typing import Any, Protocol, Self

import torch

from plumbline.compiler.base.errors import UserError

from ..judge import Judgement
from ..judge_options import BOUNDARIES, JudgeOptions
from ..state.kinds import is_library_file, is_library_module
from . import interception
from .boundary import Boundary, JudgedCall, call_roots
from .boundary_function import boundary_function, set_inside
from .compilers import CompileRequest, CompilerUnderTest, CompileStatistics
from .known_compilers import find_compiler
from .mutants import CompilerFault, MutantCompiler
from .outside_operations import OutsideOperations
from .targets import Target, find_target

# Stock writes its structured trace to this logger; a test runner's handlers would show it under every failing test.
_TRACE_LOG = logging.getLogger("torch.__trace")


class Preparation(Protocol):
    """Gives functions of a test runner's files the code that their author wrote, for as long as a session judges."""

    def __call__(self, functions: Iterable[FunctionType]) -> bool:
        """Prepare what a call reaches; return whether any function had other code."""

    def undo(self) -> None:
        """Take everything back."""


class JudgeSession:
    """Judges what runs between `__enter__` and `__exit__` on the entering thread.

    mode "judge": boundaries run compiled and are judged; "reference": boundaries run eager and nothing is judged;
    "compiled": boundaries run compiled and nothing is judged.
    keep_frames: keep the user's frame of failing calls, for a debugger.
    preparation: called with the functions that calls reach, so that a test runner can undo its own rewriting.
    boundary: kinds of calls to judge, some of BOUNDARIES joined by commas.
    request: what is asked of the compiler where the program asks for nothing itself.
    counts_outside: count the operations that run outside every boundary; set before the session is entered.
    """

    def __init__(
        self,
        *,
        compiler: str,
        backend: str,
        boundary: str = "module",
        options: JudgeOptions | None = None,
        targets: tuple[str, ...] = (),
        request: CompileRequest | None = None,
    ) -> None:
        self.kinds = frozenset(boundary.split(","))
        for kind in self.kinds - frozenset(BOUNDARIES):
            raise UserError(f"unknown boundary {kind!r}", hint=f"choose from {', '.join(BOUNDARIES)}")
        self.compiler: CompilerUnderTest = find_compiler(compiler, backend)
        self.backend = backend
        self.request = request or CompileRequest()
        self.takes_modules = bool(self.kinds & {"auto", "module"})
        self.learned = False  # set by who stands at the call sites: another run of the body would judge more
        self.has_constructed = False  # likewise: objects whose construction computes, which are judged where asked
        self.judges_constructions = False
        self.outside = OutsideOperations()
        self.counts_outside = False
        self._counting = contextlib.ExitStack()
        self.options = options or JudgeOptions()
        self.mode = "judge"
        self.keep_frames = False
        self.preparation: Preparation | None = None
        self.calls: list[JudgedCall] = []
        self._targets: list[Target] = [find_target(path) for path in targets]
        self._boundaries: dict[tuple[object, ...], Boundary] = {}
        self._keep: list[object] = []
        self.thread = 0
        self.inside = False
        self._compiled: dict[int, Callable[..., Any]] = {}
        self._silenced: list[logging.Handler] = []

    def __enter__(self) -> Self:
        self.thread = threading.get_ident()
        self._silenced = [h for h in _TRACE_LOG.handlers if not type(h).__module__.startswith("torch")]
        for handler in self._silenced:
            _TRACE_LOG.removeHandler(handler)
        self.compiler.reset()
        interception.start_intercepting()
        for target in self._targets:
            target.replace(self._target_function)
        interception.open_to(self)
        if self.counts_outside:
            self._counting.enter_context(self.outside)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._counting.close()
        interception.close_to(self)
        for handler in self._silenced:
            _TRACE_LOG.addHandler(handler)
        for target in self._targets:
            target.restore()
        if self.preparation is not None:
            self.preparation.undo()
        self.compiler.reset()

    def plant(self, fault: CompilerFault) -> MutantCompiler:
        """Make the compiler wrong in one way, before the session is entered; return the compiler that is."""
        self.compiler = mutant = MutantCompiler(self.compiler, fault)
        return mutant

    def statistics(self) -> CompileStatistics:
        """Return what the compiler did for all boundaries together."""
        total = CompileStatistics()
        for boundary in self._boundaries.values():
            total += boundary.statistics()
        return total

    def compiled(self, fn: Callable[..., Any], /) -> Callable[..., Any]:
        """Return `fn` as an explicit boundary; the same one for the same object."""
        if id(fn) not in self._compiled:
            self._keep.append(fn)
            self._compiled[id(fn)] = self._explicit(fn)
        return self._compiled[id(fn)]

    def _explicit(self, fn: Callable[..., Any]) -> Callable[..., Any]:
        def boundary(*args: Any, **kwargs: Any) -> Any:
            return self.offer(fn, args, kwargs)

        return boundary

    def offer(self, fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Run one call of `fn`, judged where this session takes calls at this moment."""
        if not interception.takes_calls(self):
            return fn(*args, **kwargs)
        return self.call(fn, CompileRequest(), args, kwargs)

    def _target_function(self, fn: Callable[..., Any]) -> Callable[..., Any]:
        def otherwise(*args: Any, **kwargs: Any) -> Any:
            return fn(*args, **kwargs)

        wrapped: Callable[..., Any] = boundary_function(fn, CompileRequest(), otherwise)
        return wrapped

    # -- taking calls ----------------------------------------------------------------------------------------------

    def call(
        self, target: Callable[..., Any], request: CompileRequest, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        """Run one call of a boundary, judged or not, and return (or raise) what the live run gives."""
        self.inside = True
        set_inside(True)
        interception.watch_modules(False)
        try:
            with self.outside.paused():
                return self._run(target, request, args, kwargs)
        finally:
            self.inside = False
            set_inside(False)
            interception.watch_modules(interception.is_open_to(self))

    def _run(
        self, target: Callable[..., Any], request: CompileRequest, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        if self.mode == "reference":
            return target(*args, **kwargs)
        boundary = self._boundary_of(target, request)
        if self.mode == "compiled":
            if self.preparation is not None:
                boundary.reach(call_roots(target, boundary.label, args, kwargs))
            return boundary.run_unjudged(args, kwargs)
        judgement = boundary.call(args, kwargs)
        if judgement is None:
            return boundary.run_unjudged(args, kwargs)
        self._record_verdict(boundary, judgement)
        return judgement.unwrap()

    def _boundary_of(self, target: Callable[..., Any], request: CompileRequest) -> Boundary:
        request = replace(
            request,
            dynamic=self.request.dynamic if request.dynamic is None else request.dynamic,
            mode=request.mode or (None if request.options else self.request.mode),
        )
        key = (_identity(target), request.fullgraph, request.dynamic, request.mode, repr(request.options))
        if key not in self._boundaries:
            self._keep.append(target)
            label = self._label(target)
            self._boundaries[key] = Boundary(
                target, label, request, self.compiler, self.backend, self.options, prepare=self.preparation
            )
        return self._boundaries[key]

    def _label(self, target: Callable[..., Any]) -> str:
        name = type(target).__name__ if isinstance(target, torch.nn.Module) else _name(target)
        namesakes = sum(b.label.split(" #")[0] == name for b in self._boundaries.values())
        return f"{name} #{namesakes + 1}" if namesakes else name

    def _record_verdict(self, boundary: Boundary, judgement: Judgement) -> None:
        verdict = boundary.counted(judgement.verdict)
        frame = user_frame()
        file, line = (frame.f_code.co_filename, frame.f_lineno) if frame else ("", 0)
        debugged_frame = frame if self.keep_frames and verdict.failed else None
        self.calls.append(JudgedCall(boundary.label, boundary.calls, verdict, file, line, debugged_frame))


def _identity(target: Callable[..., Any]) -> object:
    """Return a key for a callable; each access creates another bound method, so those go by function and object."""
    owner = getattr(target, "__self__", None)
    function = getattr(target, "__func__", None)
    return (id(function), id(owner)) if function is not None else id(target)


def _name(target: Callable[..., Any]) -> str:
    name = str(getattr(target, "__qualname__", type(target).__name__))
    return name.rpartition("<locals>.")[2]


def user_frame() -> FrameType | None:
    """Return the innermost frame outside plumbline, torch and the standard library."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        module = frame.f_globals.get("__name__")
        file = frame.f_code.co_filename
        is_ours = str(module).startswith("plumbline.")
        if not is_ours and not is_library_module(module) and not is_library_file(file):
            return frame
        frame = frame.f_back
    return None
