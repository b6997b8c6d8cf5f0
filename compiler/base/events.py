"""The compile record: what happened, as frozen rows, and where the rows go.

This is the only output channel of the compiler: stages call `record(event)` and never print. Whoever wants to
know opens `with recording() as events:`; reports turn the rows into words.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from .locks import ForkedLock
from .origin import Origin


@dataclass(frozen=True, slots=True)
class Event:
    """The base of every row of the record."""


@dataclass(frozen=True, slots=True)
class StageDone(Event):
    """A stage of one compilation ended; seconds of wall time, nested stages included."""

    stage: str
    seconds: float


@dataclass(frozen=True, slots=True)
class Artifact(Event):
    """A text that a stage produced: a graph, a guard function, C, Triton, Python."""

    stage: str
    name: str
    language: str
    text: str


@dataclass(frozen=True, slots=True)
class Captured(Event):
    """A region became a graph; function: the user's name of it; nodes: operations, placeholders not counted.

    guards: in words; places: for each the `file:line` that made capture look, empty for the state of torch.
    """

    function: str
    nodes: int
    inputs: int
    guards: tuple[str, ...]
    origin: Origin | None
    places: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Broke(Event):
    """A graph break: reason (stable id), what happened here, why, what to do, and the innermost user line."""

    reason: str
    what: str
    why: str
    hint: str
    origin: Origin | None


SHAPE_RULE = "shape-rule"
"""Why a captured graph runs eagerly: a kernel gave something else than the operator's shape rule promises."""


@dataclass(frozen=True, slots=True)
class RanEagerly(Event):
    """A whole function runs uncompiled, and correctly; reason as in Broke."""

    function: str
    reason: str
    what: str
    hint: str
    origin: Origin | None


@dataclass(frozen=True, slots=True)
class Recompiled(Event):
    """No specialisation fitted a call; guard: the text of the one that failed, `actual` in words."""

    function: str
    guard: str
    expected: str
    actual: str
    count: int
    origin: Origin | None


@dataclass(frozen=True, slots=True)
class CompilerFailed(Event):
    """An error of ours, kept away from the user: the stage, the error in one line, its traceback, and its bundle.

    bundle: the folder that was written about it; empty where none was.
    """

    stage: str
    function: str
    error: str
    traceback: str
    bundle: str = ""

    def text(self) -> str:
        """Return one line for the user: what happened, that it did no harm, and where to read more."""
        more = f"see {self.bundle}" if self.bundle else "PLUMBLINE_STRICT=1 raises it"
        return f"{self.function}: an error of plumbline's own in {self.stage}, run eagerly: {self.error}; {more}"


@dataclass(frozen=True, slots=True)
class Validated(Event):
    """Compiled code was held to the stages before it at its first call; seconds of wall time.

    part: what was compiled.  stages: those that ran, in order.  departed: the first that gives something else than the
    one before it, empty where all agree; then a CompilerFailed has the details.
    """

    part: str
    stages: tuple[str, ...]
    departed: str
    seconds: float


@dataclass(frozen=True, slots=True)
class BackendCalled(Event):
    """A captured graph was handed to a backend: readable text of the graph and the backend's name."""

    backend: str
    text: str
    operations: int


@dataclass(frozen=True, slots=True)
class KernelRan(Event):
    """A step of compiled code ran, under `time_kernels`: seconds, bytes it touches, floating-point operations.

    kind: "kernel" or "ATen".  lines: of the user's program that it computes.
    """

    kind: str
    name: str
    seconds: float
    bytes: int
    flops: int
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PassDone(Event):
    """A graph or loop pass ran; before and after are node counts."""

    stage: str
    name: str
    before: int
    after: int
    seconds: float


@dataclass(frozen=True, slots=True)
class FellBack(Event):
    """An operation has no generated code and calls ATen; why in words."""

    operation: str
    why: str
    origin: Origin | None = None


@dataclass(frozen=True, slots=True)
class LeftStep:
    """A call of a graph that ATen runs.

    operation: the operator.  reason: a name of `schedule.left_to_aten.Reason`.  why: what the lowering said of it.
    """

    operation: str
    reason: str
    why: str


