"""The store: what is appended is read back exactly, what cannot be is one line and leaves no trace."""

import os
import signal
import sqlite3
import subprocess
import sys
import textwrap
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plumbline.compiler.base.errors import UserError
from plumbline.reports.rows import CallRow, CaseRow, RunRow, field_types, new_run_id
from plumbline.reports.store import SchemaMismatch, open_store
from support.any_rows import as_stored, of_run, rows
from support.made_rows import call_row, case_row, run_row, stored, wrong_case


def one_line(error: pytest.ExceptionInfo[UserError]) -> str:
    text = str(error.value)
    assert "\n" not in text
    assert error.value.hint
    return text


def test_rows_come_back_as_they_were(tmp_path):
    cases = [wrong_case(), case_row(backend="eager", verdict="EQUAL", margin=0.0)]
    calls = [call_row(cases[0], 1, verdict="NOISE", margin=0.1), call_row(cases[0], 2), call_row(cases[1], 1)]
    stored(tmp_path / "r.sqlite", cases, calls=calls)
    with open_store(str(tmp_path / "r.sqlite")) as store:
        assert store.runs() == [run_row()]
        assert store.cases("run-1") == cases
        assert store.calls("run-1") == calls
        assert store.calls("run-1", cases[0].case_id) == calls[:2]
        assert store.cases("another") == []


@pytest.fixture(scope="module")
def memory_store():
    with open_store("sqlite://", write=True) as store:
        yield store


@settings(max_examples=50, deadline=None)
@given(case=rows(CaseRow), call=rows(CallRow))
def test_any_row_survives_the_database(memory_store, case, call):
    # NaN, infinities, -0.0, NUL and lone surrogates included; the latter two come back as visible escapes.
    run = run_row(new_run_id())
    case, call = of_run(run.run_id, case, call)
    memory_store.begin_run(run)
    memory_store.append([case], [call])
    (case_back,), (call_back,) = memory_store.cases(run.run_id), memory_store.calls(run.run_id)
    assert repr(case_back) == repr(as_stored(case))
    assert repr(call_back) == repr(as_stored(call))


@pytest.mark.parametrize(
    "value", [float("nan"), float("inf"), float("-inf"), -0.0, 0.0, 5e-324, 1.7976931348623157e308]
)
def test_the_floats_that_databases_lose_are_kept(memory_store, value):
    run = run_row(new_run_id())
    memory_store.begin_run(run)
    memory_store.append([wrong_case(run_id=run.run_id, actual=value)])
    assert repr(memory_store.cases(run.run_id)[0].actual) == repr(value)


def test_rows_can_be_appended_bit_by_bit_and_read_meanwhile(tmp_path):
    place = str(tmp_path / "r.sqlite")
    with open_store(place, write=True) as writer:
        writer.begin_run(run_row(complete=False))
        for index in range(3):
            writer.append([case_row(f"t.py::test_{index}")])
            with open_store(place) as reader:
                assert len(reader.cases("run-1")) == index + 1
                assert not reader.run().complete
        writer.finish_run("run-1", "2026-01-02T03:05:00+00:00")
        assert writer.run() == run_row()


