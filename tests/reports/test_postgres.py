"""The store on PostgreSQL: on a server that the test starts, or one that PLUMBLINE_TEST_POSTGRES names.

The tables of the latter are dropped.
"""

import contextlib
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from hypothesis import given, settings
from sqlalchemy import create_engine

from plumbline.compiler.base.errors import UserError
from plumbline.reports.nights import rebuild
from plumbline.reports.rows import CallRow, CaseRow, new_run_id
from plumbline.reports.storage.schema import METADATA
from plumbline.reports.store import open_store
from support.any_rows import as_stored, of_run, rows
from support.histories import everything
from support.made_rows import case_row, run_row
from support.postgres_server import postgres_server, server_binaries
from support.synthetic_history import SyntheticHistory, write_history

pytest.importorskip("psycopg", reason="no driver for PostgreSQL (pip install 'plumbline[postgres]')")
NAMED = os.environ.get("PLUMBLINE_TEST_POSTGRES", "")
NO_SERVER = "no PostgreSQL server here (no initdb), and PLUMBLINE_TEST_POSTGRES names none"
pytestmark = pytest.mark.skipif(not NAMED and server_binaries() is None, reason=NO_SERVER)


@pytest.fixture(scope="module")
def server():
    with contextlib.nullcontext(NAMED) if NAMED else postgres_server() as url:
        yield url


@pytest.fixture
def url(server):
    engine = create_engine(server)
    METADATA.drop_all(engine)
    engine.dispose()
    return server


def test_several_processes_may_make_the_tables_and_write_at_once(url):
    script = f"""
        import sys
        from support.made_rows import case_row, run_row
        from plumbline.reports.store import open_store
        name = sys.argv[1]
        with open_store({url!r}, write=True) as store:
            store.begin_run(run_row(name, complete=False))
            for index in range(20):
                store.append([case_row(f"test_{{index}}", run_id=name)])
            store.finish_run(name)
    """
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(Path(__file__).parents[1]), *sys.path])}
    command = [sys.executable, "-c", textwrap.dedent(script)]
    writers = [subprocess.Popen([*command, f"run-{n}"], env=environment) for n in range(4)]
    assert [writer.wait(timeout=120) for writer in writers] == [0, 0, 0, 0]
    with open_store(url) as store:
        assert [len(store.cases(run.run_id)) for run in store.runs()] == [20] * 4


def test_any_row_survives(url):
    with open_store(url, write=True) as store:

        @settings(max_examples=40, deadline=None)
        @given(rows(CaseRow), rows(CallRow))
        def survives(case, call):
            run = run_row(new_run_id())
            store.begin_run(run)
            case, call = of_run(run.run_id, case, call)
            store.append([case], [call])
            assert repr(store.cases(run.run_id)) == repr([as_stored(case)])
            assert repr(store.calls(run.run_id)) == repr([as_stored(call)])

        survives()


def test_trouble_is_one_line(url):
    with pytest.raises(UserError, match="not a result database"):
        open_store(url)
    with open_store(url, write=True) as store:
        store.begin_run(run_row())
        with pytest.raises(UserError, match="recorded already"):
            store.begin_run(run_row())
        with pytest.raises(UserError, match="not begun here"):
            store.append([case_row(run_id="nobody")])


def test_shards_of_one_run_merge(url):
    script = f"""
        import sys
        from support.made_rows import case_row, run_row
        from plumbline.reports.store import open_store
        shard = int(sys.argv[1])
        with open_store({url!r}, write=True) as store:
            store.begin_run(run_row("night", complete=False, shards=3), shard=shard)
            for index in range(10):
                names = (f"test_{{index}}", f"test_{{shard}}_{{index}}")
                rows = [case_row(name, run_id="night") for name in names]
                store.append(rows)
                store.append(rows)  # whoever does not know whether rows arrived sends them again
            store.finish_run("night", shard=shard)
    """
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(Path(__file__).parents[1]), *sys.path])}
    command = [sys.executable, "-c", textwrap.dedent(script)]
    writers = [subprocess.Popen([*command, str(n)], env=environment) for n in (1, 2, 3)]
    assert [writer.wait(timeout=120) for writer in writers] == [0, 0, 0]
    with open_store(url) as store:
        (run,) = store.runs()
        assert run.complete
        assert len(store.cases("night")) == 10 + 30


def test_a_history_says_the_same_as_in_sqlite(url, tmp_path):
    history = SyntheticHistory(nights=4, tests=24)
    told = []
    for place in (url, str(tmp_path / "r.sqlite")):
        write_history(place, history)
        with open_store(place, write=True) as store:
            before = everything(store)
            rebuild(store)
            assert everything(store) == before
            told.append(before)
    assert told[0] == told[1]


def test_no_message_or_row_has_the_password(url):
    with open_store(url, write=True) as store:
        assert "s3cret" not in store.place
        store.engine.dispose()
    lost = url.replace("host=", "host=/nowhere")
    with pytest.raises(UserError) as error:
        open_store(lost)
    assert "s3cret" not in str(error.value)
