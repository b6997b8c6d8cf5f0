"""The list of known deviations: each entry has a reason and is still needed."""

import pytest

from plumbline.compiler.base.errors import UserError
from plumbline.fuzz.operator_sweep.case_trial import CaseFault
from plumbline.fuzz.operator_sweep.cases import read_case
from plumbline.fuzz.operator_sweep.known_deviations import KnownDeviation, known_deviations
from plumbline.fuzz.operator_sweep.replay import Lost, TaskChild
from plumbline.fuzz.operator_sweep.task_trial import TaskRequest

EXAMPLE = "add float32 static inductor alone 0"
FAULT = CaseFault(EXAMPLE, "WRONG", "values", "", "differs")


@pytest.mark.cc
@pytest.mark.parametrize("entry", known_deviations(), ids=lambda entry: entry.operator)
def test_each_entry_is_still_needed(entry):
    case = read_case(entry.example)
    with TaskChild() as child:
        for _ in range(3):  # memory that nobody wrote may hold the same by chance
            row = child.try_task(TaskRequest(case.task, samples=1, seed=0, only=(entry.example,)))
            assert not isinstance(row, Lost)
            faults = [CaseFault(**fault) for fault in row["faults"]]
            if any(entry.matches(case, fault) for fault in faults):
                return
    raise AssertionError(f"nothing shows this entry any more: remove it ({entry.reason})")


@pytest.mark.parametrize(
    ("patterns", "matches"),
    [
        ({}, True),
        ({"dtype": "float*", "sizes": "static", "backend": "inductor", "context": "a*"}, True),
        ({"dtype": "int*"}, False),
        ({"sizes": "dynamic"}, False),
        ({"context": "out*"}, False),
        ({"aspect": "aliasing"}, False),
    ],
)
def test_an_entry_matches_what_its_patterns_say(patterns, matches):
    entry = KnownDeviation(**{"operator": "add", "aspect": "values", "reason": "r", "example": EXAMPLE, **patterns})
    assert entry.matches(read_case(EXAMPLE), FAULT) is matches


@pytest.mark.parametrize("text", ['reason = ""', "", 'reason = "r"\nword = 1'])
def test_entries_without_a_reason_or_with_unknown_fields_are_refused(tmp_path, text):
    file = tmp_path / "d.toml"
    file.write_text(f'[[deviation]]\noperator = "add"\naspect = "values"\nexample = "{EXAMPLE}"\n{text}\n')
    with pytest.raises(UserError):
        known_deviations(file)
