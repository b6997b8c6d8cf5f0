"""Our own compiler as a compiler under test; what it did is read from the compile record."""

from collections.abc import Callable, Mapping
from typing import Any

from plumbline.compiler.base.config import CONFIG
from plumbline.compiler.base.events import (
    BackendCalled,
    Broke,
    CompilerFailed,
    Event,
    KernelBuilt,
    RanEagerly,
    Recompiled,
    StageDone,
    recording,
)
from plumbline.compiler.base.origin import Origin
from plumbline.compiler.pipeline import compile_callable, make_family

from .compilers import (
    DECOMPOSED,
    LADDER,
    TRITON,
    Candidate,
    CompileEvent,
    CompileRequest,
    CompileStatistics,
    cpu_seconds,
)

# Stages that contain no other one of these; their times add up to the whole.
_OUTER_STAGES = frozenset({"capture", "joint", "partition", "inductor"})


# The first would put a right answer for a wrong one; the second leaves small arrays to NumPy: nothing was judged.
_JUDGED = {"repro_after": "", "numpy_threshold": 0}


class OwnCandidate:
    """A function or module compiled by plumbline."""

    def __init__(self, target: Callable[..., Any], backend: str, request: CompileRequest, rng: str) -> None:
        del rng  # draws are always those of eager
        settings = CONFIG.over_environment(_JUDGED)
        family = make_family(backend, settings, fullgraph=request.fullgraph, dynamic=request.dynamic)
        self._compiled: Callable[..., Any] = compile_callable(target, family)
        self._statistics = CompileStatistics()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run compiled and read the record."""
        graphs, started = self._statistics.graphs, cpu_seconds()
        with recording() as events:
            try:
                return self._compiled(*args, **kwargs)
            finally:
                for event in events:
                    self._statistics += _counted(event)
                if self._statistics.graphs > graphs:
                    self._statistics += CompileStatistics(compile_cpu=cpu_seconds() - started)

    def statistics(self) -> CompileStatistics:
        """Return what the record said of this program so far."""
        return self._statistics


def _counted(event: Event) -> CompileStatistics:
    """Return one row of the record as statistics; rows without a meaning to users count as nothing."""
    count = _COUNTS.get(type(event))
    return count(event) if count is not None else CompileStatistics()


def _graph(event: BackendCalled) -> CompileStatistics:
    return CompileStatistics(graphs=1, ops=event.operations)


def _graph_break(event: Broke | RanEagerly) -> CompileStatistics:
    kind = "graph_break" if isinstance(event, Broke) else "ran_eagerly"
    reason = f"{event.reason}: {event.what}"
    return CompileStatistics(breaks=(reason,), events=(CompileEvent(kind, reason, _place(event.origin)),))


def _internal_error(event: CompilerFailed) -> CompileStatistics:
    reason = f"internal error in {event.stage}: {event.error}"
    return CompileStatistics(breaks=(reason,), events=(CompileEvent("internal_error", reason),))


def _recompile(event: Recompiled) -> CompileStatistics:
    guard = f"{event.guard}: was {event.expected}, is {event.actual}"
    return CompileStatistics(recompiles=1, events=(CompileEvent("recompile", guard, _place(event.origin)),))


def _stage(event: StageDone) -> CompileStatistics:
    seconds = event.seconds if event.stage in _OUTER_STAGES else 0.0
    return CompileStatistics(
        compile_seconds=seconds, events=(CompileEvent("stage", event.stage, seconds=event.seconds),)
    )


def _kernel(event: KernelBuilt) -> CompileStatistics:
    source = ", from the cache" if event.cached else ""
    what = f"{event.name}: {event.kernels} kernels in {event.language}{source}"
    return CompileStatistics(events=(CompileEvent("kernel", what, seconds=event.seconds),))


_COUNTS: Mapping[type[Event], Callable[[Any], CompileStatistics]] = {
    BackendCalled: _graph,
    Broke: _graph_break,
    RanEagerly: _graph_break,
    CompilerFailed: _internal_error,
    Recompiled: _recompile,
    StageDone: _stage,
    KernelBuilt: _kernel,
}


def _place(origin: Origin | None) -> str:
    return f"{origin.file}:{origin.line}" if origin is not None else ""


class OwnCompiler:
    """plumbline with the backends of the ladder and the rungs beside it."""

    name = "plumbline"
    backends: tuple[str, ...] = (*LADDER, DECOMPOSED, TRITON)
    double_backward = True

    def compile(self, target: Callable[..., Any], backend: str, request: CompileRequest, *, rng: str) -> Candidate:
        """Compile with the named backend; modes and options of torch.compile have no meaning here."""
        return OwnCandidate(target, backend, request, rng)

    def reset(self) -> None:
        """Do nothing: every candidate owns its specialisations."""
