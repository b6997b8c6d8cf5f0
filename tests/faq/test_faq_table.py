"""The page beside these tests names every statement of the documents with its test; skips come from one list."""

import ast

import pytest

from support.faq_table import FOLDER, PAGE, named_in, page, rows
from support.gpu_only import MOST, needs_gpu, reasons

OF_DOCUMENTS = sorted({file for _, _, _, file, _ in rows()} - {"capture"})  # that one has more than the documents say


def test_the_page_is_made_of_the_tests():
    assert PAGE.read_text(encoding="utf-8") == page(), "run python tests/support/faq_table.py"


def test_every_named_test_says_in_its_docstring_what_it_shows():
    for _, _, statement, _, name in rows():
        assert len(statement) > 10, name


@pytest.mark.parametrize("file", OF_DOCUMENTS)
def test_every_test_of_these_files_has_a_row(file):
    assert set(named_in(file)) == {name for _, _, _, where, name in rows() if where == file}


def test_nothing_but_the_listed_tests_may_be_skipped_for_want_of_a_gpu():
    assert len(reasons()) <= MOST
    asking = set()
    for path in FOLDER.glob("test_*.py"):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.FunctionDef) and any(
                isinstance(mark, ast.Name) and mark.id == "needs_gpu" for mark in node.decorator_list
            ):
                asking.add(node.name)
    assert asking == set(reasons())


def test_a_test_that_is_not_listed_cannot_be_skipped():
    def test_of_ours():
        """Nothing."""

    with pytest.raises(KeyError):
        needs_gpu(test_of_ours)
