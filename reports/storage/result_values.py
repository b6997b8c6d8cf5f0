"""Rows of cases and calls as values of the tables, and back."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, Row, Select, select

from ..rows import CallRow, CaseRow, identify_case
from .name_numbers import NameNumbers, RunNumbers, insert_new
from .schema import (
    ATTEMPTS,
    CALL_FIELDS,
    CALLS,
    COLUMNS,
    DETAIL_FIELDS,
    DETAILS,
    RESULT_FIELDS,
    RESULTS,
    RUNS,
    SOURCES,
    TESTS,
)

Key = tuple[int, int, int]
"""Numbers of a run, a test and a column."""

_NOTHING = CaseRow(run_id="", case_id="", test="", compiler="", backend="", outcome="")


def store_cases(
    connection: Connection, cases: Sequence[CaseRow], names: NameNumbers, runs: RunNumbers
) -> frozenset[tuple[str, str]]:
    """Insert cases that are not stored yet; return (run_id, case_id) of those that are new first attempts."""
    names.learn_tests(connection, (case.test for case in cases))
    names.learn_columns(connection, ((case.compiler, case.backend) for case in cases))
    keyed = [(_key(connection, case, names, runs), case) for case in cases]
    first = {key: case for key, case in reversed(keyed) if case.attempt <= 1}
    there = _stored_keys(connection, list(first))
    new = [(key, case) for key, case in keyed if case.attempt <= 1 and key not in there and first[key] is case]
    insert_new(connection, RESULTS, [_key_values(key) | _result_values(case) for key, case in new])
    insert_new(connection, DETAILS, [_key_values(key) | _detail_values(case) for key, case in new if has_details(case)])
    _store_sources(connection, new)
    retries = [(key, case) for key, case in keyed if case.attempt > 1]
    insert_new(
        connection,
        ATTEMPTS,
        [
            _key_values(key) | {"attempt": case.attempt} | _values(case, RESULT_FIELDS) | _detail_values(case)
            for key, case in retries
        ],
    )
    return frozenset((case.run_id, case.case_id) for _, case in new)


def store_calls(
    connection: Connection,
    calls: Iterable[CallRow],
    cases: Mapping[str, tuple[str, str, str]],
    names: NameNumbers,
    runs: RunNumbers,
) -> None:
    """Insert judged calls; cases: case_id -> test, compiler, backend, all of them learnt by `names`."""
    numbers: dict[Key, int] = {}
    values = []
    for call in calls:
        test, compiler, backend = cases[call.case_id]
        key = (runs.number(connection, call.run_id), names.test(test), names.column(compiler, backend))
        numbers[key] = numbers.get(key, 0) + 1
        values.append(_key_values(key) | {"number": numbers[key]} | {name: getattr(call, name) for name in CALL_FIELDS})
    insert_new(connection, CALLS, values)


def has_details(case: CaseRow) -> bool:
    """Return whether a case has anything to say beyond its result."""
    return any(getattr(case, name) != getattr(_NOTHING, name) for name in DETAIL_FIELDS)


def read_cases(connection: Connection, run_id: str) -> list[CaseRow]:
    """Return the first attempts of one run."""
    joined = RESULTS.outerjoin(
        DETAILS,
        (DETAILS.c.run == RESULTS.c.run) & (DETAILS.c.test == RESULTS.c.test) & (DETAILS.c.col == RESULTS.c.col),
    )
    columns = [RESULTS.c[name] for name in RESULT_FIELDS] + [DETAILS.c[name] for name in DETAIL_FIELDS]
    query = _named(columns, RESULTS, joined, run_id).order_by(RESULTS.c.test, RESULTS.c.col)
    rows = list(connection.execute(query))
    sources = _sources(connection, run_id)
    return [_case(row, run_id, 1, sources) for row in rows]


def read_attempts(connection: Connection, run_id: str) -> list[CaseRow]:
    """Return the retries of one run, in the order of tests, columns and attempts."""
    columns = [ATTEMPTS.c[name] for name in ("attempt", *RESULT_FIELDS, *DETAIL_FIELDS)]
    query = _named(columns, ATTEMPTS, ATTEMPTS, run_id).order_by(ATTEMPTS.c.test, ATTEMPTS.c.col, ATTEMPTS.c.attempt)
    return [_case(row, run_id, row.attempt, {}) for row in connection.execute(query)]


def read_calls(connection: Connection, run_id: str, case_id: str | None) -> list[CallRow]:
    """Return the judged calls of one run, or of one case of it."""
    query = _named([CALLS.c[name] for name in CALL_FIELDS], CALLS, CALLS, run_id)
    query = query.order_by(CALLS.c.test, CALLS.c.col, CALLS.c.number)
    if case_id is not None:
        wanted = [
            (row.test, row.col)
            for row in connection.execute(_named([], RESULTS, RESULTS, run_id))
            if identify_case(row.test_name, row.compiler, row.backend) == case_id
        ]
        if not wanted:
            return []
        query = query.where(CALLS.c.test == wanted[0][0], CALLS.c.col == wanted[0][1])
    calls = []
    for row in connection.execute(query):
        named = identify_case(row.test_name, row.compiler, row.backend)
        calls.append(CallRow(run_id=run_id, case_id=named, **{name: row._mapping[name] for name in CALL_FIELDS}))
    return calls


def _named(columns: list[Any], table: Any, joined: Any, run_id: str) -> Select[Any]:
    joined = joined.join(RUNS, RUNS.c.id == table.c.run).join(TESTS, TESTS.c.id == table.c.test)
    joined = joined.join(COLUMNS, COLUMNS.c.id == table.c.col)
    query = select(
        table.c.test, table.c.col, TESTS.c.name.label("test_name"), COLUMNS.c.compiler, COLUMNS.c.backend, *columns
    )
    return query.select_from(joined).where(RUNS.c.run_id == run_id)


def _case(row: Row[Any], run_id: str, attempt: int, sources: Mapping[int, str]) -> CaseRow:
    mapping = row._mapping
    fields = {name: mapping[name] for name in RESULT_FIELDS}
    if mapping["notes"] is not None:  # a row of details is whole, or it is not there
        fields |= {name: mapping[name] for name in DETAIL_FIELDS}
    test, compiler, backend = mapping["test_name"], mapping["compiler"], mapping["backend"]
    return CaseRow(
        run_id=run_id,
        case_id=identify_case(test, compiler, backend),
        test=test,
        compiler=compiler,
        backend=backend,
        source=sources.get(mapping["test"], ""),
        attempt=attempt,
        **fields,
    )


def _sources(connection: Connection, run_id: str) -> dict[int, str]:
    number = select(RUNS.c.id).where(RUNS.c.run_id == run_id).scalar_subquery()
    query = select(SOURCES.c.test, SOURCES.c.source).where(SOURCES.c.run <= number).order_by(SOURCES.c.run)
    return {row.test: row.source for row in connection.execute(query)}


def _store_sources(connection: Connection, cases: Sequence[tuple[Key, CaseRow]]) -> None:
    wanted = {(key[1], key[0]): case.source for key, case in cases if case.source}
    if not wanted:
        return
    tests = sorted({test for test, _ in wanted})
    latest: dict[int, tuple[int, str]] = {}
    for start in range(0, len(tests), 500):
        query = select(SOURCES).where(SOURCES.c.test.in_(tests[start : start + 500])).order_by(SOURCES.c.run)
        latest |= {row.test: (row.run, row.source) for row in connection.execute(query)}
    values = [
        {"test": test, "run": run, "source": source}
        for (test, run), source in wanted.items()
        if latest.get(test, (0, ""))[1] != source
    ]
    insert_new(connection, SOURCES, values)


def _key(connection: Connection, case: CaseRow, names: NameNumbers, runs: RunNumbers) -> Key:
    number = runs.number(connection, case.run_id)
    return number, names.test(case.test), names.column(case.compiler, case.backend)


def _stored_keys(connection: Connection, keys: Sequence[Key]) -> set[Key]:
    there: set[Key] = set()
    by_run: dict[int, list[int]] = {}
    for run, test, _ in keys:
        by_run.setdefault(run, []).append(test)
    for run, tests in by_run.items():
        unique = sorted(set(tests))
        for start in range(0, len(unique), 500):
            query = select(RESULTS.c.run, RESULTS.c.test, RESULTS.c.col).where(
                RESULTS.c.run == run, RESULTS.c.test.in_(unique[start : start + 500])
            )
            there.update((row.run, row.test, row.col) for row in connection.execute(query))
    return there


def _key_values(key: Key) -> dict[str, Any]:
    return dict(zip(("run", "test", "col"), key, strict=True))


def _values(case: CaseRow, names: Sequence[str]) -> dict[str, Any]:
    return {name: getattr(case, name) for name in names}


def _result_values(case: CaseRow) -> dict[str, Any]:
    return _values(case, RESULT_FIELDS) | {"failing": case.failing}


def _detail_values(case: CaseRow) -> dict[str, Any]:
    return _values(case, DETAIL_FIELDS)
