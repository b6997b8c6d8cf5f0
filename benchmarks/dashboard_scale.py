"""How large a history the dashboard bears: the file of 60 nights x 2,000 tests, and the questions to 10 million rows.

    python benchmarks/dashboard_scale.py page
    python benchmarks/dashboard_scale.py rows --db large.sqlite
    python benchmarks/dashboard_scale.py rows --db postgresql://user@host/name

`page` judges a made-up history (minutes; keep it with --db), writes the page, and opens it in a headless Chromium.
`rows` fills an empty database with results by one statement and with roll-ups of the same shape, and asks what each
page asks.  Times are by the clock, the median of some tries on a warm database.
"""

import argparse
import gzip
import sys
import tempfile
import time
import zlib
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import median

import numpy
from sqlalchemy import Connection, event, func, insert, select, text

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))
from plumbline.reports.dashboard.page_query import PageQuery
from plumbline.reports.dashboard.static_page import write_dashboard
from plumbline.reports.dashboard.stored_results import StoredResults
from plumbline.reports.dashboard.window import chosen_stream, read_window
from plumbline.reports.history import case_history, compare_runs, find_stream, nights
from plumbline.reports.rows import RunRow, field_types
from plumbline.reports.storage import schema
from plumbline.reports.store import ResultStore, open_store
from plumbline.reports.strips import byte_of_value
from support.browser import browser_program, browser_tab
from support.synthetic_history import COLUMNS as COMPILERS_AND_BACKENDS
from support.synthetic_history import SyntheticHistory, write_history

LIMITS = {"built": 20.0, "first paint": 1.0, "page": 5e6, "a query": 0.3}
TRIES = 5


def measure_page(place: str | None, history: SyntheticHistory, folder: Path) -> None:
    """Print how long the page takes to build and to show, and its size."""
    database = place or str(folder / "results.sqlite")
    if "://" not in database and not Path(database).exists():
        print(
            f"judging {history.nights} nights of {history.tests * len(COMPILERS_AND_BACKENDS):,} cases ...", flush=True
        )
        write_history(database, history)
    file = folder / "dashboard" / "index.html"
    wall, cpu = time.perf_counter(), time.process_time()
    with open_store(database) as store:
        page = write_dashboard(store, PageQuery(), file, None)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    size = file.stat().st_size
    print(f"nights {len(page.nights)}, cases {page.nights[-1].cases:,}, faults {len(page.faults)}")
    print(f"built in {wall:.2f} s ({cpu:.2f} s CPU); at most {LIMITS['built']:.0f}")
    print(f"page of {size:,} bytes ({len(gzip.compress(file.read_bytes())):,} gzipped); at most {LIMITS['page']:,.0f}")
    program = browser_program()
    if program is None:
        print("no browser: first paint not measured")
        return
    with browser_tab(program) as tab:
        paints, maps = [], []
        for _ in range(TRIES):
            tab.open(file.as_uri())
            paint = "performance.getEntriesByType('paint').find((each) => each.name === 'first-contentful-paint')"
            tab.wait(paint)
            paints.append(tab.ask(f"({paint}).startTime") / 1e3)
            tab.ask("window.pressed = performance.now()")
            tab.press("2")
            tab.wait("document.documentElement.dataset.ready === 'map'")
            maps.append(tab.ask("performance.now() - window.pressed") / 1e3)
        print(f"first paint after {median(paints):.2f} s; at most {LIMITS['first paint']:.0f}")
        print(f"map shown {median(maps):.2f} s after its key")


