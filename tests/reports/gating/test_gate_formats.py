"""Reports for a pull request and for GitHub: all that is said, nothing that a test's name could smuggle in."""

import pytest

from plumbline.reports.gating.gate_findings import (
    AMBER,
    FLAKY,
    IMPROVEMENT,
    REGRESSION,
    GateFinding,
    GateReport,
    in_order,
)
from plumbline.reports.gating.gate_formats import github_text, markdown_text


def report(*findings, **more):
    return GateReport(in_order(findings), 7, "night-3", **more)


WORSE = GateFinding(REGRESSION, "failure", "fails: 3 | 4 `x`", "tests/test_a.py::test_b[1|2]", "torch:inductor")


def test_a_summary_has_the_verdict_and_a_table_a_level():
    flaky = GateFinding(FLAKY, "flaky", "passed a retry", "t.py::test_c", "torch:eager")
    assert markdown_text(report(flaky, WORSE)) == (
        "## plumbline gate: red\n"
        "\n"
        "7 cases compared with night-3: 1 regression, 1 flaky.\n"
        "\n"
        "### Regression (1): worse than before: red\n"
        "\n"
        "| case | what |\n"
        "|---|---|\n"
        "| `tests/test_a.py::test_b[1\\|2] [torch:inductor]` | fails: 3 \\| 4 \\`x\\` |\n"
        "\n"
        "<details><summary>Flaky (1): failed and passed on the same code; not counted</summary>\n"
        "\n"
        "| case | what |\n"
        "|---|---|\n"
        "| `t.py::test_c [torch:eager]` | passed a retry |\n"
        "\n"
        "</details>\n"
    )
    assert "no change." in markdown_text(report())
    assert "broken machine" in markdown_text(report(void="broken machine"))


def test_a_long_level_says_how_much_more_there_is():
    many = [GateFinding(AMBER, "failure", "fails", f"t.py::test_{n:02}", "torch:eager") for n in range(50)]
    text = markdown_text(report(*many))
    assert "test_19" in text
    assert "test_20" not in text
    assert "and 30 more" in text


def test_annotations_are_at_the_file_and_nothing_escapes_them():
    finding = GateFinding(REGRESSION, "failure", "50% off\n::stop-commands::x", "a,b:c.py::test_d", "torch:eager")
    lines = github_text(report(finding, GateFinding(IMPROVEMENT, "failure", "passes", "t.py::t", "x:y"))).splitlines()
    assert len(lines) == 2
    assert lines[0].startswith("::error file=a%2Cb%3Ac.py,title=plumbline%3A a%2Cb%3Ac.py")
    assert "50%25 off" in lines[0]
    assert lines[1].startswith("gate RED: 7 cases compared")


@pytest.mark.parametrize("text", ["<script>", "@everyone", "[a](http://b)", "a\nb", "|"])
def test_a_cell_holds_no_markup(text):
    finding = GateFinding(AMBER, "failure", text, "t.py::test", "torch:eager")
    (row,) = [line for line in markdown_text(report(finding)).splitlines() if "t.py" in line]
    assert row.count("|") - row.count("\\|") == 3
    assert "<script>" not in row
    assert "@everyone" not in row
    assert "[a](" not in row
