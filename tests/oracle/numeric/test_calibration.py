"""The figures the scale stands on: no legitimate variant is called wrong, miscompiles are."""

import time

import pytest
import torch

from plumbline.oracle.noise.shadow import ShadowRun
from plumbline.oracle.numeric.value_judgement import judge_values
from plumbline.oracle.verdict import VerdictKind
from support.calibration import trials
from support.numeric_programs import HELD_OUT, PROGRAMS, inputs_of

ALARMS = (VerdictKind.WRONG, VerdictKind.UNSTABLE, VerdictKind.NO_REFERENCE)


def figures(programs):
    """Return false alarms, missed miscompiles, and those that the fp32 and fp64 twins miss too, with totals."""
    found = list(trials(programs))
    legitimate = [t for t in found if t.legitimate]
    miscompiled = [t for t in found if not t.legitimate]
    alarms = [t for t in legitimate if t.kind in ALARMS]
    missed = [t for t in miscompiled if t.kind is not VerdictKind.WRONG]
    asked = [program for program in programs if program.name in {t.program for t in missed}]
    doubles = {(t.program, t.variant, t.values) for t in trials(asked, [torch.float64]) if t.kind is VerdictKind.WRONG}
    singles = {
        (t.program, t.variant, t.values)
        for t in miscompiled
        if t.kind is VerdictKind.WRONG and t.dtype == torch.float32
    }
    unseen = [t for t in missed if (t.program, t.variant, t.values) not in doubles | singles]
    return legitimate, miscompiled, alarms, missed, unseen


@pytest.mark.slow
def test_tuned_programs_raise_no_false_alarm_and_catch_nine_in_ten(record_property):
    legitimate, miscompiled, alarms, missed, unseen = figures(PROGRAMS)
    record_property("false alarms", f"{len(alarms)}/{len(legitimate)}")
    record_property("missed", f"{len(missed)}/{len(miscompiled)}")
    assert len(legitimate) >= 150
    assert len(miscompiled) >= 300
    assert not alarms
    assert len(missed) <= 0.1 * len(miscompiled)
    assert not [t for t in missed if t.dtype == torch.float32]
    assert not unseen


@pytest.mark.slow
def test_held_out_programs_raise_no_false_alarm_and_catch_nine_in_ten(record_property):
    legitimate, miscompiled, alarms, missed, unseen = figures(HELD_OUT)
    record_property("false alarms", f"{len(alarms)}/{len(legitimate)}")
    record_property("missed", f"{len(missed)}/{len(miscompiled)}")
    assert len(HELD_OUT) >= 10
    assert not alarms
    assert len(missed) <= 0.1 * len(miscompiled)
    assert not unseen


def test_a_judgement_with_replicas_is_quick(record_property):
    times = []
    for program in PROGRAMS:
        inputs = inputs_of(program, "normal", torch.float32)
        eager = program.eager(*inputs)
        actual = program.legitimate["float64 inside"](*inputs)
        start = time.perf_counter()
        with ShadowRun(replicas=8) as run:
            result = program.eager(*inputs)
        judge_values(actual, eager, run.lanes_of(result))
        times.append(time.perf_counter() - start)
    median = sorted(times)[len(times) // 2]
    record_property("median seconds", median)
    assert median < 0.25  # 10-20 ms on a quiet core
