"""The gate as a table: what was, what is, and what it makes of it."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plumbline.reports.baseline import baseline_of
from plumbline.reports.gate import compare
from plumbline.reports.gating.gate_findings import IMPROVEMENT, INVALID, REGRESSION, STILL, WARNING
from plumbline.reports.rows import OUTCOMES
from support.made_rows import case_row, run_row, wrong_case

PASSED = {}
FAILED = {"outcome": "failed", "verdict": "WRONG", "margin": 30.0}
CRASHED = {"outcome": "failed", "verdict": "CRASH"}
VACUOUS = {"outcome": "vacuous", "verdict": "VACUOUS", "graphs": 0, "ops": 0, "margin": 0.0}
SKIPPED = {"outcome": "skipped", "verdict": "", "graphs": 0, "ops": 0, "margin": 0.0}
XFAILED = {"outcome": "xfailed", "verdict": "WRONG"}
XPASSED = {"outcome": "xpassed"}
ERROR = {"outcome": "error", "verdict": ""}
MISSING = None

# baseline, now, the levels that the gate names
TABLE = [
    (PASSED, PASSED, []),
    (PASSED, FAILED, [REGRESSION]),
    (PASSED, ERROR, [REGRESSION]),
    (PASSED, VACUOUS, [REGRESSION]),
    (PASSED, SKIPPED, [INVALID]),
    (PASSED, XFAILED, [WARNING]),
    (PASSED, XPASSED, []),
    (PASSED, MISSING, [INVALID]),
    (FAILED, MISSING, [INVALID]),
    (FAILED, FAILED, [STILL]),
    (FAILED, CRASHED, [WARNING]),
    (FAILED, PASSED, [IMPROVEMENT]),
    (FAILED, SKIPPED, [INVALID]),
    (FAILED, XFAILED, [WARNING]),
    (VACUOUS, VACUOUS, [STILL]),
    (VACUOUS, PASSED, [IMPROVEMENT]),
    (VACUOUS, FAILED, [REGRESSION]),
    (SKIPPED, SKIPPED, []),
    (SKIPPED, PASSED, []),
    (SKIPPED, FAILED, [REGRESSION]),
    (XFAILED, XFAILED, []),
    (XFAILED, FAILED, [REGRESSION]),
    (XFAILED, PASSED, [IMPROVEMENT]),
    (MISSING, PASSED, [IMPROVEMENT]),
    (MISSING, SKIPPED, [IMPROVEMENT]),
    (MISSING, FAILED, [REGRESSION]),
    (MISSING, VACUOUS, [REGRESSION]),
    (PASSED, {"breaks": 2}, [REGRESSION]),
    ({"breaks": 2}, {"breaks": 3}, [REGRESSION]),
    ({"breaks": 2}, {"breaks": 2}, []),
    ({"breaks": 2}, {"breaks": 1}, [IMPROVEMENT]),
    (PASSED, {"graphs": 0, "ops": 0}, [REGRESSION]),
    ({"ops": 100}, {"ops": 96}, []),
    ({"ops": 100}, {"ops": 94}, [WARNING]),
    ({"ops": 100}, {"ops": 200}, []),
    ({"margin": 0.1}, {"margin": 0.39}, []),
    ({"margin": 0.1}, {"margin": 0.6}, [WARNING]),
    ({"margin": 0.2}, {"margin": 0.7}, [WARNING]),  # it moved, so the program changed
    ({"margin": 0.7}, {"margin": 0.7}, []),
    ({"margin": 0.7}, {"margin": 0.6}, []),
    ({"margin": 0.0}, {"margin": 0.6}, [WARNING]),
    ({"margin": 0.01}, {"margin": 0.4}, []),
    ({"margin": 0.1}, {**FAILED, "margin": 9.0}, [REGRESSION]),
    (PASSED, {"verdict": "NO_REFERENCE"}, [WARNING]),
    (PASSED, {"verdict": "UNSTABLE"}, [WARNING]),
    (PASSED, {"verdict": "BETTER"}, []),
    ({"verdict": "UNSTABLE"}, {"verdict": "UNSTABLE"}, []),
]
OTHER = case_row("tests/test_z.py::test_other")


def judge(then, now):
    baseline = [OTHER] + ([] if then is None else [case_row(**then)])
    cases = [OTHER] + ([] if now is None else [case_row(**now)])
    return compare(run_row(), cases, baseline_of(baseline, "main"))


@pytest.mark.parametrize(("then", "now", "levels"), TABLE)
def test_the_table(then, now, levels):
    report = judge(then, now)
    assert [change.level for change in report.changes] == levels
    assert report.red == bool({REGRESSION, INVALID} & set(levels))
    assert all("tests/test_a.py::test_a [plumbline:inductor]" in str(change) for change in report.changes)
    assert ("RED" in str(report).splitlines()[-1]) == report.red


def test_a_regression_names_the_case_and_says_what_is_wrong():
    report = compare(run_row(), [wrong_case()], baseline_of([case_row()], "main"))
    (change,) = report.of(REGRESSION)
    text = str(change)
    assert "output[0]: differs by 31.3 units of noise" in text
    assert "was passed as NOISE" in text


def test_more_graph_breaks_come_with_their_reason():
    event = {"kind": "graph_break", "reason": "print() in forward", "file": "m.py", "line": 3}
    report = compare(run_row(), [case_row(breaks=1, events=(event,))], baseline_of([case_row()], "main"))
    assert "print() in forward" in str(report.of(REGRESSION)[0])


def test_only_the_backend_that_got_worse_is_named():
    then = [case_row(backend=backend) for backend in ("eager", "aot_eager", "inductor")]
    now = [*then[:2], wrong_case()]
    assert [c.case for c in compare(run_row(), now, baseline_of(then, "main")).changes] == [
        "tests/test_a.py::test_a [plumbline:inductor]"
    ]


def test_duplicates_on_either_side_are_invalid():
    for now, then, side in [([OTHER, OTHER], [OTHER], "this run"), ([OTHER], [OTHER, OTHER], "the baseline")]:
        report = compare(run_row(), now, baseline_of(then, "main"))
        assert [change.level for change in report.changes] == [INVALID]
        assert side in report.changes[0].text


def test_a_duplicate_cannot_hide_a_failure():
    report = compare(run_row(), [wrong_case(), case_row()], baseline_of([case_row()], "main"))
    assert report.red


@pytest.mark.parametrize(
    ("run", "now", "then", "said"),
    [
        (run_row(complete=False), [OTHER], [OTHER], "interrupted"),
        (run_row(), [], [], "no cases"),
        (run_row(), [OTHER], [], "the baseline main has no cases"),
    ],
)
def test_comparisons_that_mean_nothing_are_invalid(run, now, then, said):
    report = compare(run, now, baseline_of(then, "main"))
    assert report.red
    assert any(said in change.text for change in report.of(INVALID))


def test_the_serious_changes_come_first():
    then = [case_row("a", breaks=1), case_row("b"), case_row("c", margin=0.1), case_row("d")]
    now = [case_row("a"), wrong_case("b"), case_row("c", margin=0.9)]
    levels = [change.level for change in compare(run_row(), now, baseline_of(then, "main")).changes]
    assert levels == [INVALID, REGRESSION, WARNING, IMPROVEMENT]


states = st.builds(
    lambda outcome, verdict, margin, counts: case_row(
        outcome=outcome, verdict=verdict, margin=margin, graphs=counts[0], ops=counts[1], breaks=counts[2]
    ),
    st.sampled_from(OUTCOMES),
    st.sampled_from(["EQUAL", "NOISE", "WRONG", ""]),
    st.floats(0, 100) | st.just(float("inf")) | st.just(float("nan")),
    st.tuples(*[st.integers(0, 5)] * 3),
)


@given(states)
def test_a_run_is_never_worse_than_itself(case):
    report = compare(run_row(), [case], baseline_of([case], "main"))
    assert {change.level for change in report.changes} <= {STILL}
    assert not report.red


@given(states, states)
def test_what_fails_now_and_held_before_is_always_red(now, then):
    report = compare(run_row(), [now], baseline_of([then], "main"))
    if now.failing and not then.failing:
        assert report.red


@given(st.lists(states, min_size=1, max_size=4), st.randoms())
def test_the_order_of_rows_does_not_matter(cases, shuffler):
    cases = [replace(case, test=f"t{n}") for n, case in enumerate(cases)]
    now = list(cases)
    shuffler.shuffle(now)
    assert {c.level for c in compare(run_row(), now, baseline_of(cases, "main")).changes} <= {STILL}


def test_the_report_is_plain_data_too():
    data = judge(PASSED, FAILED).to_dict()
    assert data["red"] is True
    assert data["changes"][0]["level"] == REGRESSION
