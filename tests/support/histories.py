"""What a database says about its nights, as plain values that can be compared."""

from typing import Any

from plumbline.reports import history
from plumbline.reports.store import ResultStore


def everything(store: ResultStore) -> list[Any]:
    """Return all that can be asked about the nights of every stream."""
    said: list[Any] = []
    for stream in history.streams(store):
        nights = history.nights(store, stream, 1000)
        runs = [night.number for night in nights]
        said += [nights, history.column_nights(store, runs), history.strips(store, runs)]
        said += [history.states(store, stream), history.faults(store, stream, only_open=False)]
        said += [history.renames(store, stream), history.tests_of(store, stream)]
        said += [history.findings(store, run) for run in runs]
        said += [history.fault(store, each.fault) for each in history.faults(store, stream, only_open=False)]
    return said