def test_a_run_that_was_killed_is_readable_and_says_so(tmp_path):
    script = f"""
        import os, signal
        from support.made_rows import case_row, run_row
        from plumbline.reports.store import open_store
        store = open_store({str(tmp_path / "r.sqlite")!r}, write=True)
        store.begin_run(run_row(complete=False))
        store.append([case_row()])
        with store.transaction() as connection:  # dies in the middle of a transaction
            connection.exec_driver_sql("DELETE FROM plumbline_results")
            os.kill(os.getpid(), signal.SIGKILL)
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(script)], env=with_tests_on_path(), check=False)
    assert done.returncode == -signal.SIGKILL
    with open_store(str(tmp_path / "r.sqlite")) as store:
        assert not store.run().complete
        assert store.cases("run-1") == [case_row()]


def with_tests_on_path() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}


def test_a_failed_append_leaves_nothing_of_itself(tmp_path):
    with open_store(str(tmp_path / "r.sqlite"), write=True) as store:
        store.begin_run(run_row())
        unbearable = replace(case_row("second"), graphs=2**70)  # no database column holds it
        with pytest.raises(UserError, match="too large"):
            store.append([case_row("first"), unbearable])
        assert store.cases("run-1") == []
        store.append([case_row("third")])
        assert [case.test for case in store.cases("run-1")] == ["third"]


def test_several_processes_write_to_one_file(tmp_path):
    place = tmp_path / "r.sqlite"
    script = f"""
        import sys
        from support.made_rows import case_row, run_row
        from plumbline.reports.store import open_store
        name = sys.argv[1]
        with open_store({str(place)!r}, write=True) as store:
            store.begin_run(run_row(name, complete=False))
            for index in range(20):
                store.append([case_row(f"test_{{index}}", run_id=name)])
            store.finish_run(name)
    """
    command = [sys.executable, "-c", textwrap.dedent(script)]
    writers = [subprocess.Popen([*command, f"run-{n}"], env=with_tests_on_path()) for n in range(3)]
    assert [writer.wait(timeout=120) for writer in writers] == [0, 0, 0]
    with open_store(str(place)) as store:
        assert sorted(run.run_id for run in store.runs()) == ["run-0", "run-1", "run-2"]
        assert all(run.complete for run in store.runs())
        assert all(len(store.cases(run.run_id)) == 20 for run in store.runs())


def test_a_writer_waits_for_another_ones_transaction(tmp_path, monkeypatch):
    place = stored(tmp_path / "r.sqlite", [case_row()])
    monkeypatch.setattr("plumbline.reports.storage.database.LOCK_SECONDS", 0.05)
    holder = sqlite3.connect(place, isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    with pytest.raises(UserError, match="another process holds the database") as error:
        open_store(str(place), write=True)
    one_line(error)
    holder.execute("ROLLBACK")
    holder.close()
    open_store(str(place), write=True).close()


@pytest.mark.parametrize("form", ["{path}", "sqlite:///{path}", "~/{name}"])
def test_places_can_be_written_in_several_ways(tmp_path, monkeypatch, form):
    monkeypatch.setenv("HOME", str(tmp_path))
    place = form.format(path=tmp_path / "r.sqlite", name="r.sqlite")
    stored(place, [case_row()])
    with open_store(str(tmp_path / "r.sqlite")) as store:
        assert len(store.cases("run-1")) == 1
    assert [file.name for file in tmp_path.iterdir()] == ["r.sqlite"]


def test_a_path_may_hold_what_a_url_may_not(tmp_path):
    place = tmp_path / "50% of #1?" / "ré sults.sqlite"
    stored(place, [case_row()])
    with open_store(str(place)) as store:
        assert len(store.runs()) == 1


def test_writing_makes_parent_directories_reading_makes_nothing(tmp_path):
    place = tmp_path / "a" / "b" / "r.sqlite"
    with pytest.raises(UserError, match="no result database here"):
        open_store(str(place))
    assert list(tmp_path.iterdir()) == []
    open_store(str(place), write=True).close()
    assert place.exists()


NOT_OURS = {
    "text": b"this is not a database, " * 100,
    "a header and then noise": b"SQLite format 3\0" + b"\xff" * 4000,
    "a short file": b"SQL",
}


@pytest.mark.parametrize("write", [False, True])
@pytest.mark.parametrize("content", NOT_OURS.values(), ids=NOT_OURS.keys())
def test_a_file_that_is_no_database_is_refused_and_left_alone(tmp_path, content, write):
    place = tmp_path / "r.sqlite"
    place.write_bytes(content)
    with pytest.raises(UserError) as error:
        open_store(str(place), write=write)
    assert str(place) in one_line(error)
    assert place.read_bytes() == content
    assert list(tmp_path.iterdir()) == [place]


def test_a_damaged_database_is_told_in_one_line(tmp_path):
    place = stored(tmp_path / "r.sqlite", [case_row(f"test_{n}", sentence="x" * 500) for n in range(200)])
    content = bytearray(place.read_bytes())
    content[4096 * 6 :] = b"\x5a" * len(content[4096 * 6 :])
    place.write_bytes(content)
    with pytest.raises(UserError) as error, open_store(str(place)) as store:
        store.cases("run-1")
    assert "damaged" in one_line(error)


@pytest.mark.parametrize("write", [False, True])
def test_another_schema_version_is_refused_and_left_alone(tmp_path, write):
    place = stored(tmp_path / "r.sqlite", [case_row()])
    with sqlite3.connect(place) as connection:
        connection.execute("UPDATE plumbline_meta SET schema_version = 99")
    connection.close()
    before = place.read_bytes()
    with pytest.raises(SchemaMismatch, match="schema version 99"):
        open_store(str(place), write=write)
    assert place.read_bytes() == before


def test_a_run_of_another_schema_is_not_stored(tmp_path):
    with open_store(str(tmp_path / "r.sqlite"), write=True) as store:
        with pytest.raises(SchemaMismatch):
            store.begin_run(run_row(schema_version=99))
        assert store.runs() == []


@pytest.mark.parametrize("write", [False, True])
def test_somebody_elses_database_is_refused_and_left_alone(tmp_path, write):
    place = tmp_path / "app.sqlite"
    with sqlite3.connect(place) as connection:
        connection.execute("CREATE TABLE customers (name TEXT)")
    connection.close()
    before = place.read_bytes()
    with pytest.raises(UserError, match="customers"):
        open_store(str(place), write=write)
    assert place.read_bytes() == before


def test_an_empty_file_becomes_a_database_when_written_to(tmp_path):
    # What `mktemp` and Python's tempfile leave.
    place = tmp_path / "r.sqlite"
    place.touch()
    with pytest.raises(UserError, match="not a result database"):
        open_store(str(place))
    assert len(open_store(str(stored(place, [case_row()]))).runs()) == 1


def test_places_that_cannot_be(tmp_path):
    (tmp_path / "file").write_text("in the way")
    (tmp_path / "folder").mkdir()
    for place, what in [
        (tmp_path / "folder", "is a directory"),
        (tmp_path / "file" / "r.sqlite", "cannot make the directory"),
        (Path("/proc/nothing/r.sqlite"), "cannot make the directory"),
    ]:
        with pytest.raises(UserError, match=what) as error:
            open_store(str(place), write=True)
        one_line(error)


def test_a_database_that_cannot_be_written_is_told(tmp_path):
    place = stored(tmp_path / "r.sqlite", [case_row()])
    with open_store(str(place)) as store, pytest.raises(UserError, match="cannot be written") as error:
        store.append([case_row("another")])
    one_line(error)
    with open_store(str(place)) as store:
        assert len(store.cases("run-1")) == 1


@pytest.mark.parametrize(
    ("url", "what"),
    [
        ("nonsense://host/db", "no driver"),
        ("mysql+nosuchdriver://host/db", "no driver"),
        ("://", "not a database URL"),
    ],
)
def test_urls_that_cannot_be(url, what):
    with pytest.raises(UserError, match=what) as error:
        open_store(url)
    one_line(error)


def test_a_missing_postgres_driver_is_told_with_its_name_and_without_the_password(monkeypatch):
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(UserError, match=r"plumbline\[postgres\]") as error:
        open_store("postgresql://ann:secret@host/db")
    assert "secret" not in one_line(error)


def test_runs_are_found_by_the_start_of_their_name(tmp_path):
    place = tmp_path / "r.sqlite"
    for name in ("2026a", "2026b", "2027", "2026"):
        stored(place, [case_row()], run=run_row(name))
    with open_store(str(place)) as store:
        assert [run.run_id for run in store.runs(limit=2)] == ["2026", "2027"]
        assert store.run().run_id == "2026"
        assert store.run("2026").run_id == "2026"
        assert store.run("2027").run_id == "2027"
        assert store.run("2026a").run_id == "2026a"
        with pytest.raises(UserError, match="no run 'x'"):
            store.run("x")
        with pytest.raises(UserError, match="4 runs begin with '20'"):
            store.run("20")


def test_a_database_without_runs_says_so():
    with (
        open_store("sqlite://", write=True) as store,
        pytest.raises(UserError, match="no runs recorded"),
    ):
        store.run()


def test_one_run_cannot_be_begun_twice(tmp_path):
    with open_store(str(tmp_path / "r.sqlite"), write=True) as store:
        store.begin_run(run_row())
        with pytest.raises(UserError, match="recorded already"):
            store.begin_run(run_row())


def test_history_is_oldest_first_and_ends_with_the_run(tmp_path):
    place = tmp_path / "r.sqlite"
    for index in range(4):
        stored(place, [case_row(margin=float(index))], run=run_row(f"run-{index}"))
    case_id = case_row().case_id
    with open_store(str(place)) as store:
        assert store.history("run-2", limit=2) == {case_id: [("run-1", "passed", 1.0), ("run-2", "passed", 2.0)]}
        assert len(store.history("run-3")[case_id]) == 4
        assert store.history("unknown") == {}


@given(st.lists(st.sampled_from(["passed", "failed"]), max_size=5))
@settings(max_examples=10, deadline=None)
def test_frames_have_one_row_a_case_and_one_column_a_field(outcomes):
    from plumbline.reports.frames import calls_frame, cases_frame, runs_frame

    cases = [case_row(f"test_{n}", outcome=outcome) for n, outcome in enumerate(outcomes)]
    with open_store("sqlite://", write=True) as store:
        store.begin_run(run_row())
        store.append(cases, [call_row(case) for case in cases])
        frame = cases_frame(store)
        assert list(frame.columns) == list(field_types(CaseRow))
        assert list(frame["outcome"]) == outcomes
        assert len(calls_frame(store, "run-1")) == len(cases)
        assert list(runs_frame(store)["run_id"]) == ["run-1"]
        assert set(runs_frame(store).columns) == set(field_types(RunRow))
