"""The commands name the case as pytest does, and a shell takes them as one word."""

import shlex

from plumbline.reports.dashboard.case_commands import case_id, failing_ids, repeating_command
from support.made_rows import case_row


def test_the_backend_comes_first_in_the_brackets():
    assert case_id("t.py::test_a", "torch:inductor") == "t.py::test_a[torch:inductor]"
    assert case_id("t.py::test_a[f32-2]", "torch:eager") == "t.py::test_a[torch:eager-f32-2]"
    assert case_id("t.py::A::test_a[x[1]]", "a:b") == "t.py::A::test_a[a:b-x[1]]"
    assert case_id("d[1]/t.py::test_a", "a:b") == "d[1]/t.py::test_a[a:b]"
    assert case_id("d[1]/t.py::test_a[x]", "a:b") == "d[1]/t.py::test_a[a:b-x]"


def test_a_name_cannot_leave_its_word():
    evil = "t.py::test_a['; rm -rf ~; $(x) `y` \"]"
    words = shlex.split(repeating_command(evil, ["a:b"], whole=False))
    assert words == ["repro-minify", case_id(evil, "a:b")]
    assert shlex.split(repeating_command(evil, ["a:b"], whole=True)) == ["pytest", evil]


def test_of_each_test_and_compiler_the_lightest_failing_backend_the_worst_first():
    def case(test, column, verdict):
        compiler, _, backend = column.partition(":")
        return case_row(test, compiler=compiler, backend=backend, verdict=verdict, outcome="failed")

    cases = [
        case("t.py::test_a[1]", "plumbline:inductor", "WRONG"),
        case("t.py::test_a[1]", "plumbline:aot_eager", "WRONG"),
        case("t.py::test_a[1]", "torch:inductor", "WRONG"),
        case("t.py::test_b", "torch:eager", "CRASH"),
        case_row("t.py::test_c"),
    ]
    assert failing_ids(cases) == [
        "t.py::test_b[torch:eager]",
        "t.py::test_a[plumbline:aot_eager-1]",
        "t.py::test_a[torch:inductor-1]",
    ]
