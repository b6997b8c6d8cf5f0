"""Hypothesis strategies for every row class, drawn from the types of its fields."""

from dataclasses import replace

from hypothesis import strategies as st

from plumbline.reports.rows import CallRow, CaseRow, Event, Row, field_types, identify_case

scalars = st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False) | st.text()
BY_TYPE = {
    str: st.text(),
    bool: st.booleans(),
    int: st.integers(-(2**63), 2**63 - 1),
    float: st.floats(),
    str | None: st.none() | st.text(),
    float | None: st.none() | st.floats(),
    tuple[str, ...]: st.lists(st.text(), max_size=3).map(tuple),
    tuple[int, ...] | None: st.none() | st.lists(st.integers(0, 2**40), max_size=4).map(tuple),
    tuple[Event, ...]: st.lists(st.dictionaries(st.text(), scalars, max_size=3), max_size=2).map(tuple),
}


def rows(kind: type) -> st.SearchStrategy:
    return st.builds(kind, **{name: BY_TYPE[hint] for name, hint in field_types(kind).items()})


def as_stored(row: Row) -> Row:
    """Return the row as a database gives it back: NUL and lone surrogates as visible escapes."""

    def visible(value: object) -> object:
        if isinstance(value, str):
            return value.encode("utf-8", "backslashreplace").decode().replace("\0", "\\x00")
        return value

    return type(row)(**{name: visible(getattr(row, name)) for name in field_types(type(row))})


def of_run(run_id: str, case: CaseRow, call: CallRow) -> tuple[CaseRow, CallRow]:
    """Return any case and call as a first attempt of a run, under the name that its test has in a database."""
    stored = as_stored(case)
    case_id = identify_case(stored.test, stored.compiler, stored.backend)
    case = replace(case, run_id=run_id, case_id=case_id, attempt=1, source=case.source or "unknown")
    return case, replace(call, run_id=run_id, case_id=case_id)
