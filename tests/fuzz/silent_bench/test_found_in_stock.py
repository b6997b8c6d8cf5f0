"""The page of faults found in stock says what the cases of the benchmark say."""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[3]
ROW = re.compile(r"^\| .+ \| (?P<module>\w+): (?P<case>\w+) \| (?P<stage>\w+) \| (?P<torch>.+) \|$", re.MULTILINE)


def test_each_row_is_a_case_with_its_stage_and_versions() -> None:
    cases = tomllib.loads((ROOT / "fuzz" / "silent_bench" / "cases.toml").read_text())
    rows = list(ROW.finditer((ROOT / "docs" / "found-in-stock.md").read_text()))
    assert len(rows) >= 20
    for row in rows:
        case = cases[row["module"]][row["case"]]
        assert case["wrong_at"] == row["stage"], row[0]
        assert dict(each.split(": ") for each in row["torch"].split("; ")) == case["torch"], row[0]
