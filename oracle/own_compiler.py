"""Our own compiler as a compiler under test: what it did is read from the compile record."""

from collections.abc import Callable
from typing import Any

from plumbline.compiler.base.events import (
    BackendCalled,
    Broke,
    CompilerFailed,
    Event,
    RanEagerly,
    Recompiled,
    StageDone,
    recording,
)
from plumbline.compiler.base.options import options_from_environment
from plumbline.compiler.pipeline import compile_callable, make_family

from .compilers import LADDER, Candidate, CompileRequest, CompileStatistics


class OwnCandidate:
    """A function or module compiled by plumbline."""

    def __init__(self, target: Callable[..., Any], backend: str, request: CompileRequest, rng: str) -> None:
        options = options_from_environment().replace(fallback_random=rng == "eager")
        family = make_family(backend, options, fullgraph=request.fullgraph, dynamic=request.dynamic)
        self._compiled: Callable[..., Any] = compile_callable(target, family)
        self._statistics = CompileStatistics()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run compiled, listening to the record."""
        with recording() as events:
            try:
                return self._compiled(*args, **kwargs)
            finally:
                for event in events:
                    self._statistics += _counted(event)

    def statistics(self) -> CompileStatistics:
        """Return what the record said of this program so far."""
        return self._statistics


def _counted(event: Event) -> CompileStatistics:
    if isinstance(event, BackendCalled):
        return CompileStatistics(graphs=1, ops=event.operations)
    if isinstance(event, (Broke, RanEagerly)):
        place = f" at {event.origin.file}:{event.origin.line}" if event.origin else ""
        return CompileStatistics(breaks=(f"{event.reason}: {event.what}{place}",))
    if isinstance(event, CompilerFailed):
        return CompileStatistics(breaks=(f"internal error in {event.stage}: {event.error}",))
    if isinstance(event, Recompiled):
        return CompileStatistics(recompiles=1)
    if isinstance(event, StageDone) and event.stage == "compile":
        return CompileStatistics(compile_seconds=event.seconds)
    return CompileStatistics()


class OwnCompiler:
    """plumbline with its three backends."""

    name = "plumbline"
    backends: tuple[str, ...] = LADDER

    def compile(self, target: Callable[..., Any], backend: str, request: CompileRequest, *, rng: str) -> Candidate:
        """Compile with the named backend; stock's modes and options mean nothing here."""
        return OwnCandidate(target, backend, request, rng)

    def reset(self) -> None:
        """Do nothing: every candidate owns its specialisations."""
