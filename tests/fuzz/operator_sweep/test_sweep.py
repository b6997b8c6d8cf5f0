"""The sweep: lost processes, interruptions and time limits keep what was done; one fault is one finding."""

import os
import signal

import pytest
import torch

from plumbline.compiler.backends import replaced_backend
from plumbline.fuzz.operator_sweep.cases import SweepTask, shuffled_tasks
from plumbline.fuzz.operator_sweep.known_deviations import KnownDeviation
from plumbline.fuzz.operator_sweep.row_store import RowStore
from plumbline.fuzz.operator_sweep.sweep import Sweep, SweepSettings
from plumbline.testing import lowering_of, replace_lowering

SIN = SweepTask("sin", "float32", False, "aot_eager")
aten = torch.ops.aten


@pytest.fixture
def store(tmp_path):
    with RowStore(tmp_path / "rows.jsonl", {}, resume=False) as opened:
        yield opened


def test_a_clean_sweep_counts_its_cases(store):
    report = Sweep(SweepSettings((SIN,), samples=1), store, ()).run()
    assert not report.failed
    assert (report.done, report.total, report.lost) == (1, 1, 0)
    assert report.cases == sum(report.kinds.values()) == report.by_backend["aot_eager"]["cases"]
    assert report.rate > 0
    assert SIN.key in store.rows
    again = Sweep(SweepSettings((SIN,), samples=1), store, ()).run()
    assert (again.resumed, again.cases) == (1, report.cases)


def test_a_case_that_ends_the_process_is_named_and_the_others_still_count(store):
    def dies(graph, inputs, options):
        if any("flip" in str(node.target) or "neg" in str(node.target) for node in graph.graph.nodes):
            os.kill(os.getpid(), signal.SIGKILL)
        return graph.forward

    with replaced_backend("aot_eager", dies):
        report = Sweep(SweepSettings((SIN,), samples=1), store, ()).run()
    assert report.lost >= 2
    assert report.failed
    (finding,) = report.findings
    assert (finding.kind, finding.aspect) == ("CRASH", "process")
    assert " pointwise " in finding.case or " in_place_between " in finding.case
    assert report.kinds["EQUAL"] > 5


@pytest.mark.cc
def test_one_fault_in_many_cases_is_one_finding_in_the_simplest(store):
    task = SweepTask("sin", "float16", False, "inductor")
    with replace_lowering(aten.sin.default, lowering_of(aten.cos.default)):
        report = Sweep(SweepSettings((task,), samples=1), store, ()).run()
    values = [finding for finding in report.findings if finding.aspect == "values"]
    (finding,) = values
    assert report.faulty > 3
    assert " alone " in finding.case
    assert " float32 " in finding.case


@pytest.mark.cc
def test_known_deviations_are_counted_apart_and_stale_ones_are_told(store):
    task = SweepTask("sin", "float32", False, "inductor")
    example = "sin float32 static inductor alone 0"
    known = KnownDeviation("sin", "*", "planted", example)
    stale = KnownDeviation("sin", "python", "nothing shows it", example)
    elsewhere = KnownDeviation("cos", "*", "of another operator", "cos float32 static inductor alone 0")
    with replace_lowering(aten.sin.default, lowering_of(aten.cos.default)):
        report = Sweep(SweepSettings((task,), samples=1), store, (known, stale, elsewhere)).run()
    assert report.listed > 3
    assert report.findings == []
    assert report.stale == [stale]
    assert "nothing shows this known deviation" in report.summary()


def test_a_deviation_that_another_dtype_shows_is_not_stale(store):
    task = SweepTask("sin", "float32", False, "aot_eager")
    known = KnownDeviation("sin", "python", "doubles show it", "sin float64 static aot_eager alone 0")
    assert Sweep(SweepSettings((task,), samples=1), store, (known,)).run().stale == []


def test_an_interruption_keeps_what_was_done(store):
    def interrupt(report, now):
        if report.done:
            raise KeyboardInterrupt

    tasks = (SIN, SweepTask("cos", "float32", False, "aot_eager"))
    report = Sweep(SweepSettings(tasks, samples=1), store, (), progress=interrupt).run()
    assert report.interrupted
    assert (report.done, len(store.rows)) == (1, 1)
    assert "(interrupted)" in report.summary()


def test_nothing_is_started_after_the_time_limit(store):
    report = Sweep(SweepSettings((SIN,), samples=1, minutes=0), store, ()).run()
    assert (report.done, report.interrupted) == (0, False)


def test_each_operator_comes_once_before_any_comes_twice():
    tasks = [
        SweepTask(operator, dtype, dynamic, backend)
        for operator in "abc"
        for dtype in ("float32", "int64")
        for dynamic in (False, True)
        for backend in ("aot_eager", "inductor")
    ]
    order = shuffled_tasks(tasks, seed=3)
    assert sorted(order) == sorted(tasks)
    assert {task.operator for task in order[:3]} == set("abc")
    assert {(task.backend, task.dynamic) for task in order[:3]} == {("aot_eager", False)}
    assert {task.operator for task in order[3:6]} == set("abc")
    assert order != shuffled_tasks(tasks, seed=4)
