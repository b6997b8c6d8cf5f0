"""Stored rows as pandas tables, for notebooks and for questions that no report answers."""

from collections.abc import Sequence

import pandas

from .rows import CallRow, CaseRow, Row, RunRow, field_types
from .store import ResultStore


def frame_of(kind: type[Row], rows: Sequence[Row]) -> pandas.DataFrame:
    """Return rows as a table with one column a field; an empty one still has its columns."""
    names = list(field_types(kind))
    return pandas.DataFrame([[getattr(row, name) for name in names] for row in rows], columns=names)


def runs_frame(store: ResultStore) -> pandas.DataFrame:
    """Return all runs, newest first."""
    return frame_of(RunRow, store.runs())


def cases_frame(store: ResultStore, *run_ids: str) -> pandas.DataFrame:
    """Return the cases of the named runs, by default of all of them."""
    names = run_ids or tuple(run.run_id for run in store.runs())
    return frame_of(CaseRow, [case for run_id in names for case in store.cases(run_id)])


def calls_frame(store: ResultStore, run_id: str) -> pandas.DataFrame:
    """Return every judged call of one run."""
    return frame_of(CallRow, store.calls(run_id))
