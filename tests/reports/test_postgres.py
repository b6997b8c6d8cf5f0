"""The store on PostgreSQL: needs a server, named by PLUMBLINE_TEST_POSTGRES, whose tables it may drop."""

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from hypothesis import given, settings
from sqlalchemy import create_engine

from plumbline.compiler.base.errors import UserError
from plumbline.reports.rows import CallRow, CaseRow, new_run_id
from plumbline.reports.schema import METADATA
from plumbline.reports.store import open_store
from support.any_rows import as_stored, of_run, rows
from support.made_rows import case_row, run_row

URL = os.environ.get("PLUMBLINE_TEST_POSTGRES", "")
pytestmark = pytest.mark.skipif(not URL, reason="PLUMBLINE_TEST_POSTGRES names no server (postgresql+psycopg://...)")


@pytest.fixture
def empty():
    engine = create_engine(URL)
    METADATA.drop_all(engine)
    engine.dispose()


@pytest.mark.usefixtures("empty")
def test_several_processes_may_make_the_tables_and_write_at_once():
    script = f"""
        import sys
        from support.made_rows import case_row, run_row
        from plumbline.reports.store import open_store
        name = sys.argv[1]
        with open_store({URL!r}, write=True) as store:
            store.begin_run(run_row(name, complete=False))
            for index in range(20):
                store.append([case_row(f"test_{{index}}", run_id=name)])
            store.finish_run(name)
    """
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(Path(__file__).parents[1]), *sys.path])}
    command = [sys.executable, "-c", textwrap.dedent(script)]
    writers = [subprocess.Popen([*command, f"run-{n}"], env=environment) for n in range(4)]
    assert [writer.wait(timeout=120) for writer in writers] == [0, 0, 0, 0]
    with open_store(URL) as store:
        assert [len(store.cases(run.run_id)) for run in store.runs()] == [20] * 4


@pytest.mark.usefixtures("empty")
def test_any_row_survives():
    with open_store(URL, write=True) as store:

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


@pytest.mark.usefixtures("empty")
def test_trouble_is_one_line():
    with pytest.raises(UserError, match="not a result database"):
        open_store(URL)
    with open_store(URL, write=True) as store:
        store.begin_run(run_row())
        with pytest.raises(UserError, match="recorded already"):
            store.begin_run(run_row())
        with pytest.raises(UserError, match="the database failed"):
            store.append([case_row(run_id="nobody")])
