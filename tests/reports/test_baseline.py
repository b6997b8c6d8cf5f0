"""Baselines: from a file that merges well, or from a database."""

import json
import math
import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plumbline.compiler.base.errors import UserError
from plumbline.reports.baseline import baseline_of, load_baseline, write_baseline
from plumbline.reports.gate import compare
from plumbline.reports.store import SchemaMismatch
from support.made_rows import case_row, run_row, stored, wrong_case


def written(file, cases):
    write_baseline(file, cases)
    return file


def test_a_written_baseline_is_read_back(tmp_path):
    cases = [wrong_case("b", margin=31.3), case_row("a", breaks=2), case_row("a", "eager", margin=math.inf)]
    loaded = load_baseline(str(written(tmp_path / "base.json", cases)))
    assert {(c.test, c.backend, c.outcome, c.verdict, c.breaks, c.margin) for c in loaded.cases} == {
        ("b", "inductor", "failed", "WRONG", 0, 31.0),  # margins keep two digits
        ("a", "inductor", "passed", "NOISE", 2, 0.2),
        ("a", "eager", "passed", "NOISE", 0, math.inf),
    }
    assert [change.level for change in compare(run_row(), cases, loaded).changes] == ["STILL"]


@settings(deadline=None, max_examples=30)
@given(st.lists(st.tuples(st.text(), st.floats()), unique_by=lambda pair: pair[0], min_size=1))
def test_any_name_and_margin_survives_as_strict_json(tmp_path_factory, pairs):
    file = tmp_path_factory.mktemp("b") / "base.json"
    cases = [case_row(test, margin=margin) for test, margin in pairs]
    write_baseline(file, cases)

    def refuse(word: str) -> None:
        raise AssertionError(f"{word} is not JSON")

    json.loads(file.read_text(encoding="utf-8"), parse_constant=refuse)
    assert not compare(run_row(), cases, load_baseline(str(file))).red


def test_the_file_is_sorted_and_does_not_depend_on_order(tmp_path):
    cases = [case_row(test, backend) for test in ("b", "a", "c") for backend in ("inductor", "eager")]
    first = written(tmp_path / "1.json", cases).read_bytes()
    assert first == written(tmp_path / "2.json", cases[::-1]).read_bytes()
    tests = [line["test"] for line in json.loads(first)[1:]]
    assert tests == sorted(tests)


def test_a_margin_that_moves_in_its_third_digit_makes_no_difference(tmp_path):
    one = written(tmp_path / "1.json", [case_row(margin=0.2011)]).read_text()
    assert one == written(tmp_path / "2.json", [case_row(margin=0.2042)]).read_text()


def test_two_branches_that_touch_different_cases_merge(tmp_path):
    names = [f"test_{letter}" for letter in "bcdefghijk"]
    files = {
        "base": [case_row(name) for name in names],
        "ours": [case_row(name) for name in ["test_a", *names]],  # adds at the beginning
        "theirs": [case_row(name) for name in [*names[:4], *names[6:], "test_z"]],  # removes two, adds at the end
    }
    for name, cases in files.items():
        write_baseline(tmp_path / name, cases)
    command = ["git", "merge-file", "-p", "ours", "base", "theirs"]
    merged = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True).stdout
    (tmp_path / "merged.json").write_text(merged)
    tests = [case.test for case in load_baseline(str(tmp_path / "merged.json")).cases]
    assert tests == ["test_a", *names[:4], *names[6:], "test_z"]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("{", "not a baseline"),
        ("[]", "header"),
        ("{}", "header"),
        ('{"plumbline_baseline": 1}', "header"),
        ("[1]", "header"),
        ("[" * 100_000, "not a baseline"),
        ('[{"plumbline_baseline": 1}, 3]', "not a case"),
        ('[{"plumbline_baseline": 1}, {"test": "a"}]', "entry 1"),
        ('[{"plumbline_baseline": 1}, {"test": 1, "compiler": "p", "backend": "b", "outcome": "passed"}]', "'test'"),
    ],
)
def test_files_that_are_no_baseline_are_told_in_one_line(tmp_path, content, said):
    file = tmp_path / "base.json"
    file.write_text(content)
    with pytest.raises(UserError, match=said) as error:
        load_baseline(str(file))
    assert "\n" not in str(error.value)
    assert str(file) in str(error.value)


def test_bytes_that_are_no_text_are_told(tmp_path):
    (tmp_path / "base.json").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(UserError, match="not a baseline"):
        load_baseline(str(tmp_path / "base.json"))


def test_another_schema_version_is_named(tmp_path):
    (tmp_path / "base.json").write_text('[{"plumbline_baseline": 7}]')
    with pytest.raises(SchemaMismatch, match="schema version 7"):
        load_baseline(str(tmp_path / "base.json"))


def test_a_missing_place_is_told_and_not_made(tmp_path):
    with pytest.raises(UserError, match="no baseline here"):
        load_baseline(str(tmp_path / "base.json"))
    assert list(tmp_path.iterdir()) == []


def test_another_database_gives_its_newest_complete_run(tmp_path):
    place = tmp_path / "r.sqlite"
    stored(place, [case_row(breaks=1)], run=run_row("old"))
    stored(place, [case_row(breaks=2)], run=run_row("new"))
    stored(place, [], run=run_row("interrupted", complete=False))
    loaded = load_baseline(str(place), judged=run_row("old"), home="elsewhere")
    assert loaded.cases == baseline_of([case_row(breaks=2)], "").cases
    assert "run new" in loaded.source
    assert load_baseline(str(place), run="old").cases[0].breaks == 1


def test_one_database_for_both_is_looked_at_back_in_time(tmp_path):
    place = tmp_path / "r.sqlite"
    for index in range(3):
        stored(place, [case_row(breaks=index)], run=run_row(f"run-{index}"))
    assert load_baseline(str(place), home=str(place), judged=run_row("run-2")).cases[0].breaks == 1
    assert load_baseline(str(place), home=str(place), judged=run_row("run-1")).cases[0].breaks == 0
    with pytest.raises(UserError, match="no earlier complete run"):
        load_baseline(str(place), home=str(place), judged=run_row("run-0"))


def test_a_file_has_no_runs_to_choose_from(tmp_path):
    file = written(tmp_path / "base.json", [case_row()])
    with pytest.raises(UserError, match="holds no runs"):
        load_baseline(str(file), run="x")


def test_a_baseline_that_cannot_be_written_leaves_the_old_one(tmp_path):
    (tmp_path / "taken").mkdir()
    with pytest.raises(UserError, match="is a directory"):
        write_baseline(tmp_path / "taken", [case_row()])
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match="cannot write"):
        write_baseline(tmp_path / "file" / "base.json", [case_row()])
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["file", "taken"]


def test_gate_needs_no_torch():
    code = "import sys, plumbline.reports.gate; print('torch' in sys.modules, 'pandas' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False"]
