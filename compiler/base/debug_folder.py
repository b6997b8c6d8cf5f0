"""The debug folder: every stage of each compilation as files to read, with an index page.

`<record directory>/<start of the process>/<number>-<function>/README.md` is the page of one compiled unit.
"""

import cProfile
import functools
import io
import os
import pstats
import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path
from typing import Any

from .borrowed.stock_settings import files_of
from .events import (
    Artifact,
    BackendCalled,
    Broke,
    Captured,
    CompilerFailed,
    Event,
    FellBack,
    FusionRefused,
    KernelBuilt,
    Partitioned,
    RanEagerly,
    Recompiled,
    StageDone,
    StepsAssigned,
    listen,
)
from .options import Options

DIAGRAM = "diagram"  # the artifact that is the picture of a graph
_DIAGRAM_FILE = "13_captured_graph.svg"
_PROFILE_FILE = "14_compile_profile.txt"
_SUFFIXES = {"python": "py", "c": "c", "svg": "svg"}
# (stage, name) of an artifact -> file name and what it is; others keep their own names.
_KNOWN = {
    ("autograd", "joint"): ("05_aten_joint.py", "forward and gradients in one ATen graph"),
    ("autograd", "forward"): ("06_aten_forward.py", "the forward half, after the cut"),
    ("autograd", "backward"): ("07_aten_backward.py", "the backward half, after the cut"),
    ("lowering", "loops.py"): ("08_loops.py", "loops as they were lowered"),
    ("schedule", "loops.py"): ("09_schedule.py", "loops in the order and fusion in which they run"),
    ("codegen", "host.py"): ("10_host.py", "the Python that calls the kernels"),
    ("codegen", "graph.c"): ("11_kernels.c", "the kernels"),
    ("capture", DIAGRAM): (_DIAGRAM_FILE, "a picture of the captured graph"),
}
# How a file begins -> what `debug_files` calls it; what is not named here is code that was generated.
_SWITCHES = {
    "01": "source",
    "02": "bytecode",
    "03": "guards",
    "04": "fx_graph",
    "05": "fx_graph_transformed",
    "06": "fx_graph_transformed",
    "07": "fx_graph_transformed",
    "08": "ir_pre_fusion",
    "09": "ir_post_fusion",
    "12": "specialisation",
    "13": "graph_diagram",
    "14": "compile_profile",
    "au": "fx_graph_transformed",
}


@dataclass(frozen=True, slots=True)
class DebugFolder:
    """path: the folder of one unit.  files: what is written to it, by the names of `debug_files`."""

    path: Path
    files: frozenset[str]


class _Current(threading.local):
    """The folder of the unit that this thread is compiling."""

    place: DebugFolder | None = None


_CURRENT = _Current()
_NUMBERS = count(1)
_START = f"{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}"


@dataclass(slots=True)
class _Page:
    """What one compilation left: files with what they are, seconds of stages, and remarks."""

    files: dict[str, tuple[str, str]] = field(default_factory=dict)  # name -> (what it is, text)
    seconds: dict[str, float] = field(default_factory=dict)
    remarks: list[str] = field(default_factory=list)

    def add(self, name: str, what: str, text: str) -> None:
        stem, dot, suffix = name.rpartition(".")
        number = 2
        while name in self.files:
            name, number = f"{stem}_{number}{dot}{suffix}", number + 1
        self.files[name] = (what, text)


@contextmanager
def unit_folder(function: str, texts: Callable[[], Mapping[str, tuple[str, str]]], options: Options) -> Iterator[None]:
    """Write what this thread records inside the block to a folder of its own; nothing unless `options.debug`.

    texts: further files, name -> (what it is, text).  A disk that cannot be written changes nothing else.
    """
    if not options.debug:
        yield
        return
    name = re.sub(r"\W+", "_", function) or "code"
    before = _CURRENT.place
    root = Path(options.record_directory or "plumbline_debug")
    path = root / _START / f"{next(_NUMBERS):03}-{name}"
    _CURRENT.place = place = DebugFolder(path, files_of(options.debug_files))
    try:
        with _written(place, function, "", texts):
            yield
    finally:
        _CURRENT.place = before


def open_folder() -> DebugFolder | None:
    """Return the folder of the unit that this thread is compiling, for parts of it that are compiled later."""
    return _CURRENT.place


@contextmanager
def later_part(place: DebugFolder | None, part: str) -> Iterator[None]:
    """Add what this thread records inside the block to a unit's folder; place: from `open_folder`, None for none."""
    if place is None:
        yield
        return
    with _written(place, place.path.name.partition("-")[2], part, dict):
        yield


