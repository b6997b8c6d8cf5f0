"""No finished row is lost or doubled: kill -9, a database that goes away, a full disk, a clock that jumps."""

import os
import resource
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from plumbline.pytest_plugin.recording.result_recorder import ResultRecorder
from plumbline.pytest_plugin.recording.run_plan import RunPlan
from plumbline.reports.nights import judge_run
from plumbline.reports.spool import Spool, send_waiting, spool_folders, waiting
from plumbline.reports.storage.database import DatabaseTrouble
from plumbline.reports.store import open_store
from support.made_rows import call_row, case_row, run_row
from support.postgres_server import running_server, server_binaries

ENVIRONMENT = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}
TESTS = [f"t.py::test_{n}" for n in range(12)]


@pytest.fixture(autouse=True)
def own_spool(tmp_path, monkeypatch):
    monkeypatch.setenv("PLUMBLINE_SPOOL", str(tmp_path / "spool"))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)


def folders(tmp_path):
    return spool_folders(tmp_path)


def stored_tests(place):
    with open_store(str(place), write=True) as store:
        send_waiting(store, folders(Path(place).parent))
        assert len({call.case_id for call in store.calls("run-1")}) == len(store.calls("run-1"))
        return [case.test for case in store.cases("run-1")]


SCRIPT = """
    import os, signal
    from pathlib import Path
    from plumbline.pytest_plugin.recording import result_recorder as r
    from plumbline.pytest_plugin.recording.run_plan import RunPlan
    from support.made_rows import call_row, case_row, run_row
    if {late}:
        r.STORE_SECONDS = 1e9  # everything waits, as between two transactions
    recorder = r.ResultRecorder({place!r}, Path({root!r}), RunPlan())
    recorder.begin(run_row(complete=False))
    for n in range(12):
        if n == {killed}:
            os.kill(os.getpid(), signal.SIGKILL)
        case = case_row(f"t.py::test_{{n}}")
        recorder.add(case, [] if {late} else [call_row(case)])
"""


@pytest.mark.parametrize(("late", "killed"), [(True, 7), (False, 5)])
def test_kill_9_loses_no_finished_row(tmp_path, late, killed):
    place = tmp_path / "r.sqlite"
    script = textwrap.dedent(SCRIPT).format(late=late, killed=killed, place=str(place), root=str(tmp_path))
    done = subprocess.run(
        [sys.executable, "-c", script], env={**ENVIRONMENT, "PLUMBLINE_SPOOL": spool(tmp_path)}, check=False
    )
    assert done.returncode == -signal.SIGKILL
    assert stored_tests(place) == TESTS[:killed]
    assert stored_tests(place) == TESTS[:killed]
    assert waiting(folders(tmp_path)) == []
    with open_store(str(place)) as store:
        assert not store.run("run-1").complete


def spool(tmp_path):
    return str(tmp_path / "spool")


def test_kill_9_between_storing_and_forgetting_doubles_nothing(tmp_path, monkeypatch):
    place = tmp_path / "r.sqlite"
    recorder = ResultRecorder(str(place), tmp_path, RunPlan())
    recorder.begin(run_row(complete=False))
    monkeypatch.setattr(Spool, "sent", lambda self: None)  # as if killed right after the commit
    case = case_row(TESTS[0])
    recorder.add(case, [call_row(case)])
    recorder.close()
    monkeypatch.setattr("plumbline.reports.spool._alive", lambda pid: False)
    assert stored_tests(place) == TESTS[:1]


def recorded(place, root, fail_after, cure=lambda: None):
    """Record twelve tests into a database that fails after some; return the recorder."""
    recorder = ResultRecorder(str(place), root, RunPlan(kind="nightly"))
    run = run_row(complete=False, kind="nightly")
    recorder.begin(run)
    for number, test in enumerate(TESTS):
        if number == fail_after:
            cure()
        case = case_row(test)
        recorder.add(case, [call_row(case)])
    recorder.finish(run, "2026-01-02T03:05:00+00:00", "")
    return recorder


def test_a_database_that_goes_away(tmp_path, monkeypatch):
    place = tmp_path / "r.sqlite"
    recorder = recorded(place, tmp_path, 4, lambda: break_connections(monkeypatch))
    words = recorder.words()
    assert "not stored" in words
    assert "plumbline spool" in words
    recorder.close()
    monkeypatch.undo()
    monkeypatch.setenv("PLUMBLINE_SPOOL", spool(tmp_path))
    monkeypatch.setattr("plumbline.reports.spool._alive", lambda pid: False)
    assert stored_tests(place) == TESTS
    with open_store(str(place), write=True) as store:
        assert store.run("run-1").complete  # its end waited, too
        assert judge_run(store, "run-1").verdict == "green"


def break_connections(monkeypatch):
    def lost(self):
        raise DatabaseTrouble("the database failed", why="server closed the connection unexpectedly", hint="try again")

    monkeypatch.setattr("plumbline.reports.storage.database.Database.transaction", lost)


