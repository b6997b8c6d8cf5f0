"""Nights in a database: what was planted is found, and `rebuild` says what was said."""

from dataclasses import replace
from datetime import date

import pytest

from plumbline.reports import history
from plumbline.reports.gating.acceptance import Acceptance
from plumbline.reports.nights import judge_run, rebuild
from plumbline.reports.store import open_store
from support.histories import everything
from support.made_rows import case_row, run_row, wrong_case
from support.synthetic_history import SyntheticHistory, write_history


@pytest.fixture(scope="module")
def planted(tmp_path_factory):
    place = tmp_path_factory.mktemp("h") / "r.sqlite"
    planted = write_history(place, SyntheticHistory(nights=20, tests=120))
    with open_store(str(place), write=True) as store:
        yield store, planted


def test_the_planted_regressions_are_faults_with_their_suspects(planted):
    store, truth = planted
    stream = history.find_stream(store)
    found = history.faults(store, stream, only_open=False)
    assert len(found) == len(truth.regressions)
    for regression in truth.regressions:
        (fault,) = [
            each for each in found if truth.run_ids[each.first - 1].startswith(night_id(truth, regression.first))
        ]
        assert set(fault.columns) == set(regression.columns)
        assert fault.suspect == regression.suspect
        assert fault.cases == len(regression.tests) * len(regression.columns)
        assert (fault.fixed == 0) == (regression.last == 19)
        _, cases = history.fault(store, fault.fault)
        assert {case.test_name for case in cases} == {truth.name(test, regression.first) for test in regression.tests}


def night_id(truth, night):
    return next(run for run in truth.run_ids if run.endswith(f"-{night:03d}"))


def test_nights_are_red_while_a_regression_lasts_and_not_otherwise(planted):
    store, truth = planted
    verdicts = [(night.run.run_id, night.verdict) for night in history.nights(store, history.find_stream(store), 100)]
    for run_id, verdict in verdicts:
        night = int(run_id.split("-")[2])
        broken = any(each.first <= night <= each.last for each in truth.regressions)
        if run_id.endswith("broken"):
            assert verdict == "void"
        elif night == 0:
            assert verdict == "green"
        elif broken:
            assert verdict == "red", run_id
        else:
            assert verdict != "red", run_id
    assert sum(verdict == "void" for _, verdict in verdicts) == 1


def test_renamed_tests_keep_their_history_and_it_is_said(planted):
    store, truth = planted
    stream = history.find_stream(store)
    renames = history.renames(store, stream)
    assert {(each.was, each.test) for each in renames} == {
        (truth.name(test, 0), truth.name(test, 19)) for test in truth.renamed
    }
    said = history.findings(store, renames[0].run)
    assert sum(each.rule == "renamed" and each.level == "WARNING" for each in said) == 6 * len(truth.renamed)
    assert not any(each.rule == "missing" for each in said)


def test_a_void_night_teaches_nothing(planted):
    store, truth = planted
    broken = next(run for run in truth.run_ids if run.endswith("broken"))
    assert store.run(broken).void
    crashed = {case.test for case in store.cases(broken) if case.verdict == "CRASH"}
    stream = history.find_stream(store)
    states = [state for state in history.states(store, stream) if state.column == "torch:inductor"]
    never = [state for state in states if state.test_name in crashed and not state.recent]
    assert len(never) >= len(crashed) - 2  # but for those that were planted to fail on their own


def test_strips_say_what_the_results_say(planted):
    store, _ = planted
    (night,) = history.nights(store, history.find_stream(store), 1)
    (strip,) = history.strips(store, [night.number], ["plumbline:inductor"])
    numbers = {test.name: test.number for test in history.tests_of(store, history.find_stream(store))}
    for case in store.cases(night.run.run_id):
        if case.column == strip.column:
            letter = strip.mark(numbers[case.test])
            assert letter in {"W": "W", "C": "C"}.get(case.verdict[:1], "=~Y")
            assert strip.margin(numbers[case.test]) == pytest.approx(case.margin, rel=0.05)
    assert strip.mark(10_000) == " "


def test_rebuilding_says_the_same(planted):
    store, _ = planted
    before = everything(store)
    assert rebuild(store) == len(history.nights(store, history.find_stream(store), 100))
    assert everything(store) == before


def test_judging_twice_changes_nothing(planted):
    store, truth = planted
    before = everything(store)
    report = judge_run(store, truth.run_ids[-1])
    assert report.red
    assert everything(store) == before


