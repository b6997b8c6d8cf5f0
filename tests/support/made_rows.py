"""Rows with sensible defaults, for tests about one field at a time."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from plumbline.reports.rows import CallRow, CaseRow, RunRow, identify_case
from plumbline.reports.store import open_store


def run_row(run_id: str = "run-1", *, complete: bool = True, **fields: Any) -> RunRow:
    finished = "2026-01-02T03:05:00+00:00" if complete else None
    defaults = {
        "torch": "2.13.0+cpu",
        "python": "3.11.7",
        "plumbline": "0.1.0",
        "threads": 2,
        "commit": "0123456789abcdef",
    }
    row = RunRow(run_id=run_id, utc="2026-01-02T03:04:05+00:00", finished=finished)
    return replace(row, **{**defaults, **fields})


def case_row(test: str = "tests/test_a.py::test_a", backend: str = "inductor", **fields: Any) -> CaseRow:
    compiler = fields.pop("compiler", "plumbline")
    named = {"run_id": "run-1", "case_id": identify_case(test, compiler, backend)}
    defaults = {"verdict": "NOISE", "outcome": "passed", "margin": 0.2, "judged_calls": 2, "graphs": 1, "ops": 10}
    return CaseRow(test=test, compiler=compiler, backend=backend, **{**named, **defaults, **fields})


def wrong_case(test: str = "tests/test_a.py::test_a", backend: str = "inductor", **fields: Any) -> CaseRow:
    told = {
        "verdict": "WRONG",
        "outcome": "failed",
        "margin": 31.3,
        "stage": "inductor",
        "sentence": "differs by 31.3 units of noise at [3, 17]",
        "aspect": "values",
        "where": "output[0]",
        "user_file": "model.py",
        "user_line": 88,
        "boundary": "Attention",
        "t_element": 31.3,
        "worst_index": (3, 17),
        "actual": 0.48213,
        "eager": 0.510021,
        "reference": 0.51002,
        "error": 0.02789,
        "scale": 8.9e-4,
    }
    return case_row(test, backend, **{**told, **fields})


def call_row(case: CaseRow, call: int = 1, **fields: Any) -> CallRow:
    defaults = {"boundary": "Attention", "verdict": case.verdict, "margin": case.margin}
    return CallRow(run_id=case.run_id, case_id=case.case_id, call=call, **{**defaults, **fields})


def stored(place: Path, cases: list[CaseRow], *, run: RunRow | None = None, calls: list[CallRow] | None = None) -> Path:
    """Append one run with these cases (moved to that run) to the database at a path."""
    run = run or run_row()
    with open_store(str(place), write=True) as store:
        store.begin_run(replace(run, finished=None))
        moved = [replace(case, run_id=run.run_id) for case in cases]
        store.append(moved, [replace(call, run_id=run.run_id) for call in calls or []])
        if run.finished:
            store.finish_run(run.run_id, run.finished)
    return place
