"""What is accepted: read with the entry that is wrong named, written so that it is read back, over when its day is."""

import string
from datetime import date, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plumbline.compiler.base.errors import UserError
from plumbline.reports.gating.acceptance import (
    BREAKS,
    FAILURE,
    Acceptance,
    Accepted,
    append_failures,
    read_accepted,
)

DAY = date(2026, 3, 1)


def entry(test="t.py::*", column="*", expires=DAY, what=FAILURE):
    return Acceptance(what=what, test=test, column=column, issue="#1", expires=expires)


def test_an_entry_holds_to_its_last_day():
    entries = (entry(expires=DAY), entry(expires=DAY - timedelta(days=9)))
    today, tomorrow = Accepted(entries, DAY), Accepted(entries, DAY + timedelta(days=1))
    case = (FAILURE, "t.py::test_a[1]", "torch:eager")
    assert today.holding(*case) == entries[0]
    assert today.expired(*case) == entries[1]
    assert tomorrow.holding(*case) is None
    assert tomorrow.expired(*case) == entries[0]
    assert today.holding(BREAKS, *case[1:]) is None
    assert today.holding(FAILURE, "u.py::test_a", "torch:eager") is None


@pytest.mark.parametrize(
    ("test", "column", "covered"),
    [
        ("t.py::test_a[1]", "*", True),
        ("t.py::test_a[*]", "torch:*", True),
        ("t.py::test_a1", "*", False),
        ("t.py::test_?[1]", "torch:eager", True),
        ("t.py::test_a[1]", "torch:inductor", False),
    ],
)
def test_brackets_are_those_of_parameters(test, column, covered):
    assert entry(test, column).covers(FAILURE, "t.py::test_a[1]", "torch:eager") is covered


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("accepted = 1", "not a list"),
        ("[other]", "not a list"),
        ("[[accepted]", "not a list"),
        ("accepted = [1]", "entry 1"),
        ('[[accepted]]\nwhat="failure"\ntest="t"\nissue="#1"', "'expires' is missing"),
        ('[[accepted]]\nwhat="failure"\ntest="t"\nissue=" "\nexpires=2026-01-01', "'issue' is empty"),
        ('[[accepted]]\nwhat="broken"\ntest="t"\nissue="#1"\nexpires=2026-01-01', "unknown what"),
        ('[[accepted]]\nwhat="failure"\ntest="t"\nissue="#1"\nexpires=2026-01-01T00:00:00', "no date"),
        ('[[accepted]]\nwhat="failure"\ntest="t"\nissue="#1"\nexpires=2026-01-01\nwho="me"', "unknown key 'who'"),
    ],
)
def test_a_wrong_list_is_told_with_its_place(tmp_path, text, told):
    file = tmp_path / "accepted.toml"
    file.write_text(text)
    with pytest.raises(UserError, match=told) as error:
        read_accepted(file)
    assert str(file) in str(error.value)


def test_a_list_that_is_not_there(tmp_path):
    with pytest.raises(UserError, match="cannot read"):
        read_accepted(tmp_path / "none.toml")


@settings(max_examples=60, deadline=None)
@given(names=st.lists(st.text(st.characters(exclude_categories=["Cs"])), min_size=1, max_size=4, unique=True))
def test_what_is_written_is_read_back(tmp_path_factory, names):
    file = tmp_path_factory.mktemp("a") / "accepted.toml"
    cases = [(name, "torch:eager") for name in names]
    later = date.today() + timedelta(days=9)
    assert append_failures(file, (), cases, "*", "#1", later) == len(cases)
    known = read_accepted(file)
    assert [(one.test, one.column, one.expires) for one in known] == [(*case, later) for case in cases]
    assert append_failures(file, known, cases, "*", "#1", later) == 0


def test_only_what_fits_and_is_new_is_added_below_what_is_there(tmp_path):
    file = tmp_path / "accepted.toml"
    later = date.today() + timedelta(days=9)
    file.write_text("# ours\n")
    cases = [(f"t.py::test_{letter}", "torch:eager") for letter in string.ascii_lowercase[:4]]
    assert append_failures(file, (), cases, "t.py::test_[*", "#1", later) == 0
    assert append_failures(file, (entry("t.py::test_a", expires=later),), cases, "t.py::test_?", "#2", later) == 3
    assert file.read_text().startswith("# ours\n\n[[accepted]]\n")
    assert [one.test[-1] for one in read_accepted(file)] == ["b", "c", "d"]
