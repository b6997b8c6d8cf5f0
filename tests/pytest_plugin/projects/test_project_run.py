"""What two runs of a package's tests show: who computes, who is judged, and which tests the judge costs."""

from dataclasses import replace

from plumbline.pytest_plugin.projects.project_list import Project, shortened
from plumbline.pytest_plugin.projects.project_run import ProjectResult, compare_runs
from plumbline.pytest_plugin.projects.project_table import project_table
from plumbline.reports.rows import CaseRow

PROJECT = Project(name="flows", version="1.0", tests="sdist", sample=("tests",), known=("one test needs a network",))


def case(name: str, verdict: str = "EQUAL", outcome: str = "passed", *, ops: int = 3, outside: int = 0) -> CaseRow:
    event = {"kind": "judged", "reason": "", "captured": ops, "outside": outside}
    row = CaseRow(
        run_id="r",
        case_id=name,
        test=f"tests/test_flow.py::{name}",
        compiler="plumbline",
        backend="eager",
        outcome=outcome,
        verdict=verdict,
        ops=ops,
        graphs=1,
    )
    return replace(row, events=(event,))


def compared(cases: list[CaseRow], failing: tuple[str, ...] = ()) -> ProjectResult:
    names = [each.test.rpartition("::")[2] for each in cases]
    plain = {f"tests.test_flow::{name}": "passed" for name in names}
    found = {f"tests.test_flow::{name}[plumbline:eager]": "failed" if name in failing else "passed" for name in names}
    return compare_runs(PROJECT, plain, found, cases, 3.0)


def test_only_tests_that_compute_count() -> None:
    result = compared(
        [
            case("test_judged"),
            case("test_own_sums", "VACUOUS", "vacuous", ops=0, outside=4),
            case("test_of_names", "VACUOUS", "vacuous", ops=0),
            case("test_skipped", "", "skipped"),
        ]
    )
    assert (result.tests, result.computing, result.judged) == (4, 2, 1)
    assert result.vacuous == ("tests/test_flow.py::test_own_sums",)


def test_a_failure_that_a_verdict_explains_is_not_lost() -> None:
    cases = [case("test_wrong", "WRONG", "failed"), case("test_lost", "EAGER_FAILED", "failed")]
    result = compared(cases, failing=("test_wrong", "test_lost"))
    assert result.lost == ("tests.test_flow::test_lost[plumbline:eager]",)


def test_the_table_has_a_line_for_each_package_and_the_sums() -> None:
    table = project_table([compared([case("test_judged")]), ProjectResult(project=PROJECT, trouble="no test passes")])
    lines = table.splitlines()
    assert [cell.strip() for cell in lines[2].strip("|").split("|")] == [
        "flows 1.0", "1", "1", "100%", "1 EQUAL", "1", "0", "3.0x", "0",
    ]  # fmt: skip
    assert "no test passes" in lines[3]
    assert "1 of 1 cases that call torch were judged (100%); 0 tests were lost; median time 3.0x." in table
    assert "* flows: one test needs a network" in table


def test_a_short_run_has_options_of_its_own() -> None:
    assert shortened(replace(PROJECT, options=("-x",), brief=("-k", "flow"))).options == ("-k", "flow")
    assert shortened(replace(PROJECT, options=("-x",))).options == ("-x",)
