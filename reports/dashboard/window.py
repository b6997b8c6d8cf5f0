"""The nights that a page is about, with the marks and margins of every case in them, read from strips."""

from dataclasses import dataclass

import numpy
from sqlalchemy import select

from plumbline.compiler.base.errors import UserError

from ..history import ColumnNight, Night, Stream, column_nights, nights, streams, strips, tests_of
from ..storage.database import Database
from ..storage.schema import RUNS
from ..strips import ABSENT, Strip
from ..verdict_marks import every_mark
from .packing import Bytes, name_shown
from .page_data import MarkShown
from .page_query import PageQuery

_FAILING = frozenset("EVSNWC!F")  # letters; a failure that a retry cleared is not among them
Positions = numpy.ndarray[tuple[int, ...], numpy.dtype[numpy.int64]]
_LADDER = {"eager": 0, "aot_eager": 1, "inductor": 2}


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """Some nights of a stream, oldest first.

    numbers, names: of the tests, in the order of the page.  columns: in the order of the ladder.
    marks, margins, seconds: [night, test, column]; marks are positions in `marks_shown`, the others coded values of
    strips.py.  of_columns: the roll-ups of each column and night.
    """

    stream: Stream
    nights: tuple[Night, ...]
    numbers: tuple[int, ...]
    names: tuple[str, ...]
    columns: tuple[str, ...]
    marks: Bytes
    margins: Bytes
    seconds: Bytes
    of_columns: tuple[ColumnNight, ...]

    @property
    def last(self) -> int:
        """Return the position of the last night."""
        return len(self.nights) - 1

    def position(self, run: int) -> int:
        """Return the position of a run, -1 when it is older than the window."""
        return next((place for place, night in enumerate(self.nights) if night.number == run), -1)

    def letters(self, test: int, column: int) -> str:
        """Return the marks of a case, a letter a night; test: its position."""
        shown = marks_shown()
        return "".join(shown[mark].letter for mark in self.marks[:, test, column])


def series_name(stream: Stream) -> str:
    """Return a stream as the page names it: "suite @ branch"."""
    return f"{stream.suite or 'all tests'} @ {stream.branch or 'no branch'}"


def chosen_stream(store: Database, query: PageQuery) -> tuple[Stream, tuple[str, ...]]:
    """Return the stream of a query and the names of all of them; UserError when there is none."""
    known = streams(store)
    names = tuple(map(series_name, known))
    for stream, name in zip(known, names, strict=True):
        if query.series in ("", name):
            return stream, names
    if not known:
        hint = "judge a nightly run first: plumbline nightly"
        raise UserError("no night is recorded", where=store.place, hint=hint)
    raise UserError(f"no runs of {query.series[:60]!r}", where=store.place, hint=f"there are: {', '.join(names[:5])}")


def read_window(store: Database, stream: Stream, query: PageQuery) -> Window:
    """Return the window that a query asks for; UserError when its run is unknown or there are no nights."""
    until = run_number(store, query.until) if query.until else None
    chosen = nights(store, stream, query.nights, until=until)
    if not chosen:
        hint = "leave `until` away for the newest"
        raise UserError("no nights up to this run", where=query.until[:60] or store.place, hint=hint)
    runs = [night.number for night in chosen]
    of_columns = column_nights(store, runs)
    columns = _in_order({each.column for each in of_columns})
    known = tests_of(store, stream)
    numbers = tuple(test.number for test in known)
    size = (len(runs), len(known), len(columns))
    marks = numpy.zeros(size, dtype=numpy.uint8)
    margins, seconds = numpy.zeros_like(marks), numpy.zeros_like(marks)
    places = {run: place for place, run in enumerate(runs)}
    positions = numpy.asarray(numbers, dtype=numpy.int64) - 1
    for strip in strips(store, runs):
        if strip.column in columns:
            at = (places[strip.run], slice(None), columns.index(strip.column))
            marks[at], margins[at], seconds[at] = _read(strip, positions)
    names = tuple(name_shown(test.name) for test in known)
    return Window(
        stream=stream,
        nights=tuple(chosen),
        numbers=numbers,
        names=names,
        columns=columns,
        marks=marks,
        margins=margins,
        seconds=seconds,
        of_columns=tuple(of_columns),
    )


def run_number(store: Database, run_id: str) -> int:
    """Return the number of a run; UserError when there is none of this id."""
    with store.transaction() as connection:
        found = connection.execute(select(RUNS.c.id).where(RUNS.c.run_id == run_id)).scalar()
    if found is None:
        raise UserError(f"no run {run_id[:60]!r}", where=store.place, hint="take its id from plumbline report")
    return int(found)


def marks_shown() -> tuple[MarkShown, ...]:
    """Return the marks as the page numbers them: first the absent one, then the lightest to the most serious."""
    return _MARKS


def _in_order(columns: set[str]) -> tuple[str, ...]:
    def place(column: str) -> tuple[str, int, str]:
        compiler, _, backend = column.partition(":")
        return compiler, _LADDER.get(backend, len(_LADDER)), backend

    return tuple(sorted(columns, key=place))


def _read(strip: Strip, places: Positions) -> tuple[Bytes, Bytes, Bytes]:
    """Return a strip's bytes at these places, one a test of the page; marks as positions."""
    marks = _taken(strip.marks, places, ABSENT)
    return _CODES[marks], _taken(strip.margins, places, 0), _taken(strip.seconds, places, 0)


def _taken(data: bytes, places: Positions, absent: int) -> Bytes:
    there = numpy.frombuffer(data, dtype=numpy.uint8)
    found = numpy.full(len(places), absent, dtype=numpy.uint8)
    inside = places < len(there)
    found[inside] = there[places[inside]]
    return found


def _mark_table() -> tuple[MarkShown, ...]:
    absent = MarkShown(letter=" ", word="absent", tone="none", meaning="did not run", rank=0, failing=False)
    rest = [
        MarkShown(letter=m.letter, word=m.word, tone=m.tone, meaning=m.meaning, rank=rank, failing=m.letter in _FAILING)
        for rank, m in enumerate(every_mark(), 1)
    ]
    return (absent, *rest)


_MARKS = _mark_table()
_CODES = numpy.zeros(256, dtype=numpy.uint8)  # letter -> position
for _position, _mark in enumerate(_MARKS):
    _CODES[ord(_mark.letter)] = _position
