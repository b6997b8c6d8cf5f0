"""Rows on disk: a run that was cut goes on, another run does not mix with it."""

import json

import pytest

from plumbline.compiler.base.errors import UserError
from plumbline.fuzz.operator_sweep.row_store import RowStore


def row(name, *faults):
    return {"task": name, "faults": list(faults)}


@pytest.fixture
def file(tmp_path):
    with RowStore(tmp_path / "rows.jsonl", {"seed": 1}, resume=False) as store:
        store.append(row("a"))
        store.append(row("b", "fault"))
    return tmp_path / "rows.jsonl"


def rows(file, **options):
    with RowStore(file, {"seed": 1}, **options) as store:
        return list(store.rows)


def test_a_run_goes_on_where_it_was(file):
    assert rows(file, resume=True) == ["a", "b"]


def test_a_line_that_was_cut_is_dropped_and_written_again(file):
    with file.open("a") as out:
        out.write('{"task": "c", "fau')
    with RowStore(file, {"seed": 1}, resume=True) as store:
        store.append(row("c"))
    assert [json.loads(line).get("task") for line in file.read_text().splitlines()] == [None, "a", "b", "c"]


def test_faults_are_tried_again_and_the_later_row_counts(file):
    with RowStore(file, {"seed": 1}, resume=True, retry=True) as store:
        assert list(store.rows) == ["a"]
        store.append(row("b"))
    with RowStore(file, {"seed": 1}, resume=True) as store:
        assert store.rows["b"]["faults"] == []


def test_without_resume_the_file_starts_again(file):
    assert rows(file, resume=False) == []


@pytest.mark.parametrize("text", ["", "{}\n", "no json\n", '{"plumbline_sweep": 1, "seed": 2}\n'])
def test_other_files_are_refused(file, text):
    file.write_text(text)
    with pytest.raises(UserError):
        RowStore(file, {"seed": 1}, resume=True)
