"""What the Speed view shows: per night, column and model or file, from roll-ups and strips."""

from collections.abc import Callable, Iterator

import numpy

from ..history import ColumnNight
from ..strips import value_of_byte
from .page_data import Measured, MeasureShown
from .window import Window, marks_shown

MOST_GROUPS = 40  # files; of more, the ones with the longest compile times are shown

MEASURES = (
    MeasureShown(
        key="ratio",
        title="Compile time, ratio",
        lead="CPU seconds of compiling, over those of the other compiler on the same night for the tests that are good "
        "under both. The other compiler takes the machine out; 1 is as fast as it.",
        unit="x",
    ),
    MeasureShown(
        key="compile_cpu", title="Compile time", lead="CPU seconds of compiling, all tests together.", unit="s"
    ),
    MeasureShown(
        key="compile_seconds",
        title="Compile time, wall",
        lead="Seconds of compiling by the clock. They depend on what else the machine did; compare the ratio first.",
        unit="s",
    ),
    MeasureShown(
        key="run_ratio",
        title="Run time, ratio",
        lead="Seconds of the compiled programs over those of eager; below 1 compiling pays.",
        unit="x",
    ),
    MeasureShown(
        key="memory",
        title="Memory",
        lead="Peak memory of a test beyond what its process held before, the judge's runs included: mean of all tests.",
        unit="MB",
    ),
    MeasureShown(key="graphs", title="Graphs", lead="Graphs that were compiled.", unit=""),
    MeasureShown(key="breaks", title="Graph breaks", lead="Places where a graph had to end.", unit=""),
    MeasureShown(key="recompiles", title="Recompiles", lead="Functions compiled again for other inputs.", unit=""),
    MeasureShown(
        key="ops", title="Operations", lead="Operations that compilers captured.", unit="", less_is_better=False
    ),
    MeasureShown(
        key="pass_rate",
        title="Pass rate",
        lead="Cases that pass, of all that were judged. One that passed a retry passes; skipped ones are left out.",
        unit="%",
        less_is_better=False,
    ),
    MeasureShown(
        key="near_limit",
        title="Close margins",
        lead="Passing cases that use more than half of the allowed difference.",
        unit="",
    ),
)

_OF_COLUMN: dict[str, Callable[[ColumnNight], float | None]] = {
    "ratio": lambda night: night.compile_ratio,
    "compile_cpu": lambda night: night.compile_cpu or None,
    "compile_seconds": lambda night: night.compile_seconds or None,
    "run_ratio": lambda night: night.run_ratio,
    "memory": lambda night: night.peak_bytes / night.cases / 1e6 if night.peak_bytes else None,
    "graphs": lambda night: night.graphs,
    "breaks": lambda night: night.breaks,
    "recompiles": lambda night: night.recompiles,
    "ops": lambda night: night.ops,
    "pass_rate": lambda night: _share(night.good, night.cases - night.skipped),
    "near_limit": lambda night: night.near_limit,
}


def measured_window(window: Window) -> tuple[tuple[MeasureShown, ...], tuple[Measured, ...]]:
    """Return the measures that have a value, and their lines."""
    lines = [*_of_columns(window), *_of_groups(window)]
    there = {line.measure for line in lines if any(value is not None for value in line.values)}
    return tuple(measure for measure in MEASURES if measure.key in there), tuple(
        line for line in lines if line.measure in there
    )


def _of_columns(window: Window) -> Iterator[Measured]:
    by_place = {(each.run, each.column): each for each in window.of_columns}
    for key, value in _OF_COLUMN.items():
        for place, column in enumerate(window.columns):
            if key == "ratio" and column.startswith("torch:"):
                continue  # the ratio of the other compiler is the same number upside down
            nights = [by_place.get((night.number, column)) for night in window.nights]
            values = tuple(_rounded(value(night)) if night is not None else None for night in nights)
            yield Measured(measure=key, column=place, group="", values=values)


def _of_groups(window: Window) -> Iterator[Measured]:
    """Yield compile seconds and pass rate of each test file; a model suite has a file a model, or a class in one."""
    files = [name.split("::")[0] for name in window.names]
    names, group = numpy.unique(numpy.array(files, dtype=str), return_inverse=True)
    if len(names) < 2:
        return
    order = numpy.argsort(group, kind="stable")
    starts = numpy.searchsorted(group[order], numpy.arange(len(names)))
    sums, passed, judged = (  # [night, group, column]
        numpy.add.reduceat(table[coded[:, order]], starts, axis=1)
        for table, coded in ((_SECONDS, window.seconds), (_PASSED, window.marks), (_JUDGED, window.marks))
    )
    longest = numpy.argsort(-sums[-1].sum(axis=1))[:MOST_GROUPS]
    for position in sorted(int(each) for each in longest):
        for column in range(len(window.columns)):
            at = (slice(None), position, column)
            seconds = tuple(_rounded(float(value)) if value else None for value in sums[at])
            rates = tuple(_rounded(_share(*map(int, pair))) for pair in zip(passed[at], judged[at], strict=True))
            for measure, values in (("compile_seconds", seconds), ("pass_rate", rates)):
                yield Measured(measure=measure, column=column, group=str(names[position]), values=values)


_SECONDS = numpy.array([value_of_byte(byte) if byte < 255 else 0.0 for byte in range(256)], dtype=numpy.float32)

_NOT_JUDGED = " -x"  # letters: absent, skipped, and failing as its mark says
_JUDGED = numpy.array([mark.letter not in _NOT_JUDGED for mark in marks_shown()], dtype=numpy.int64)
_PASSED = _JUDGED * numpy.array([not mark.failing for mark in marks_shown()], dtype=numpy.int64)


def _share(part: int, whole: int) -> float | None:
    """Return a share in percent."""
    return 100 * part / whole if whole else None


def _rounded(value: float | None) -> float | None:
    """Return four digits: what can be seen in a chart, in half of the bytes."""
    return None if value is None else float(f"{value:.4g}")