def night(store, number, *cases, accepted=(), **fields):
    named = {"kind": "nightly", "suite": "s", "branch": "main", "utc": f"2026-01-{number + 1:02d}T02:00:00+00:00"}
    run = run_row(f"n{number}", **{**named, "commit": f"{number}", **fields})
    store.begin_run(replace(run, finished=None))
    store.append([replace(case, run_id=run.run_id) for case in cases])
    store.finish_run(run.run_id)
    return judge_run(store, run.run_id, accepted)


def test_a_fault_stays_red_until_it_is_repaired(tmp_path):
    with open_store(str(tmp_path / "r.sqlite"), write=True) as store:
        assert night(store, 0, case_row()).verdict == "green"
        verdicts = [night(store, number, wrong_case()).verdict for number in (1, 2, 3)]
        assert verdicts == ["amber", "red", "red"]
        assert night(store, 4, case_row()).verdict == "green"


def test_it_is_green_while_it_is_accepted_by_name_and_red_after(tmp_path):
    until = Acceptance(what="failure", test="*", column="*", issue="#7", expires=date(2026, 1, 4))
    with open_store(str(tmp_path / "r.sqlite"), write=True) as store:
        night(store, 0, case_row())
        said = [night(store, number, wrong_case(), accepted=[until]) for number in (1, 2, 3, 4, 5)]
        assert [report.verdict for report in said] == ["green", "green", "green", "red", "red"]
        assert "it was accepted until 2026-01-04, which is over (#7)" in str(said[3])
        before = everything(store)
        rebuild(store)
        assert everything(store) == before


def test_more_memory_is_told_with_the_night_since_when(tmp_path):
    with open_store(str(tmp_path / "r.sqlite"), write=True) as store:
        said = []
        for number in range(20):
            megabytes = (100, 101, 99)[number % 3] * (1.3 if number >= 12 else 1.0)
            same = case_row("other", backend="eager", peak_bytes=50_000_000 + number)
            report = night(store, number, case_row(peak_bytes=int(megabytes * 1e6)), same)
            said.append([(one.rule, one.column) for one in report.changes if one.rule == "memory"])
            assert report.verdict == ("amber" if said[-1] else "green")
        assert not any(said[:13])
        assert said[-1] == [("memory", "plumbline:inductor")]
        (last,) = (one for one in report.changes if one.rule == "memory")
        assert last.text == "tests take +30% memory at their peaks since 2026-01-13"


def test_local_and_partial_runs_move_no_state(tmp_path):
    with open_store(str(tmp_path / "r.sqlite"), write=True) as store:
        night(store, 0, case_row("a"), case_row("b"))
        before = everything(store)
        store.begin_run(run_row("local", suite="s", branch="main"))
        store.append([wrong_case("a", run_id="local")])
        store.finish_run("local", partial="-k a")
        assert everything(store) == before
        assert night(store, 1, case_row("a"), case_row("b")).verdict == "green"


def test_nights_of_another_suite_or_branch_are_not_compared(tmp_path):
    with open_store(str(tmp_path / "r.sqlite"), write=True) as store:
        night(store, 0, case_row())
        night(store, 1, case_row("other"), suite="t")
        night(store, 2, case_row("third"), branch="side")
        assert night(store, 3, case_row()).verdict == "green"
        assert [(s.suite, s.branch) for s in history.streams(store)] == [("s", "main"), ("s", "side"), ("t", "main")]


def test_a_missing_case_is_red_once_and_amber_for_a_while(tmp_path):
    with open_store(str(tmp_path / "r.sqlite"), write=True) as store:
        night(store, 0, case_row("a"), case_row("b"))
        verdicts = [night(store, number, case_row("a")).verdict for number in range(1, 10)]
        assert verdicts == ["red", *["amber"] * 6, "green", "green"]


def test_two_runs_side_by_side(tmp_path):
    with open_store(str(tmp_path / "r.sqlite"), write=True) as store:
        night(store, 0, case_row("a"), case_row("b"), case_row("c"))
        night(store, 1, case_row("a"), wrong_case("b"), case_row("d"))
        differences = {each.test_name: each for each in history.compare_runs(store, 1, 2)}
        assert set(differences) == {"b", "c", "d"}
        assert differences["b"].second.sentence.startswith("differs by")
        assert differences["c"].second is None
        points = history.case_history(store, 2, history.find_stream(store))
        assert [(point.run, point.outcome) for point in points] == [(1, "passed"), (2, "failed")]
