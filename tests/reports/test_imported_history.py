"""History of other programs: JUnit and CSV become runs in the order of their times, each once, or one line says why."""

import os

import pytest

from plumbline.compiler.base.errors import UserError
from plumbline.reports.imported_history import ImportPlan, import_files
from plumbline.reports.store import open_store

JUNIT = """<testsuites><testsuite timestamp="{time}">
<testcase classname="tests.test_a.TestB" name="test_c[1.5-True]" time="1,000.5"/>
<testcase classname="tests.test_a" name="test_d" time="0.2"><failure message="off by&#10; 3">trace</failure></testcase>
<testcase file="tests/test_e.py" classname="x" name="test_f"><skipped type="pytest.xfail" message="known"/></testcase>
<testcase classname="tests.test_a" name="test_g"><skipped message="no GPU"/></testcase>
<testcase classname="tests.test_a" name="test_h"><error>setup
failed</error></testcase>
</testsuite></testsuites>"""


def imported(tmp_path, files, **plan):
    with open_store(str(tmp_path / "r.sqlite"), write=True) as store:
        lines = list(import_files(store, files, ImportPlan(**plan)))
        runs = store.runs()
        return lines, runs, {run.run_id: {c.test: c for c in store.cases(run.run_id)} for run in runs}


def test_a_junit_file_is_a_run(tmp_path):
    file = tmp_path / "a.xml"
    file.write_text(JUNIT.format(time="2026-01-02T03:04:05"))
    lines, (run,), cases = imported(tmp_path, [file], kind="junit", suite="unit", column="torch:eager", torch="2.11")
    assert (run.utc, run.kind, run.suite, run.torch) == ("2026-01-02T03:04:05+00:00", "import", "unit", "2.11")
    rows = cases[run.run_id]
    assert {test: row.outcome for test, row in rows.items()} == {
        "tests/test_a.py::TestB::test_c[1.5-True]": "passed",
        "tests/test_a.py::test_d": "failed",
        "tests/test_e.py::test_f": "xfailed",
        "tests/test_a.py::test_g": "skipped",
        "tests/test_a.py::test_h": "error",
    }
    assert rows["tests/test_a.py::TestB::test_c[1.5-True]"].test_seconds == 1000.5
    assert rows["tests/test_a.py::test_d"].sentence == "off by 3"
    assert rows["tests/test_a.py::test_h"].sentence == "setup failed"
    assert {row.column for row in rows.values()} == {"torch:eager"}
    assert "5 cases" in lines[0]


def test_runs_are_stored_in_the_order_of_their_times_and_once(tmp_path):
    files = []
    for day in (3, 1, 2):
        files.append(tmp_path / f"{day}.xml")
        files[-1].write_text(JUNIT.format(time=f"2026-01-0{day}T00:00:00+02:00"))
    lines, runs, _ = imported(tmp_path, files, kind="junit")
    assert sorted(run.utc for run in runs) == [
        f"{day}T22:00:00+00:00" for day in ("2025-12-31", "2026-01-01", "2026-01-02")
    ]
    assert [line.split(":")[0].split("/")[-1] for line in lines] == ["1.xml", "2.xml", "3.xml"]
    again, runs, _ = imported(tmp_path, files, kind="junit")
    assert len(runs) == 3
    assert all("imported before" in line for line in again)


def test_a_table_of_benchmarks_is_a_run(tmp_path):
    file = tmp_path / "accuracy.csv"
    file.write_text(
        "dev,name,accuracy,graph_breaks,seconds\ncpu,bert,pass,2,0.5\ncpu,vit,fail_accuracy,x,\ncpu,old,,0,0\n"
    )
    os.utime(file, (86400, 86400))
    _, (run,), cases = imported(tmp_path, [file], kind="csv")
    assert run.utc == "1970-01-02T00:00:00+00:00"
    rows = cases[run.run_id]
    assert {name: (row.outcome, row.sentence, row.breaks) for name, row in rows.items()} == {
        "bert": ("passed", "", 2),
        "vit": ("failed", "fail_accuracy", 0),
        "old": ("skipped", "", 0),
    }


@pytest.mark.parametrize(
    ("name", "utc"),
    [
        ("inductor_2026-11-22.csv", "2026-11-22T00:00:00+00:00"),
        ("20261122-accuracy.csv", "2026-11-22T00:00:00+00:00"),
        ("accuracy_2026_02_30_2026_03_01.csv", "2026-03-01T00:00:00+00:00"),
        ("build-1202611220.csv", "1970-01-02T00:00:00+00:00"),
        ("accuracy.csv", "1970-01-02T00:00:00+00:00"),
    ],
)
def test_a_date_in_the_name_counts_more_than_when_a_copy_was_made(tmp_path, name, utc):
    file = tmp_path / name
    file.write_text("name,accuracy\nbert,pass\n")
    os.utime(file, (86400, 86400))
    _, (run,), _ = imported(tmp_path, [file], kind="csv")
    assert run.utc == utc


@pytest.mark.parametrize(
    ("kind", "text", "told"),
    [
        ("junit", "<html/>", "<html>"),
        ("junit", "<testsuite", "not JUnit"),
        ("junit", "<!DOCTYPE a [<!ENTITY b 'c'>]><testsuite/>", "DOCTYPE"),
        ("csv", "a,b\n1,2\n", "columns"),
        ("csv", "", "columns"),
    ],
)
def test_what_cannot_be_read_stores_nothing(tmp_path, kind, text, told):
    good, bad = tmp_path / "good.xml", tmp_path / "bad"
    good.write_text(JUNIT.format(time="") if kind == "junit" else "name,status\na,ok\n")
    bad.write_text(text)
    with open_store(str(tmp_path / "r.sqlite"), write=True) as store:
        with pytest.raises(UserError, match=told):
            list(import_files(store, [good, bad], ImportPlan(kind=kind)))
        with pytest.raises(UserError, match="no column"):
            list(import_files(store, [good], ImportPlan(kind=kind, column="inductor")))
        assert store.runs() == []