def test_a_server_that_is_not_there_when_the_night_begins(tmp_path):
    pytest.importorskip("psycopg", reason="no driver for PostgreSQL (pip install 'plumbline[postgres]')")
    recorder = recorded("postgresql://ann:s3cret@/results?host=/nowhere", tmp_path, -1)
    (kept,) = list((tmp_path / "spool").iterdir())
    text = kept.read_text(encoding="utf-8")
    assert text.count('"case"') == len(TESTS)
    assert "s3cret" not in text + recorder.words()


@pytest.mark.skipif(server_binaries() is None, reason="no PostgreSQL server here (no initdb)")
def test_a_server_that_crashes_in_the_night_and_is_started_again(tmp_path, monkeypatch):
    pytest.importorskip("psycopg", reason="no driver for PostgreSQL (pip install 'plumbline[postgres]')")
    monkeypatch.setattr("plumbline.pytest_plugin.recording.result_recorder.STORE_SECONDS", 0.0)  # row by row
    with running_server() as server:
        recorder = recorded(server.url, tmp_path, 4, server.end)
        assert "not stored" in recorder.words()
        recorder.close()
        server.start()
        monkeypatch.setattr("plumbline.reports.spool._alive", lambda pid: False)
        with open_store(server.url, write=True) as store:
            before = [case.test for case in store.cases("run-1")]
            assert before == TESTS[:4]  # what was stored before has outlived the crash
            for _ in range(2):
                send_waiting(store, folders(tmp_path))
                assert [case.test for case in store.cases("run-1")] == TESTS
            assert len({call.case_id for call in store.calls("run-1")}) == len(store.calls("run-1")) == len(TESTS)
            assert store.run("run-1").complete
            assert judge_run(store, "run-1").verdict == "green"


FULL = """
    import resource
    from pathlib import Path
    from plumbline.pytest_plugin.recording.result_recorder import ResultRecorder
    from plumbline.pytest_plugin.recording.run_plan import RunPlan
    from support.made_rows import call_row, case_row, run_row
    recorder = ResultRecorder({place!r}, Path({root!r}), RunPlan())
    run = run_row(complete=False)
    recorder.begin(run)
    for n in range(12):
        if n == 6:  # no file may grow beyond the size of the database: what a full disk is to SQLite
            size = Path({place!r}).stat().st_size
            resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
        case = case_row(f"t.py::test_{{n}}", sentence="x" * 20_000)
        recorder.add(case, [call_row(case)])
    recorder.finish(run, "2026-01-02T03:05:00+00:00", "")
    print(recorder.words())
"""


def test_a_full_disk(tmp_path):
    place = tmp_path / "r.sqlite"
    script = textwrap.dedent(FULL).format(place=str(place), root=str(tmp_path))
    environment = {**ENVIRONMENT, "PLUMBLINE_SPOOL": spool(tmp_path)}
    done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True)
    assert "not stored" in done.stdout
    assert "lost" not in done.stdout
    assert stored_tests(place) == TESTS
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[0] == resource.RLIM_INFINITY


def test_rows_that_no_disk_takes_are_counted(tmp_path, monkeypatch):
    file = tmp_path / "in the way"
    file.write_text("")
    monkeypatch.setattr(
        "plumbline.pytest_plugin.recording.result_recorder.spool_folders", lambda root: [file / "spool"]
    )
    recorder = recorded(tmp_path / "r.sqlite", tmp_path, 4, lambda: break_connections(monkeypatch))
    assert "12 rows are lost" in recorder.words() or "8 rows are lost" in recorder.words()


def test_a_line_that_was_cut_off_is_left_out(tmp_path):
    waits = Spool(folders(tmp_path), str(tmp_path / "r.sqlite"), "run-1")
    waits.begin(run_row(complete=False), 1)
    for test in TESTS[:2]:
        waits.add(case_row(test), [])
    waits.close()
    text = waits.path.read_text().replace(f'"pid": {os.getpid()}', '"pid": 999999999')
    waits.path.write_text(text[:-30])
    assert [each.cases for each in waiting(folders(tmp_path))] == [1]
    assert stored_tests(tmp_path / "r.sqlite") == TESTS[:1]


def test_a_clock_that_jumps_back_changes_no_order(tmp_path):
    with open_store(str(tmp_path / "r.sqlite"), write=True) as store:
        for number, utc in enumerate(
            ("2026-05-02T02:00:00+00:00", "1970-01-01T00:00:00+00:00", "2026-05-03T02:00:00+00:00")
        ):
            run = run_row(f"n{number}", complete=False, kind="nightly", utc=utc, commit=str(number))
            store.begin_run(run)
            store.append([case_row(run_id=run.run_id, breaks=number)])
            store.finish_run(run.run_id, utc)
            report = judge_run(store, run.run_id)
            assert report.compared == 1
            assert report.red == (number > 0)
        assert [run.run_id for run in store.runs()] == ["n2", "n1", "n0"]
