"""The password of a result database was stored with the command line of a run, and shown in the report."""

import pytest

from plumbline.reports.passwords import without_password
from plumbline.reports.provenance import describe_run
from plumbline.reports.storage.database import shown_place

ADDRESSES = {
    "plain": "postgresql://me:s3cret@host/results",
    "of_a_driver": "postgresql+psycopg://me:s3cret@host:5432/results",
    "without_a_user": "postgresql://:s3cret@host/results",
    "with_an_at_sign": "postgresql://me:s3cret@s3cret@host/results",
    "with_a_slash": "postgresql://me:s3cret/s3cret@host/results",
    "with_a_colon": "postgresql://me:s3cret:s3cret@host/results",
    "as_an_argument": "postgresql://host/results?user=me&password=s3cret&connect_timeout=3",
    "in_capitals": "mysql://host/results?PASSWD=s3cret",
}


@pytest.mark.parametrize("name", ADDRESSES)
def test_command_line(name, tmp_path):
    command = ["pytest", f"--compile-db={ADDRESSES[name]}", "--compile-db", ADDRESSES[name], "tests/a.py::test_b"]
    row = describe_run(command, tmp_path)
    assert "s3cret" not in row.command
    assert row.command.count("***") >= 2
    assert "results" in row.command
    assert row.command.endswith("tests/a.py::test_b")


@pytest.mark.parametrize("name", ADDRESSES)
def test_messages(name):
    assert "s3cret" not in shown_place(ADDRESSES[name])


def test_other_words_stay():
    for text in ("tests/a.py::test_b[x:y@z]", "https://host/a:b@c", "sqlite:///results.db", "-k", "user@host:path"):
        assert without_password(text) == text
