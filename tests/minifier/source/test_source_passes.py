"""The passes on a failure that is a question about text: no compiler runs here."""

from plumbline.minifier.reduce.engine import reduce
from plumbline.minifier.reduce.problem import Problem, Questions
from plumbline.minifier.source.single_edits import SINGLE_EDITS
from plumbline.minifier.source.source_case import SourceCase, is_program, source_case
from plumbline.minifier.source.source_passes import (
    EACH_EDIT,
    DropWhatDidNotRun,
    drop_unread_names,
    quick_passes,
    shrink_large_numbers,
)


def problem(text: str, fails) -> Problem[SourceCase, bool]:
    questions = Questions(ask=fails, accepts=bool, valid=is_program, key=lambda candidate: candidate.text)
    return Problem(source_case(text), questions, len)


PROGRAM = """
import os, sys
def unused(a):
    return os.path.join(a, 'x')
def deep(n):
    for i in range(n):
        with open('x') as f:
            if i > 2:
                magic(i, 17)
            else:
                print(i)
class Model:
    def __init__(self, width=12):
        self.width = width
    def forward(self):
        deep(self.width)
Model().forward()
"""


def test_a_program_is_cut_to_what_the_failure_needs_and_is_one_minimal():
    found = problem(PROGRAM, lambda case: "magic(" in case.text and ", 1" in case.text)
    reduce(found, (quick_passes(lambda _: frozenset()), EACH_EDIT))
    assert found.current.text.strip() == "def deep():\n    magic(0, 1)"
    left = [edit.applied(found.current) for edits_of in SINGLE_EDITS.values() for edit in edits_of(found.current)]
    assert not any(found.fails(candidate) for candidate in left if is_program(candidate))


def test_what_did_not_run_goes_in_one_question():
    found = problem("def f():\n    a()\n    if b:\n        c()\n        d()\nf()", lambda case: "f()" in case.text)
    DropWhatDidNotRun(lambda _: frozenset({1, 2, 3, 6}))(found)
    assert found.current.text == "def f():\n    a()\n    if b:\n        pass\nf()\n"
    assert found.queries == 1


def test_large_numbers_are_small_after_one_question_or_else_one_by_one():
    found = problem("f(100, 333, 7)", lambda case: "f(" in case.text)
    shrink_large_numbers(found)
    assert (found.current.text, found.queries) == ("f(2, 2, 7)\n", 1)
    found = problem("f(100, 333, 7)", lambda case: eval(case.text, {"f": lambda a, b, c: a >= 40}))
    shrink_large_numbers(found)
    assert found.current.text == "f(50, 2, 7)\n"


def test_names_that_nobody_reads_go_together_with_what_they_alone_read():
    found = problem("import a, b\ndef f():\n    return a\ndef g():\n    return f()\nb()", lambda case: True)
    drop_unread_names(found)
    assert found.current.text == "import b\nb()\n"
    assert found.queries == 1
