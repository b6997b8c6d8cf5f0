"""One run as one HTML file: it fetches nothing, needs no other file, and can be mailed and printed.

Charts are inline SVG: plotly.js would add 4.5 MB to every page.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

from jinja2 import DictLoader, Environment, StrictUndefined

from .atomic_file import write_whole
from .charts import SPARK_HEIGHT, SPARK_WIDTH, Spark, margin_chart, spark_of
from .rows import CallRow, CaseRow, RunRow
from .store import ResultStore
from .verdict_marks import VERDICTS, Mark, columns_of, margin_text, mark_of, marks_in, seconds_text, seriousness

HISTORY_RUNS = 20
SLOWEST = 15
_DETAILED = frozenset({"bad", "vacuous", "weak"})

History = Mapping[str, Sequence[tuple[str, str, float]]]


@dataclass(frozen=True, slots=True)
class Cell:
    """One case as the matrix and the drill-down show it."""

    case: CaseRow
    mark: Mark
    spark: Spark | None
    calls: tuple[CallRow, ...] = ()

    @property
    def detailed(self) -> bool:
        """Return whether the page has a section of its own for this case."""
        events = [event for event in self.case.events if event.get("kind") != "stage"]  # timings, which all have
        return self.mark.tone in _DETAILED or bool(self.case.notes or events)

    @property
    def ratio(self) -> float | None:
        """Return the error in units of its scale, None when either is unknown or the scale is 0."""
        error, scale = self.case.error, self.case.scale
        return error / scale if error is not None and scale else None


@dataclass(frozen=True, slots=True)
class Timing:
    """Seconds of one backend or case, with the longest bar of its table for comparison."""

    name: str
    column: str
    compiling: float
    eager: float
    compiled: float
    whole: float


def write_page(store: ResultStore, run: RunRow, file: Path) -> None:
    """Write the page of one stored run, whole or not at all; UserError when the place cannot be written."""
    cases = store.cases(run.run_id)
    calls = {case.case_id: store.calls(run.run_id, case.case_id) for case in cases if mark_of(case).tone in _DETAILED}
    write_whole(file, render_page(run, cases, calls, store.history(run.run_id, HISTORY_RUNS)))


def render_page(
    run: RunRow,
    cases: Sequence[CaseRow],
    calls: Mapping[str, Sequence[CallRow]] | None = None,
    history: History | None = None,
) -> str:
    """Return the page as text.

    calls: the judged calls of the cases to be shown in detail.  history: what `Store.history` returns.
    """
    cells = [_cell(case, calls or {}, history or {}) for case in cases]
    columns = columns_of(cases)
    page = _environment().get_template("page.html")
    return page.render(
        run=run,
        cells=cells,
        columns=columns,
        counts=marks_in(cases),
        tests=_matrix(cells),
        detailed=sorted((cell for cell in cells if cell.detailed), key=_worst_first),
        failing=sum(case.failing and case.outcome != "vacuous" for case in cases),
        vacuous=sum(case.outcome == "vacuous" for case in cases),
        margins=margin_chart(cases),
        backends=[_backend_timing(column, cases) for column in columns],
        slowest=_slowest(cases),
        verdicts=VERDICTS,
        spark_size=(SPARK_WIDTH, SPARK_HEIGHT),
        runs_compared=max((len(seen) for seen in (history or {}).values()), default=0),
    )


def _environment() -> Environment:
    folder = resources.files("plumbline.reports")
    names = ("page.html", "page.css", "page.js")
    sources = {name: folder.joinpath(name).read_text(encoding="utf-8") for name in names}
    environment = Environment(
        loader=DictLoader(sources), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters["margin"] = margin_text
    environment.filters["seconds"] = seconds_text
    environment.filters["number"] = _number
    environment.filters["moment"] = _moment
    environment.filters["counted"] = _counted
    return environment


def _cell(case: CaseRow, calls: Mapping[str, Sequence[CallRow]], history: History) -> Cell:
    spark = spark_of(history.get(case.case_id, ()))
    return Cell(case, mark_of(case), spark, tuple(calls.get(case.case_id, ())))


def _matrix(cells: Sequence[Cell]) -> list[tuple[str, dict[str, Cell]]]:
    tests: dict[str, dict[str, Cell]] = {}
    for cell in cells:
        tests.setdefault(cell.case.test, {})[cell.case.column] = cell
    return sorted(tests.items())


def _worst_first(cell: Cell) -> tuple[int, int, str, str]:
    tone, rank = seriousness(cell.case)
    return -tone, -rank, cell.case.test, cell.case.column


def _backend_timing(column: str, cases: Sequence[CaseRow]) -> Timing:
    mine = [case for case in cases if case.column == column]
    return Timing(
        name=column,
        column=column,
        compiling=sum(case.compile_seconds for case in mine),
        eager=sum(case.eager_seconds for case in mine),
        compiled=sum(case.compiled_seconds for case in mine),
        whole=sum(case.test_seconds for case in mine),
    )


def _slowest(cases: Sequence[CaseRow]) -> list[Timing]:
    slow = sorted((case for case in cases if case.test_seconds > 0), key=lambda case: -case.test_seconds)
    return [
        Timing(
            case.test, case.column, case.compile_seconds, case.eager_seconds, case.compiled_seconds, case.test_seconds
        )
        for case in slow[:SLOWEST]
    ]


def _number(value: float | None) -> str:
    return "unknown" if value is None else f"{value:.9g}"


def _moment(utc: str) -> str:
    return utc.removesuffix("+00:00").replace("T", " ")


def _counted(count: int, thing: str) -> str:
    return f"{count} {thing}{'' if count == 1 else 's'}"
