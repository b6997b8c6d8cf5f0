"""A judge at work on one test body: it takes the calls of every boundary on its thread and keeps the verdicts."""

import logging
import sys
import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from types import FrameType, TracebackType
from typing import Any, Self

import torch

from plumbline.compiler.base.errors import UserError
from plumbline.compiler.base.seam import Seam
from plumbline.compiler.base.torch_facts import (
    backward_is_running,
    fake_mode_is_active,
    functorch_is_active,
    jit_is_tracing,
)
from plumbline.compiler.frontend.compiled_module import CompiledModule

from . import stock_torch
from .boundary import Boundary, JudgedCall
from .compilers import CompileRequest, CompilerUnderTest, CompileStatistics
from .judge import Judgement
from .options import JudgeOptions
from .own_compiler import OwnCompiler
from .targets import Target, find_target
from .walk import is_library_file, is_library_module

# Stock writes its structured trace to this logger; a test runner's handlers would show it under every failing test.
_TRACE_LOG = logging.getLogger("torch.__trace")
BOUNDARIES = ("module", "call", "explicit")
_current: "list[JudgeSession]" = []


def compilers() -> dict[str, CompilerUnderTest]:
    """Return the compilers that can be judged here, by name; ours first."""
    both: tuple[CompilerUnderTest, ...] = (OwnCompiler(), stock_torch.StockTorch())
    return {compiler.name: compiler for compiler in both}


def available_compilers() -> Mapping[str, tuple[str, ...]]:
    """Return the backends of each compiler that can be judged here."""
    return {name: compiler.backends for name, compiler in compilers().items()}


def find_compiler(name: str, backend: str) -> CompilerUnderTest:
    """Return the compiler of this name; raises UserError for an unknown compiler or backend."""
    known = compilers()
    if name not in known:
        raise UserError(f"unknown compiler {name!r}", hint=f"choose from {', '.join(sorted(known))}")
    if backend not in known[name].backends:
        hint = f"choose from {', '.join(known[name].backends)}"
        raise UserError(f"compiler {name!r} has no backend {backend!r}", hint=hint)
    return known[name]


