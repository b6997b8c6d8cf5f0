"""What is known of cases that are not plainly good, read for as few of them as a page shows."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sqlalchemy import Row, Select, select

from ..rows import CaseRow
from ..storage.database import Database
from ..storage.schema import COLUMNS, DETAIL_FIELDS, DETAILS, RESULT_FIELDS, RESULTS, TESTS
from ..verdict_marks import margin_text, mark_of, seconds_text
from .case_commands import repeating_command
from .packing import name_shown
from .page_data import CaseDetail
from .window import Window, marks_shown

MOST_FAILING = 3_000  # rows of a page; more failures than this are not read one by one
MOST_WEAK = 300
_LONGEST = 600  # letters of one text
_MOST_EVENTS = 20
_WEAK = ("NO_REFERENCE", "JUDGE_FAILED", "UNSTABLE", "DESIGN")


def failing_details(store: Database, window: Window, nights: int) -> tuple[CaseDetail, ...]:
    """Return the newest failure of each case that failed in the last nights, and what is weak in the last one."""
    runs = [night.number for night in window.nights[-nights:] if not night.run.void]
    failing = _cases().where(RESULTS.c.run.in_(runs), RESULTS.c.failing).order_by(RESULTS.c.run.desc())
    last = window.nights[-1].number
    weak = _cases().where(RESULTS.c.run == last, RESULTS.c.verdict.in_(_WEAK), ~RESULTS.c.failing)
    found = [*_read_rows(store, failing.limit(MOST_FAILING)), *_read_rows(store, weak.limit(MOST_WEAK))]
    newest: dict[tuple[int, str], CaseDetail] = {}
    for row in found:
        key = (row.test, f"{row.compiler}:{row.backend}")
        if key not in newest and key[1] in window.columns:
            newest[key] = detail_of(_case_row(row), window.columns, window.position(row.run))
    return tuple(newest.values())


def details_of_test(store: Database, window: Window, test: int) -> tuple[CaseDetail, ...]:
    """Return what every night of the window has to say about one test, the newest first; test: its number."""
    query = _cases().where(RESULTS.c.test == test, RESULTS.c.run.in_([night.number for night in window.nights]))
    rows = _read_rows(store, query.order_by(RESULTS.c.run.desc(), RESULTS.c.col))
    details = [detail_of(_case_row(row), window.columns, window.position(row.run)) for row in rows]
    last = window.last
    return tuple(each for each in details if each.night == last or marks_shown()[each.mark].failing)


def detail_of(case: CaseRow, columns: Sequence[str], night: int) -> CaseDetail:
    """Return one case in the words of the page."""
    mark = mark_of(case)
    return CaseDetail(
        test=name_shown(case.test),
        column=columns.index(case.column) if case.column in columns else 0,
        night=night,
        mark=_MARK_PLACES.get(mark.letter, 0),
        margin=case.margin,
        sentence=_short(case.sentence or mark.meaning),
        where=_short(case.where),
        facts=tuple((name, _short(value)) for name, value in _facts(case) if value),
        notes=tuple(map(_short, case.notes[:_MOST_EVENTS])),
        events=tuple(map(_event_text, [e for e in case.events if e.get("kind") != "stage"][:_MOST_EVENTS])),
        command=repeating_command(case.test, (case.column,), whole=False),
    )


_MARK_PLACES = {mark.letter: place for place, mark in enumerate(marks_shown())}


def _facts(case: CaseRow) -> Iterable[tuple[str, str]]:
    yield "margin (1 is the limit)", margin_text(case.margin) or ("" if case.failing else "0")
    if case.worst_index is not None or case.error is not None:
        yield "worst element", str(list(case.worst_index)) if case.worst_index is not None else ""
        yield "compiled", _number(case.actual)
        yield "eager", _number(case.eager)
        yield "reference (fp64)", _number(case.reference)
        yield "error", _number(case.error)
        yield "one unit of its noise", _number(case.scale)
    yield "first wrong backend", case.stage or ""
    yield "aspect", case.aspect
    yield "boundary", case.boundary
    yield "your line", f"{case.user_file.rsplit('/', 1)[-1]}:{case.user_line}" if case.user_file else ""
    yield "graphs, operations", f"{case.graphs}, {case.ops}" if case.graphs else ""
    yield "graph breaks, recompiles", f"{case.breaks}, {case.recompiles}" if case.breaks or case.recompiles else ""
    yield "judged calls", str(case.judged_calls) if case.judged_calls else ""
    compiling = seconds_text(case.compile_cpu or case.compile_seconds)
    yield "peak memory", f"{case.peak_bytes / 1e6:.4g} MB" if case.peak_bytes else ""
    yield "time", f"{seconds_text(case.test_seconds)} ({compiling} compiling)" if case.test_seconds else ""


def _number(value: float | None) -> str:
    return "unknown" if value is None else f"{value:.9g}"


def _event_text(event: Mapping[str, object]) -> str:
    said = str(event.get("kind", "")).replace("_", " ")
    rest = [str(event[key]) for key in ("reason", "where") if event.get(key)]
    return _short(": ".join([said, *rest]))


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


def _cases() -> Select[Any]:
    same = (DETAILS.c.run == RESULTS.c.run) & (DETAILS.c.test == RESULTS.c.test) & (DETAILS.c.col == RESULTS.c.col)
    columns = [RESULTS.c[name] for name in RESULT_FIELDS] + [DETAILS.c[name] for name in DETAIL_FIELDS]
    joined = RESULTS.join(TESTS, TESTS.c.id == RESULTS.c.test).join(COLUMNS, COLUMNS.c.id == RESULTS.c.col)
    named = (RESULTS.c.run, RESULTS.c.test, TESTS.c.name.label("test_name"), COLUMNS.c.compiler, COLUMNS.c.backend)
    return select(*named, *columns).select_from(joined.outerjoin(DETAILS, same))


def _read_rows(store: Database, query: Select[Any]) -> list[Row[Any]]:
    with store.transaction() as connection:
        return list(connection.execute(query))


def _case_row(row: Row[Any]) -> CaseRow:
    named = row._mapping
    fields = {name: named[name] for name in RESULT_FIELDS}
    if named["notes"] is not None:  # a row of details is whole, or it is not there
        fields |= {name: named[name] for name in DETAIL_FIELDS}
    return CaseRow(run_id="", case_id="", test=row.test_name, compiler=row.compiler, backend=row.backend, **fields)