@contextmanager
def _written(
    place: DebugFolder, function: str, part: str, texts: Callable[[], Mapping[str, tuple[str, str]]]
) -> Iterator[None]:
    events: list[Event] = []
    thread = threading.get_ident()
    stop = listen(lambda event: events.append(event) if threading.get_ident() == thread else None)
    profile = _start_profile() if "compile_profile" in place.files else None
    try:
        yield
    finally:
        stop()
        page = _Page()
        if profile is not None:
            page.add(_PROFILE_FILE, "the compiler's own functions by the time they took", _profile_text(profile))
        for name, (what, text) in texts().items():
            page.add(name, what, text)
        for event in events:
            _take(event, page)
        with suppress(OSError):  # no disk, no folder: the compilation goes on
            _write(place, function, part, page)


def _start_profile() -> cProfile.Profile | None:
    """Start Python's profiler; None where another one is running."""
    profile = cProfile.Profile()
    try:
        profile.enable()
    except ValueError:  # one profiler at a time, from Python 3.12 on
        return None
    return profile


def _profile_text(profile: cProfile.Profile) -> str:
    profile.disable()
    text = io.StringIO()
    pstats.Stats(profile, stream=text).sort_stats("cumulative").print_stats(60)
    return text.getvalue()


@functools.singledispatch
def _take(event: Event, page: _Page) -> None:
    """Put one row of the record where a reader looks for it: most are a remark, or not shown."""
    words = _REMARKS.get(type(event))
    if words is not None:
        page.remarks.append(words(event))


@_take.register
def _(event: Artifact, page: _Page) -> None:
    if event.stage == "capture" and event.name != DIAGRAM:
        page.add("12_specialisation.py", "the Python that runs at a call: guards, inputs, graph, effects", event.text)
        return
    stem = re.sub(r"\W+", "_", f"{event.stage}_{event.name}")
    other = (f"{stem}.{_SUFFIXES.get(event.language, 'txt')}", f"{event.name} of {event.stage}")
    name, what = _KNOWN.get((event.stage, event.name), other)
    page.add(name, what, event.text)


@_take.register
def _(event: BackendCalled, page: _Page) -> None:
    what = f"the captured graph, {event.operations} operations, for {event.backend}"
    page.add("04_captured_graph.py", what, event.text)


@_take.register
def _(event: Captured, page: _Page) -> None:
    places = event.places or ("",) * len(event.guards)
    rows = [f"{guard}  ({place})" if place else guard for guard, place in zip(event.guards, places, strict=True)]
    page.add("03_guards.txt", "what must hold for this form to be used", "\n".join(rows) + "\n")


@_take.register
def _(event: StageDone, page: _Page) -> None:
    page.seconds[event.stage] = page.seconds.get(event.stage, 0.0) + event.seconds


def _break_words(event: Broke) -> str:
    place = f"{event.origin.place()}: " if event.origin else ""
    return f"graph break: {place}{event.what} ({event.reason}); {event.hint}"


def _build_words(event: KernelBuilt) -> str:
    source = "from the cache" if event.cached else f"built in {event.seconds:.2f} s"
    return f"{event.kernels} kernels in {event.language}, {source}"


_REMARKS: dict[type[Event], Callable[[Any], str]] = {  # what an event is in words, by its kind; others need none
    Broke: _break_words,
    RanEagerly: lambda event: f"{event.function} runs eagerly: {event.what} ({event.reason}); {event.hint}",
    Recompiled: lambda event: f"compiled again: {event.guard}: was {event.expected}, is {event.actual}",
    FellBack: lambda event: f"{event.operation} runs as ATen: {event.why}",
    FusionRefused: lambda event: f"{event.first} and {event.second} are not fused: {event.why} ({event.rule})",
    Partitioned: lambda event: (
        f"{event.saved} values kept for backward, {event.saved_bytes} bytes; {event.recomputed} computed again"
    ),
    KernelBuilt: _build_words,
    StepsAssigned: lambda event: event.text(),
    CompilerFailed: lambda event: event.text(),
}


def _write(folder: DebugFolder, function: str, part: str, page: _Page) -> None:
    place = folder.path
    wanted = {name: what for name, what in page.files.items() if _SWITCHES.get(name[:2], "output_code") in folder.files}
    page = replace(page, files=wanted)
    place.mkdir(parents=True, exist_ok=True)
    prefix = f"{part}_" if part else ""
    for name, (_, text) in page.files.items():
        (place / f"{prefix}{name}").write_text(text, encoding="utf-8")
    rows = [f"## {part}" if part else f"# {function}", ""]
    if page.files:
        rows += ["| file | what it is |", "|---|---|"]
        rows += [f"| [{prefix}{name}]({prefix}{name}) | {what} |" for name, (what, _) in sorted(page.files.items())]
        rows.append("")
    if page.seconds:
        rows += ["| stage | seconds, stages inside it included |", "|---|---|"]
        rows += [f"| {stage} | {seconds:.3f} |" for stage, seconds in page.seconds.items()]
        rows.append("")
    rows += [f"* {remark}" for remark in page.remarks]
    with (place / "README.md").open("a", encoding="utf-8") as index:
        index.write("\n".join(rows).rstrip() + "\n\n")
    if not part:
        with (place.parent / "README.md").open("a", encoding="utf-8") as index:
            index.write(f"* [{place.name}]({place.name}/README.md)\n")