@dataclass(frozen=True, slots=True)
class StepsAssigned(Event):
    """Who runs the steps of a compiled graph; language: of the kernels.

    launched: the kernels by name, in the order in which one call of the graph launches them.  left: the calls of ATen.
    """

    language: str
    launched: tuple[str, ...]
    left: tuple[LeftStep, ...]

    def text(self) -> str:
        """Return one line: how many kernels there are, and what is left to ATen why, views not counted."""
        counts: dict[str, int] = {}
        for step in self.left:
            if step.reason != "VIEW":
                name = f"{step.operation} ({step.reason})"
                counts[name] = counts.get(name, 0) + 1
        left = ", ".join(f"{name} x {count}" if count > 1 else name for name, count in counts.items())
        kernels, distinct = len(self.launched), len(set(self.launched))
        return f"{kernels} launches of {distinct} kernels in {self.language}; left to ATen: {left or 'nothing'}"


@dataclass(frozen=True, slots=True)
class KernelLaunched(Event):
    """A kernel was launched, or its text interpreted; programs: how many instances of it ran."""

    name: str
    programs: int


def swallowed_error(event: Event) -> str:
    """Return the error of the compiler's own that an event tells of, after which the program ran eagerly."""
    if isinstance(event, CompilerFailed):
        return event.error
    if isinstance(event, FellBack) and event.operation == "graph":
        return event.why
    return event.what if isinstance(event, RanEagerly) and event.reason == SHAPE_RULE else ""


@dataclass(frozen=True, slots=True)
class FusionRefused(Event):
    """Two loops stay apart: the rule that said no, and why here."""

    first: str
    second: str
    rule: str
    why: str


@dataclass(frozen=True, slots=True)
class Partitioned(Event):
    """Forward and backward were cut: bytes kept for backward and the number of recomputed nodes."""

    saved_bytes: int
    saved: int
    recomputed: int


@dataclass(frozen=True, slots=True)
class KernelBuilt(Event):
    """One translation unit is ready; cached: it came from the disk cache; seconds of wall time in the toolchain."""

    name: str
    language: str
    kernels: int
    cached: bool
    seconds: float


@dataclass(frozen=True, slots=True)
class GraphRecorded(Event):
    """A compiled graph was recorded as a CUDA graph: how many inputs each call copies, how many are read in place."""

    copied: int
    in_place: int


@dataclass(frozen=True, slots=True)
class GraphStored(Event):
    """What came of the disk cache of compiled graphs; part: "graph" or "backward".

    outcome: "kept" or "not kept".  why: what cannot be written down, or what switches the cache off; empty where kept.
    """

    part: str
    outcome: str
    why: str = ""


Sink = Callable[[Event], None]


@dataclass(slots=True)
class _Listeners:
    sinks: list[Sink] = field(default_factory=list)
    lock: ForkedLock = field(default_factory=ForkedLock)


_LISTENERS = _Listeners()
_TOTALS: dict[str, list[float]] = {}  # stage -> seconds of each run; read by compile_times()


def record(event: Event) -> None:
    """Hand one row to everyone who listens; a few nanoseconds when nobody does."""
    for sink in tuple(_LISTENERS.sinks):
        sink(event)


def is_recording() -> bool:
    """Return whether anyone listens, so that costly texts are built only then."""
    return bool(_LISTENERS.sinks)


def listen(sink: Sink) -> Callable[[], None]:
    """Send every row to `sink` until the returned function is called."""
    with _LISTENERS.lock:
        _LISTENERS.sinks.append(sink)

    def stop() -> None:
        with _LISTENERS.lock:
            if sink in _LISTENERS.sinks:
                _LISTENERS.sinks.remove(sink)

    return stop


@contextmanager
def recording() -> Iterator[list[Event]]:
    """Collect the rows recorded inside the block, on any thread."""
    events: list[Event] = []
    stop = listen(events.append)
    try:
        yield events
    finally:
        stop()


@contextmanager
def stage(name: str) -> Iterator[None]:
    """Time a stage; the row is recorded even if the stage fails."""
    start = time.perf_counter()
    try:
        yield
    finally:
        seconds = time.perf_counter() - start
        _TOTALS.setdefault(name, []).append(seconds)
        record(StageDone(name, seconds))


def stage_times() -> dict[str, tuple[float, ...]]:
    """Return the wall seconds of every run of every stage since the start or `forget_stage_times()`."""
    return {name: tuple(times) for name, times in list(_TOTALS.items())}


def forget_stage_times() -> None:
    """Reset the totals of `stage_times()`."""
    _TOTALS.clear()