def measure_rows(place: str, tests: int, runs: int) -> None:
    """Print how long each question takes in a database of runs x tests x 6 results."""
    with open_store(place, write=True) as store:
        if not store.runs(1):
            print(f"filling {place} ...", flush=True)
            fill(store, tests, runs)
        with store.transaction() as connection:
            runs = connection.execute(select(func.count()).select_from(schema.NIGHTS)).scalar() or 0
            rows = connection.execute(select(func.count()).select_from(schema.RESULTS)).scalar() or 0
    print(f"{rows:,} results of {runs} nights")
    with open_store(place) as store:
        stream, query = find_stream(store), PageQuery()
        shown = nights(store, stream)
        name = read_window(store, stream, query).names[17]
        questions: dict[str, Callable[[], object]] = {
            "series and window (strips of 60 nights)": lambda: read_window(
                store, chosen_stream(store, query)[0], query
            ),
            "whole first page, nothing kept": lambda: StoredResults(store, live=True).page(query),
            "history of the map, nothing kept": lambda: StoredResults(store, live=True).history(query),
            "one test, 60 nights, nothing kept": lambda: StoredResults(store, live=True).test(query, name),
            "page as of a year ago": lambda: StoredResults(store, live=True).page(
                replace(query, until=f"night-{max(1, runs - 365)}")
            ),
            "page of 400 nights": lambda: StoredResults(store, live=True).page(replace(query, nights=min(400, runs))),
            "one test, every night": lambda: case_history(store, 18, stream, runs),
            "two runs compared row by row": lambda: compare_runs(store, shown[0].number, shown[-1].number),
        }
        statements = _timed_statements(store)
        print("milliseconds: slowest query, whole answer, its CPU here")
        for question, ask in questions.items():
            ask()
            walls, cpus, slowest = [], [], []
            for _ in range(TRIES):
                statements.clear()
                wall, cpu = time.perf_counter(), time.process_time()
                ask()
                walls.append(time.perf_counter() - wall)
                cpus.append(time.process_time() - cpu)
                slowest.append(max(statements, default=0.0))
            late = "" if median(slowest) <= LIMITS["a query"] else "   a query over the limit"
            shown_times = "".join(f"{1e3 * median(times):8.0f}" for times in (slowest, walls, cpus))
            print(f"{shown_times}  {question}{late}", flush=True)


def _timed_statements(store: ResultStore) -> list[float]:
    """Return a list that every statement adds its seconds to; SQLite does most of its work later, in the whole."""
    times: list[float] = []
    started: list[float] = []
    event.listen(store.engine, "before_cursor_execute", lambda *_: started.append(time.perf_counter()))
    event.listen(store.engine, "after_cursor_execute", lambda *_: times.append(time.perf_counter() - started.pop()))
    return times


def fill(store: ResultStore, tests: int, runs: int) -> None:
    """Write runs x tests x 6 results, their failures' details, and roll-ups of the same shape."""
    with store.transaction() as connection:
        start = datetime(2024, 8, 1, 2, tzinfo=UTC)
        rows = [_run(number, start + timedelta(days=number)) for number in range(1, runs + 1)]
        names = tuple(field_types(RunRow))
        connection.execute(insert(schema.RUNS), [{name: getattr(row, name) for name in names} for row in rows])
        named = [{"name": f"tests/test_model_{n % 40}.py::test_{n:05d}[f32]"} for n in range(tests)]
        connection.execute(insert(schema.TESTS), named)
        connection.execute(insert(schema.COLUMNS), [{"compiler": c, "backend": b} for c, b in COMPILERS_AND_BACKENDS])
        connection.execute(insert(schema.STREAMS), [{"suite": "models", "branch": "main"}])
        _results(connection)
        _roll_ups(connection, tests, runs)
        connection.execute(text("ANALYZE"))


def _run(number: int, when: datetime) -> RunRow:
    stamp = when.isoformat(timespec="seconds")
    versions = {"plumbline": f"0.1.dev{number // 3}", "torch": f"2.{number // 60}.0", "commit": f"{number // 2:040x}"}
    return RunRow(
        run_id=f"night-{number}", utc=stamp, finished=stamp, kind="nightly", suite="models", branch="main",
        python="3.11.7", machine="x86_64, 8 cores", cache="cold", **versions,
    )  # fmt: skip


_FAILING = "(t.id * 31 + r.id * 17 + c.id * 7) % 997 = 0"  # 0.1 %, scattered
_ALWAYS = {"notes": "'[]'", "events": "'[]'", "sentence": "'differs by 31 units of noise'", "where": "'output[0]'"}


