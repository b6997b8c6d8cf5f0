"""Rows are plain data: what goes out comes back, what is strange is refused by its name."""

import json
import math
import subprocess
import sys
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plumbline.compiler.base.errors import UserError
from plumbline.oracle.verdict import ErrorStatistics, VerdictKind
from plumbline.reports.rows import (
    OUTCOMES,
    CallRow,
    CaseRow,
    RunRow,
    field_types,
    identify_case,
    new_run_id,
)
from plumbline.reports.verdict_marks import VERDICTS
from support.any_rows import rows
from support.made_rows import case_row, run_row

any_row = rows(RunRow) | rows(CaseRow) | rows(CallRow)


def same(left: object, right: object) -> bool:
    """Equality under which nan equals nan."""
    return repr(left) == repr(right)


@given(any_row)
def test_a_row_comes_back_from_plain_data(row):
    assert same(type(row).from_dict(row.to_dict()), row)


@given(any_row)
def test_a_row_comes_back_from_json(row):
    assert same(type(row).from_dict(json.loads(json.dumps(row.to_dict()))), row)


@given(any_row)
def test_plain_data_is_of_exact_built_in_types(row):
    def plain(value: object) -> bool:
        if type(value) is list:
            return all(map(plain, value))
        if type(value) is dict:
            return all(type(key) is str and plain(item) for key, item in value.items())
        return value is None or type(value) in (str, int, float, bool)

    assert plain(row.to_dict())


def test_numpy_scalars_become_built_in_ones():
    numpy = pytest.importorskip("numpy", reason="numpy scalars are what is tested")
    data = case_row(margin=numpy.float64(0.5)).to_dict()
    assert type(data["margin"]) is float


def test_strict_json_words_for_what_is_not_finite_are_read():
    data = {**case_row().to_dict(), "margin": "Infinity", "actual": "NaN", "eager": "-Infinity"}
    row = CaseRow.from_dict(data)
    assert row.margin == math.inf
    assert math.isnan(row.actual)
    assert row.eager == -math.inf


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("margin", "big"),
        ("margin", True),
        ("graphs", 1.5),
        ("graphs", None),
        ("test", None),
        ("stage", 3),
        ("worst_index", [1, "a"]),
        ("notes", "one note"),
        ("events", [{"kind": ["nested"]}]),
        ("surprise", 1),
    ],
)
def test_a_field_that_does_not_fit_is_named(field, value):
    with pytest.raises(UserError, match=field):
        CaseRow.from_dict({**case_row().to_dict(), field: value})


def test_a_missing_field_is_named_unless_it_has_a_default():
    data = case_row().to_dict()
    del data["sentence"]
    assert CaseRow.from_dict(data).sentence == ""
    del data["backend"]
    with pytest.raises(UserError, match="backend"):
        CaseRow.from_dict(data)


def test_rows_are_frozen():
    with pytest.raises(AttributeError):
        case_row().margin = 0.0


@given(st.text(), st.text(), st.text())
def test_a_case_has_one_stable_name(test, compiler, backend):
    name = identify_case(test, compiler, backend)
    assert name == identify_case(test, compiler, backend)
    assert len(name) == 16
    assert int(name, 16) >= 0


def test_the_name_of_a_case_never_changes():
    # Baselines and histories under version control hang on it.
    assert identify_case("tests/test_a.py::test_a[1]", "plumbline", "inductor") == "eea7569cd36a57fd"
    assert identify_case("a", "bc", "d") != identify_case("ab", "c", "d")


def test_run_ids_are_unique_and_sort_by_time():
    assert new_run_id() != new_run_id()
    assert new_run_id()[:8].isdigit()


def test_a_run_without_an_end_is_not_complete():
    assert run_row().complete
    assert not replace(run_row(), finished=None).complete


def test_reports_know_every_verdict_of_the_judge_in_its_order():
    assert list(VERDICTS) == [kind.value for kind in VerdictKind]


def test_a_row_holds_every_number_of_the_judge():
    assert set(ErrorStatistics.__dataclass_fields__) <= set(field_types(CaseRow)) & set(field_types(CallRow))


@pytest.mark.parametrize("outcome", OUTCOMES)
def test_only_vacuous_failed_and_error_fail(outcome):
    assert case_row(outcome=outcome).failing == (outcome in ("vacuous", "failed", "error"))


def test_rows_are_light_to_import():
    heavy = ["torch", "sqlalchemy", "pandas", "numpy"]
    code = f"import sys, plumbline.reports.rows; print([name for name in {heavy} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
