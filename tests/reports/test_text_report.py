"""The report as text, and the marks it shares with the page."""

import pytest

from plumbline.reports.rows import OUTCOMES
from plumbline.reports.text_report import MATRIX_ROWS, failures_table, matrix_table, report_text, slowest_table
from plumbline.reports.verdict_marks import VERDICTS, columns_of, mark_of, marks_in, one_line, seconds_text
from support.made_rows import case_row, run_row, wrong_case


def test_failures_stand_before_everything_else_worst_first():
    cases = [
        case_row("t.py::test_good"),
        case_row("t.py::test_own", outcome="failed"),
        wrong_case("t.py::test_wrong"),
        case_row("t.py::test_crash", verdict="CRASH", outcome="failed", sentence="SIGSEGV"),
        case_row("t.py::test_empty", verdict="VACUOUS", outcome="vacuous"),
    ]
    text = report_text(run_row(), cases)
    names = ("test_crash", "test_wrong", "test_own", "test_empty", "test_good")
    places = [text.index(name) for name in names]
    assert places == sorted(places)
    assert text.index("failing:") < text.index("plumbline:inductor\n")


def test_a_failure_line_says_what_where_and_which_stage():
    (line,) = failures_table([wrong_case()]).splitlines()[1:]
    for part in (
        "WRONG",
        "test_a [plumbline:inductor]",
        "output[0]: differs by 31.3",
        "first wrong: inductor",
        "model.py:88",
    ):
        assert part in line


def test_what_an_imported_run_does_not_know_is_left_out():
    run = run_row(plumbline="", torch="2.11", python="", threads=0, commit="")
    assert report_text(run, []).splitlines()[0] == f"run {run.run_id} ({run.utc}), no commit, torch 2.11"


def test_nothing_failing_means_no_failure_table():
    assert failures_table([case_row()]) == ""
    assert "failing" not in report_text(run_row(), [case_row()])


def test_the_matrix_has_one_row_a_test_and_one_column_a_backend():
    cases = [case_row(t, b, margin=0.25) for t in ("one", "two") for b in ("inductor", "eager")]
    cases.append(case_row("one", "inductor", compiler="torch", verdict="EQUAL", margin=0.0))
    header, _, one, two, key = matrix_table(cases).splitlines()
    assert header.split() == ["test", "plumbline:eager", "plumbline:inductor", "torch:inductor"]
    assert one.split() == ["one", "~", "0.25", "~", "0.25", "="]
    assert two.split() == ["two", "~", "0.25", "~", "0.25"]
    assert key.startswith("key:")


def test_names_that_look_like_numbers_stay_names():
    assert "007" in matrix_table([case_row("007")])
    assert "1e5" in slowest_table([case_row("1e5", test_seconds=1.0)], 5)


def test_a_long_matrix_lists_what_is_not_plainly_good():
    cases = [case_row(f"test_{n:03}") for n in range(MATRIX_ROWS + 10)] + [wrong_case("the_bad_one")]
    short = matrix_table(cases)
    assert "the_bad_one" in short
    assert "test_000" not in short
    assert f"{MATRIX_ROWS + 10} more tests" in short
    assert "test_000" in matrix_table(cases, every_test=True)


def test_the_slowest_come_first():
    cases = [case_row(f"test_{n}", test_seconds=float(n)) for n in range(5)]
    rows = slowest_table(cases, 2).splitlines()[2:]
    assert [row.split()[0] for row in rows] == ["test_4", "test_3"]
    assert slowest_table(cases, 0) == ""


def test_an_interrupted_run_says_so():
    assert "INTERRUPTED" in report_text(run_row(complete=False), [case_row()])
    assert "INTERRUPTED" not in report_text(run_row(), [case_row()])


def test_a_run_without_cases_is_told():
    assert "no cases" in report_text(run_row(), [])


def test_control_characters_do_not_reach_the_terminal():
    text = report_text(run_row(command="\x1b]0;x\x07"), [wrong_case("t\x1b[31m\n\r", sentence="a\nb\x00\x1b[2J")])
    assert not [c for c in text if not c.isprintable() and c != "\n"]
    assert one_line(" a\n\tb\x1b ") == "a b"


@pytest.mark.parametrize("outcome", OUTCOMES)
@pytest.mark.parametrize("verdict", ["", *VERDICTS])
def test_no_failing_case_looks_good(outcome, verdict):
    case = case_row(outcome=outcome, verdict=verdict)
    if case.failing:
        assert mark_of(case).tone in ("bad", "vacuous")
    elif outcome in ("skipped", "xfailed", "xpassed") or verdict in ("", "EQUAL", "NOISE", "BETTER"):
        assert mark_of(case).tone in ("good", "better", "known", "none")


def test_letters_are_unique():
    every = {mark_of(case_row(outcome=o, verdict=v)) for o in OUTCOMES for v in ("", *VERDICTS)}
    words = {}
    for mark in every:
        words.setdefault(mark.letter, set()).add(mark.word)
    assert all(len(found) == 1 for found in words.values()), words


def test_counts_name_the_serious_first():
    counts = marks_in([case_row(), case_row("b"), wrong_case("c"), case_row("d", outcome="skipped", verdict="")])
    assert [(mark.word, count) for mark, count in counts] == [("WRONG", 1), ("skipped", 1), ("NOISE", 2)]


def test_columns_follow_the_ladder():
    cases = [case_row(backend=b) for b in ("zeta", "inductor", "aot_eager", "eager")]
    cases.append(case_row(backend="eager", compiler="torch"))
    names = ["plumbline:eager", "plumbline:aot_eager", "plumbline:inductor", "plumbline:zeta", "torch:eager"]
    assert columns_of(cases) == names


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0"), (2e-6, "2 µs"), (0.0041, "4.1 ms"), (1.5, "1.5 s"), (12.34, "12.3 s"), (1336.2, "1336 s")],
)
def test_seconds(seconds, text):
    assert seconds_text(seconds) == text
