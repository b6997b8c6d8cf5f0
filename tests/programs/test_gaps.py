"""The list of known gaps: every entry names a program, gives a reason, and the runner sees gaps close and grow."""

import dataclasses
from pathlib import Path

import pytest
import torch

from support import programs
from support.programs import Corpus, Gap, check, examine, read_gaps

FOLDER = Path(__file__).parent


def every_program():
    text = {path.stem.removeprefix("test_"): path.read_text(encoding="utf-8") for path in FOLDER.glob("test_*.py")}
    return {
        f"{stem}.{line[4:].partition('(')[0]}"
        for stem, lines in text.items()
        for line in lines.splitlines()
        if line.startswith("def ")
    }


def test_entries_name_programs_and_give_reasons():
    gaps = read_gaps()
    assert not gaps.keys() - every_program()
    assert all(gap.reason and gap.now for gap in gaps.values())


def test_there_are_hundreds_of_programs():
    registered = sum(path.read_text(encoding="utf-8").count("\n@program(") for path in FOLDER.glob("test_*.py"))
    assert registered >= 300


def sample(**expected):
    corpus = Corpus()

    @corpus.program(torch.ones(2), **expected)
    def prints(a):
        b = a + 1
        print("x")
        return b * 2

    return corpus.programs[0]


def listed(monkeypatch, program, **entry):
    gap = Gap(**{"kind": "coverage", "program": program.id, "now": "-", "reason": "-", "costs": (2, 1, 0, 0)} | entry)
    monkeypatch.setattr(programs, "read_gaps", lambda: {gap.program: gap})


def test_unlisted_gap_fails():
    with pytest.raises(AssertionError, match=r"graphs, breaks, eager are \(2, 1, 0\)"):
        check(sample(graphs=1, breaks=0))


def test_listed_gap_passes(monkeypatch):
    program = sample(graphs=1, breaks=0)
    listed(monkeypatch, program)
    check(program)


def test_closed_gap_fails(monkeypatch):
    program = sample(graphs=2, breaks=1)
    listed(monkeypatch, program)
    with pytest.raises(AssertionError, match="take it out"):
        check(program)


def test_grown_gap_fails(monkeypatch):
    program = sample(graphs=1, breaks=0)
    listed(monkeypatch, program, costs=(2, 0, 0, 0))
    with pytest.raises(AssertionError, match="grew"):
        check(program)


def test_coverage_gap_does_not_hide_a_wrong_answer(monkeypatch):
    program = sample(graphs=1, breaks=0)
    listed(monkeypatch, program)
    calls = []

    def differs(a):
        calls.append(0)
        print(len(calls))
        return a

    with pytest.raises(AssertionError, match="wrong: first call"):
        check(dataclasses.replace(program, function=differs, graphs=9))


def test_runner_sees_lost_state_and_sharing():
    log = []
    program = sample(graphs=0, breaks=0)

    def shares(a):
        log.append(0)
        return [a, a] if len(log) == 1 else [a, a.clone()]

    findings = examine(dataclasses.replace(program, function=shares, stable=False))
    assert any(finding.kind == "wrong" and "shared" in finding.text for finding in findings)
