"""PLUMBLINE_LOGS: rows of the compile record as lines on standard error, while it happens.

`PLUMBLINE_LOGS=graph_breaks,recompiles` is what `TORCH_LOGS` is for torch.compile; topics that both know are taken from
that variable too. `set_logs` does the same in a running process.
"""

import difflib
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TextIO

from plumbline.compiler.base.errors import UserError
from plumbline.compiler.base.events import (
    Artifact,
    BackendCalled,
    Broke,
    Captured,
    CompilerFailed,
    Event,
    FellBack,
    FusionRefused,
    KernelBuilt,
    RanEagerly,
    Recompiled,
    StageDone,
    StepsAssigned,
    listen,
)
from plumbline.compiler.base.origin import Origin


def _place(origin: Origin | None) -> str:
    return f"{origin.file}:{origin.line}: " if origin is not None else ""


def _graph_breaks(event: Event) -> str | None:
    if isinstance(event, Broke):
        return f"{_place(event.origin)}graph break: {event.what} ({event.reason}); {event.hint}"
    if isinstance(event, RanEagerly):
        return f"{_place(event.origin)}{event.function} runs eagerly: {event.what} ({event.reason}); {event.hint}"
    return None


def _recompiles(event: Event) -> str | None:
    if not isinstance(event, Recompiled):
        return None
    change = f"was {event.expected}, is {event.actual}"
    return f"{_place(event.origin)}{event.function} is compiled again: {event.guard}: {change}"


def _guards(event: Event) -> str | None:
    if not isinstance(event, Captured):
        return None
    read_at = [f"  (read at {place})" if place else "" for place in event.places]
    guards = [f"{guard}{place}" for guard, place in zip(event.guards, read_at, strict=True)]
    return "\n  ".join([f"{_place(event.origin)}guards of {event.function}:", *guards])


def _graph_code(event: Event) -> str | None:
    if not isinstance(event, BackendCalled):
        return None
    return f"graph of {event.operations} operations for {event.backend}:\n{event.text}"


def _output_code(event: Event) -> str | None:
    if not isinstance(event, Artifact):
        return None
    return f"{event.stage}: {event.name} ({event.language}):\n{event.text}"


def _kernels(event: Event) -> str | None:
    if isinstance(event, StepsAssigned):
        return event.text()
    if not isinstance(event, KernelBuilt):
        return None
    source = "from the cache" if event.cached else f"built in {event.seconds:.2f} s"
    return f"{event.name}: {event.kernels} kernels in {event.language}, {source}"


def _fusion(event: Event) -> str | None:
    if not isinstance(event, FusionRefused):
        return None
    return f"{event.first} and {event.second} stay apart: {event.why} ({event.rule})"


def _fallbacks(event: Event) -> str | None:
    if isinstance(event, FellBack):
        return f"{_place(event.origin)}{event.operation} runs as ATen: {event.why}"
    if isinstance(event, CompilerFailed):
        return event.text()
    return None


def _stages(event: Event) -> str | None:
    return f"{event.stage}: {event.seconds:.3f} s" if isinstance(event, StageDone) else None


TOPICS: dict[str, Callable[[Event], str | None]] = {
    "fallbacks": _fallbacks,
    "fusion": _fusion,
    "graph_breaks": _graph_breaks,
    "graph_code": _graph_code,
    "guards": _guards,
    "kernels": _kernels,
    "output_code": _output_code,
    "recompiles": _recompiles,
    "stages": _stages,
}


def start_live_log(text: str, stream: TextIO | None = None) -> Callable[[], None]:
    """Write the topics named in `text` (joined by commas; `all` for all) as they happen; returns how to stop.

    stream: standard error by default.  Raises UserError for a topic that does not exist.
    """
    names = [name.strip() for name in text.split(",") if name.strip()]
    chosen = sorted(TOPICS) if "all" in names else names
    _demand_topics(chosen, "PLUMBLINE_LOGS")

    def write(event: Event) -> None:
        for name in chosen:
            line = TOPICS[name](event)
            if line is not None:
                (stream or sys.stderr).write(f"[{name}] {line}\n")

    return listen(write)


def _demand_topics(names: Iterable[str], where: str) -> None:
    for name in names:
        if name not in TOPICS:
            near = difflib.get_close_matches(name, TOPICS, 1)
            hint = f"did you mean {near[0]!r}? " if near else ""
            raise UserError(f"unknown topic {name!r}", where=where, hint=f"{hint}choose from all, {', '.join(TOPICS)}")


@dataclass(slots=True)
class _Chosen:
    """What `set_logs` started last in this process."""

    stop: Callable[[], None] | None = field(default=None)


_CHOSEN = _Chosen()


def set_logs(*, stream: TextIO | None = None, all: bool = False, **topics: bool) -> None:  # noqa: A002 - torch's name
    """Write these topics to standard error from now on, instead of those of the last call; without any, nothing.

    `set_logs(graph_breaks=True, recompiles=True)`; all: every topic.  What PLUMBLINE_LOGS asked for goes on.
    Raises UserError for a topic that does not exist.
    """
    _demand_topics(topics, "set_logs")
    chosen = sorted(TOPICS) if all else [name for name, wanted in topics.items() if wanted]
    if _CHOSEN.stop is not None:
        _CHOSEN.stop()
    _CHOSEN.stop = start_live_log(",".join(chosen), stream) if chosen else None


# What TORCH_LOGS calls them -> topics here; what only torch's compiler has is left out.
_OF_TORCH: dict[str, str] = {
    **{topic: topic for topic in TOPICS},
    "aot_graphs": "output_code",
    "aot_joint_graph": "output_code",
    "graph": "graph_code",
    "kernel_code": "output_code",
    "perf_hints": "fallbacks",
    "recompiles_verbose": "recompiles",
}


def topics_of_torch(text: str) -> str:
    """Return those topics of a TORCH_LOGS setting that there are here, joined by commas.

    `dynamo=INFO` and other levels of torch's own loggers say nothing about this compiler.
    """
    words = [word.strip().lstrip("+") for word in text.split(",")]
    if "all" in words:
        return "all"
    return ",".join(dict.fromkeys(_OF_TORCH[word] for word in words if word in _OF_TORCH))