class JudgeSession:
    """Judges what runs between `__enter__` and `__exit__` on the entering thread.

    mode "judge": boundaries run compiled and are judged; "reference": boundaries run eager and nothing is judged.
    keep_frames: keep the user's frame of failing calls, for a debugger.
    prepare: called once with each target before it is compiled, so that a test runner can undo its own rewriting.
    """

    def __init__(
        self,
        *,
        compiler: str,
        backend: str,
        boundary: str = "module",
        options: JudgeOptions | None = None,
        targets: tuple[str, ...] = (),
    ) -> None:
        if boundary not in BOUNDARIES:
            raise UserError(f"unknown boundary {boundary!r}", hint=f"choose from {', '.join(BOUNDARIES)}")
        self.compiler = find_compiler(compiler, backend)
        self.backend = backend
        self.boundary = boundary
        self.options = options or JudgeOptions()
        self.mode = "judge"
        self.keep_frames = False
        self.prepare: Callable[[Callable[..., Any]], None] | None = None
        self.calls: list[JudgedCall] = []
        self._targets: list[Target] = [find_target(path) for path in targets]
        self._boundaries: dict[tuple[object, ...], Boundary] = {}
        self._keep: list[object] = []
        self._thread = 0
        self._inside = False
        self._compiled: dict[int, Callable[..., Any]] = {}
        self._unheard: list[logging.Handler] = []

    def __enter__(self) -> Self:
        self._thread = threading.get_ident()
        self._unheard = [h for h in _TRACE_LOG.handlers if not type(h).__module__.startswith("torch")]
        for handler in self._unheard:
            _TRACE_LOG.removeHandler(handler)
        self.compiler.reset()
        start_intercepting()
        for target in self._targets:
            target.replace(self._target_function)
        _current.append(self)
        self._watch_modules(True)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._watch_modules(False)
        for handler in self._unheard:
            _TRACE_LOG.addHandler(handler)
        _current.remove(self)
        for target in self._targets:
            target.restore()
        self.compiler.reset()

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
            if not self.takes_calls():
                return fn(*args, **kwargs)
            return self.call(fn, CompileRequest(), args, kwargs)

        return boundary

    def _target_function(self, fn: Callable[..., Any]) -> Callable[..., Any]:
        def otherwise(*args: Any, **kwargs: Any) -> Any:
            return fn(*args, **kwargs)

        wrapped: Callable[..., Any] = stock_torch.boundary_function(fn, CompileRequest(), otherwise)
        return wrapped

    # -- taking calls ----------------------------------------------------------------------------------------------

    def takes_calls(self) -> bool:
        """Return whether a call at this moment, on this thread, is one to judge."""
        return (
            not self._inside
            and threading.get_ident() == self._thread
            and self in _current
            and not backward_is_running()
            and not functorch_is_active()
            and not jit_is_tracing()
            and not fake_mode_is_active()
            and not stock_torch.is_compiling()
        )

    def call(
        self, target: Callable[..., Any], request: CompileRequest, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        """Run one call of a boundary, judged or not, and return (or raise) what the live run gives."""
        self._inside = True
        stock_torch.set_inside(True)
        self._watch_modules(False)
        try:
            if self.mode == "reference":
                return target(*args, **kwargs)
            boundary = self._boundary_of(target, request)
            judgement = boundary.call(args, kwargs)
            if judgement is None:
                return boundary.run_unjudged(args, kwargs)
            self._keep_verdict(boundary, judgement)
            return judgement.unwrap()
        finally:
            self._inside = False
            stock_torch.set_inside(False)
            self._watch_modules(self in _current)

    def _boundary_of(self, target: Callable[..., Any], request: CompileRequest) -> Boundary:
        key = (_identity(target), request.fullgraph, request.dynamic, request.mode, repr(request.options))
        if key not in self._boundaries:
            self._keep.append(target)
            if self.prepare is not None:
                self.prepare(target)
            label = self._label(target)
            self._boundaries[key] = Boundary(target, label, request, self.compiler, self.backend, self.options)
        return self._boundaries[key]

    def _label(self, target: Callable[..., Any]) -> str:
        name = type(target).__name__ if isinstance(target, torch.nn.Module) else _name(target)
        taken = sum(b.label.split(" #")[0] == name for b in self._boundaries.values())
        return f"{name} #{taken + 1}" if taken else name

    def _keep_verdict(self, boundary: Boundary, judgement: Judgement) -> None:
        statistics = boundary.statistics()
        verdict = replace(
            judgement.verdict,
            graphs=statistics.graphs,
            ops=statistics.ops,
            breaks=statistics.breaks,
            recompiles=statistics.recompiles,
        )
        frame = user_frame()
        file, line = (frame.f_code.co_filename, frame.f_lineno) if frame else ("", 0)
        kept = frame if self.keep_frames and verdict.failed else None
        self.calls.append(JudgedCall(boundary.label, boundary.calls, verdict, file, line, kept))

    def _watch_modules(self, on: bool) -> None:
        stock_torch.set_module_call(_module_call if on else stock_torch.STOCK_MODULE_CALL)


def _identity(target: Callable[..., Any]) -> object:
    """Bound methods are made anew at each access; their function and object are what stays."""
    owner = getattr(target, "__self__", None)
    function = getattr(target, "__func__", None)
    return (id(function), id(owner)) if function is not None else id(target)


def _name(target: Callable[..., Any]) -> str:
    name = str(getattr(target, "__qualname__", type(target).__name__))
    return name.rpartition("<locals>.")[2]


def user_frame() -> FrameType | None:
    """Return the innermost frame that is neither ours nor torch's nor the standard library's."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        module = frame.f_globals.get("__name__")
        file = frame.f_code.co_filename
        ours = str(module).startswith("plumbline.")
        if not ours and not is_library_module(module) and not is_library_file(file):
            return frame
        frame = frame.f_back
    return None


# -- interception ------------------------------------------------------------------------------------------------------


def start_intercepting() -> None:
    """Make every torch.compile and plumbline.compile from now on visible to sessions."""
    stock_torch.install(_compiled_call)
    Seam.wrap = _wrap_own


def stop_intercepting() -> None:
    """Give torch.compile and plumbline.compile back."""
    stock_torch.uninstall()
    Seam.wrap = None


def _wrap_own(original: Any, compiled: Any, fullgraph: bool, dynamic: bool | None) -> Any:
    """Return what plumbline.compile gives its user while a judge may want the calls."""
    request = CompileRequest(fullgraph=fullgraph, dynamic=dynamic)
    boundary = stock_torch.boundary_function(original, request, compiled)
    if isinstance(compiled, CompiledModule):
        return CompiledModule(original, lambda _module: boundary)
    return boundary


def _compiled_call(boundary: Any, request: CompileRequest, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Take the call of something the user gave to torch.compile (or of a target)."""
    session = _current[-1] if _current else None
    if session is None or threading.get_ident() != session._thread:
        return boundary._plumbline_otherwise(*args, **kwargs)
    if session.takes_calls():
        return session.call(boundary._plumbline_target, request, args, kwargs)
    return boundary._plumbline_target(*args, **kwargs)  # inside a reference or compiled run: the plain program


def _module_call(module: torch.nn.Module, *args: Any, **kwargs: Any) -> Any:
    """Take the call of an outermost module, or of one that came out of torch.compile."""
    session = _current[-1] if _current else None
    if session is None or not session.takes_calls():
        return stock_torch.STOCK_MODULE_CALL(module, *args, **kwargs)
    compiled = stock_torch.compiled_module(module)
    if compiled is not None:
        return session.call(compiled[0], compiled[1], args, kwargs)
    if session.boundary != "module" or _compiled_inside(module):
        return stock_torch.STOCK_MODULE_CALL(module, *args, **kwargs)
    return session.call(module, CompileRequest(), args, kwargs)


def _compiled_inside(module: torch.nn.Module) -> bool:
    """A module whose own call or forward the user compiled: that is the boundary, with the user's options."""
    implementation = vars(module).get("_compiled_call_impl")
    return any(hasattr(found, "_plumbline_target") for found in (implementation, vars(module).get("forward")))
