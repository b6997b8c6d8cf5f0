"""A database of an earlier schema opens, keeps everything, and is moved forward once."""

import math
import sqlite3
from dataclasses import replace
from pathlib import Path

import pytest

from plumbline.reports.rows import SCHEMA_VERSION
from plumbline.reports.store import open_store
from support.made_rows import case_row, run_row, wrong_case

OLD = Path(__file__).parent / "old_schemas"


@pytest.fixture
def old(tmp_path):
    place = tmp_path / "old.sqlite"
    with sqlite3.connect(place) as connection:
        connection.executescript((OLD / "schema_1.sql").read_text(encoding="utf-8"))
    connection.close()
    return place


EXPECTED = [
    # as written by the code of schema 1
    wrong_case(actual=math.nan, eager=-0.0, events=({"kind": "graph_break", "reason": "print()"},), notes=("a note",)),
    case_row(backend="eager", verdict="EQUAL", margin=0.0),
    case_row("tests/test_b.py::test_b[x\"y'z]", margin=math.inf, test_seconds=1.25, breaks=2),
    case_row("tests/test_c.py::test_c", compiler="torch", outcome="skipped", verdict="", margin=0.0, graphs=0, ops=0),
]


@pytest.mark.parametrize("write", [False, True])
def test_nothing_is_lost(old, write):
    with open_store(str(old), write=write) as store:
        assert [run.run_id for run in store.runs()] == ["run-1", "run-0"]
        assert store.run("run-0") == run_row("run-0")
        assert not store.run("run-1").complete
        assert repr(store.cases("run-0")) == repr([replace(case, run_id="run-0") for case in EXPECTED])
        for run in ("run-0", "run-1"):
            calls = store.calls(run)
            assert [(call.call, call.verdict, call.margin) for call in calls] == [
                (1, "NOISE", 0.1),
                (2, "WRONG", 31.3),
                (1, "EQUAL", 0.0),
            ]


def test_it_is_of_todays_schema_afterwards(old):
    open_store(str(old)).close()
    with sqlite3.connect(old) as connection:
        assert connection.execute("SELECT schema_version FROM plumbline_meta").fetchall() == [(SCHEMA_VERSION,)]
        tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    connection.close()
    assert not tables & {"plumbline_cases", "plumbline_calls"}
    with open_store(str(old), write=True) as store:
        store.begin_run(run_row("new"))
        store.append([case_row(run_id="new")])
        assert len(store.cases("new")) == 1


def test_results_of_the_second_schema_have_no_memory_and_are_all_there(tmp_path):
    place = tmp_path / "old.sqlite"
    with sqlite3.connect(place) as connection:
        connection.executescript((OLD / "schema_2.sql").read_text(encoding="utf-8"))
    connection.close()
    with open_store(str(place), write=True) as store:
        (run,) = store.runs()
        assert (run.run_id, run.kind, run.suite, run.complete) == ("night-1", "nightly", "s", True)
        right, wrong = case_row(run_id="night-1"), wrong_case(run_id="night-1", backend="eager")
        assert sorted(store.cases("night-1"), key=lambda case: case.backend) == [wrong, right]
        store.begin_run(run_row("new"))
        store.append([case_row(run_id="new", peak_bytes=5 << 30)])
        assert [case.peak_bytes for case in store.cases("new")] == [5 << 30]


def test_a_migration_that_fails_leaves_the_old_database(old, monkeypatch):
    def fails(*args):
        raise RuntimeError("power cut")

    monkeypatch.setattr("plumbline.reports.storage.migrations.store_calls", fails)
    before = dump(old)
    with pytest.raises(RuntimeError):
        open_store(str(old))
    assert dump(old) == before
    monkeypatch.undo()
    with open_store(str(old)) as store:
        assert len(store.calls("run-0")) == 3


def dump(place):
    with sqlite3.connect(place) as connection:
        text = list(connection.iterdump())
    connection.close()
    return text
