"""The rules of a night, one case at a time: fates in, states and verdicts out."""

from datetime import date, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plumbline.reports.gating.acceptance import Acceptance, Accepted
from plumbline.reports.gating.case_memory import CLEARED, FAILED, PASSED, CaseMemory, Seen
from plumbline.reports.gating.compile_time import RatioPoint, compile_time_alarm
from plumbline.reports.gating.gate_findings import GateReport
from plumbline.reports.gating.night_rules import NightSeen, judge_night
from plumbline.reports.gating.thresholds import Thresholds, default_thresholds, threshold_table

LIMITS = default_thresholds()
CASE = ("t.py::test_a", "plumbline:inductor")
OTHER = ("u.py::test_b", "plumbline:inductor")
FATES = {".": PASSED, "f": CLEARED, "F": FAILED}
START = date(2026, 1, 1)


def nights(*series, changed=("your code",), accepted=(), size=1000):
    """Play one string a case, one letter a night (. passes, f passes a retry, F fails); return verdicts and states."""
    memories = {case: CaseMemory(last_run=1, last_good=1, since=1) for case in (CASE, OTHER)[: len(series)]}
    verdicts, states = [], []
    for number, letters in enumerate(zip(*series, strict=True), 2):
        seen = {
            case: Seen(fate=FATES[letter], outcome="passed" if letter == "." else "failed", mark="W", attempts=4)
            for case, letter in zip(memories, letters, strict=True)
        }
        night = NightSeen(
            run=number,
            seen=seen,
            sizes={"plumbline:inductor": size},
            accepted=Accepted(accepted, START + timedelta(days=number)),
            day_of=lambda run: START + timedelta(days=run),
            changed=changed,
        )
        judged = judge_night(memories, night, LIMITS)
        memories |= judged.memories
        verdicts.append(GateReport(judged.findings, len(seen), "").verdict)
        states.append(memories[CASE].state)
    return verdicts, states


@pytest.mark.parametrize(
    ("fates", "verdicts", "state"),
    [
        ("...", "ggg", "good"),
        ("F.", "ag", "good"),
        ("FF", "ar", "failing"),
        ("FFF.", "arrg", "good"),
        ("f..", "ggg", "flaky"),
        ("f.F", "ggg", "flaky"),
        ("f.FF", "gggr", "failing"),
        ("f.f.f", "ggggr", "intermittent"),
        ("f.f.f.", "ggggra", "intermittent"),
        ("f" + 30 * ".", 31 * "g", "good"),
        ("f" + 29 * ".", 30 * "g", "flaky"),
    ],
)
def test_a_case_alone(fates, verdicts, state):
    said, states = nights(fates)
    assert "".join(verdict[0] for verdict in said) == verdicts
    assert states[-1] == state


def test_two_that_fail_alike_are_red_at_once():
    verdicts, states = nights("F", "F")
    assert verdicts == ["red"]
    assert states == ["new"]


def test_a_failure_that_is_gone_although_nothing_changed_was_flaky():
    assert nights("F.", changed=())[1][-1] == "flaky"
    assert nights("F.")[1][-1] == "good"


def test_a_case_that_was_flaky_before_does_not_turn_intermittent():
    assert nights("f" + 9 * "." + "f.f.f")[1][-1] == "flaky"


def test_a_quarantine_by_name_expires():
    entry = Acceptance(what="flaky", test="t.py::*", column="*", issue="#1", expires=START + timedelta(days=4))
    assert nights("ffff", accepted=(entry,))[0] == ["green", "green", "green", "red"]


@given(st.text("F", min_size=2, max_size=8))
@settings(max_examples=7, deadline=None)
def test_a_failure_that_lasts_is_red_from_the_second_night_on(fates):
    assert set(nights(fates)[0][1:]) == {"red"}


@given(st.text(".fF", min_size=1, max_size=40))
@settings(max_examples=60, deadline=None)
def test_a_case_is_red_on_the_second_of_two_nights_that_fail_whatever_came_before(fates):
    assert nights(fates + "FF")[0][-1] == "red"


def test_the_file_of_thresholds_says_why_and_fits_the_fields():
    for each in threshold_table():
        assert each.why
        assert each.unit
        wanted = Thresholds.__annotations__[each.name]
        assert isinstance(each.value, wanted if wanted is int else (int, float)), each.name


def ratios(count, after, factor, era="a"):
    wave = [1.0 + 0.01 * ((n * 7919) % 11 - 5) / 5 for n in range(count + after)]
    points = [RatioPoint(n, 0.6 * value * (factor if n >= count else 1.0), era) for n, value in enumerate(wave)]
    return next(
        (n + 1 - count for n in range(count, count + after) if compile_time_alarm(points[: n + 1], LIMITS)), None
    )


def test_compile_time_that_rises_by_a_fifth_is_seen_within_four_nights_and_dated():
    assert ratios(40, 10, 1.0) is None
    assert ratios(40, 10, 1.2) <= 4
    assert ratios(12, 10, 1.2) <= 4
    assert ratios(40, 10, 0.8) is None
    points = [RatioPoint(n, 0.6 if n < 40 else 0.72) for n in range(50)]
    alarm = compile_time_alarm(points, LIMITS)
    assert alarm.since == 40
    assert alarm.factor == pytest.approx(1.2)


def test_a_new_torch_starts_the_level_anew():
    points = [RatioPoint(n, 0.6 if n < 40 else 0.9, "2.12" if n < 40 else "2.13") for n in range(60)]
    assert compile_time_alarm(points, LIMITS) is None