def _results(connection: Connection) -> None:
    value = {
        "outcome": f"CASE WHEN {_FAILING} THEN 'failed' ELSE 'passed' END",
        "verdict": f"CASE WHEN {_FAILING} THEN 'WRONG' WHEN (t.id + c.id) % 3 = 0 THEN 'NOISE' ELSE 'EQUAL' END",
        "margin": f"CASE WHEN {_FAILING} THEN 31.0 ELSE ((t.id + c.id) % 3) * 0.1 END",
        "failing": _FAILING,
        "graphs": "1", "ops": "40", "boundaries": "1", "judged_calls": "2", "breaks": "0", "recompiles": "0",
    }  # fmt: skip
    columns = [column.name for column in schema.RESULTS.columns if column.name not in ("run", "test", "col")]
    chosen = ", ".join(value.get(name, "0.5") for name in columns)
    source = "FROM plumbline_runs r CROSS JOIN plumbline_tests t CROSS JOIN plumbline_columns c"
    into = f"INSERT INTO plumbline_results (run, test, col, {', '.join(columns)})"
    connection.execute(text(f"{into} SELECT r.id, t.id, c.id, {chosen} {source} ORDER BY r.id, t.id, c.id"))
    details = [column.name for column in schema.DETAILS.columns if column.name not in ("run", "test", "col")]
    columns = schema.DETAILS.columns
    default = {column.name: "''" if isinstance(column.type, schema.Words) else "NULL" for column in columns}
    chosen = ", ".join(_ALWAYS.get(name, default[name]) for name in details)
    quoted = ", ".join(f'"{name}"' for name in details)
    into = f"INSERT INTO plumbline_details (run, test, col, {quoted})"
    connection.execute(text(f"{into} SELECT r.id, t.id, c.id, {chosen} {source} WHERE {_FAILING}"))


def _roll_ups(connection: Connection, tests: int, runs: int) -> None:
    number = numpy.arange(1, tests + 1)
    margins = numpy.array([byte_of_value(step * 0.1) for step in range(3)], dtype=numpy.uint8)
    strips, column_nights, nights_of = [], [], []
    for run in range(1, runs + 1):
        wrong = 0
        for col in range(1, 7):
            failing = (number * 31 + run * 17 + col * 7) % 997 == 0
            wrong += int(failing.sum())
            kind = (number + col) % 3
            marks = numpy.where(failing, ord("W"), numpy.where(kind == 0, ord("~"), ord("="))).astype(numpy.uint8)
            coded = numpy.where(failing, byte_of_value(31.0), margins[kind]).astype(numpy.uint8)
            seconds = numpy.full(tests, byte_of_value(0.5), dtype=numpy.uint8)
            coded_strips = zip(("marks", "margins", "seconds"), (marks, coded, seconds), strict=True)
            packed = {name: zlib.compress(each.tobytes()) for name, each in coded_strips}
            strips.append({"run": run, "col": col, **packed})
            counts = {
                "cases": tests,
                "good": tests - int(failing.sum()),
                "failing": int(failing.sum()),
                "graphs": tests,
            }
            column_nights.append(
                {"run": run, "col": col, **counts, "compile_cpu": 90.0, "paired_cpu": 80.0, "other_cpu": 99.0}
            )
        counts = {"cases": 6 * tests, "good": 6 * tests - wrong, "failing": wrong, "still": wrong}
        nights_of.append({"run": run, "stream": 1, "verdict": "red", "sentence": "", "changed": (), **counts})
    for table, rows in ((schema.STRIPS, strips), (schema.COLUMN_NIGHTS, column_nights), (schema.NIGHTS, nights_of)):
        connection.execute(insert(table), rows)
    states = [
        {"stream": 1, "test": test, "col": col, "state": "flaky" if test * 6 + col < 100 else "good", "since": 1}
        for test in range(1, tests + 1)
        for col in range(1, 7)
    ]
    connection.execute(insert(schema.CASE_STATES), states)
    _faults(connection, tests, runs)


def _faults(connection: Connection, tests: int, runs: int) -> None:
    last = [test for test in range(1, tests + 1) if (test * 31 + runs * 17 + 7 * 3) % 997 == 0] or [1]
    same = {"stream": 1, "last": runs, "mark": "W", "aspect": "values", "suspect": "plumbline", "changed": ()}
    same |= {"why": "only plumbline fails", "columns": ("plumbline:inductor",)}
    faults = [
        {"fault": n, "first": max(1, runs - 20 * n), "fixed": 0 if n < 40 else runs - 1, **same} for n in range(120)
    ]
    connection.execute(insert(schema.FAULTS), faults)
    cases = [{"fault": n, "test": test, "col": 3} for n in range(120) for test in last]
    connection.execute(insert(schema.FAULT_CASES), cases)


def main() -> None:
    """Read the command line and measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["page", "rows"])
    parser.add_argument("--db", help="database; filled where it is new")
    parser.add_argument("--tests", type=int, default=2000)
    parser.add_argument("--nights", type=int, help="default: 60 for page, 834 for rows")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        if asked.what == "page":
            history = SyntheticHistory(nights=asked.nights or 60, tests=asked.tests)
            measure_page(asked.db, history, Path(folder))
        else:
            measure_rows(asked.db or str(Path(folder) / "large.sqlite"), asked.tests, asked.nights or 834)


if __name__ == "__main__":
    main()
