"""Workers of a Dask cluster: the same results, nodes that die or not; a cluster that is not there is one line.

The clusters live in a process of their own: they leave threads behind.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("distributed")
TESTS = Path(__file__).resolve().parents[2]
SQUARES = [number**2 for number in range(9)]


@pytest.fixture(scope="module")
def told():
    done = subprocess.run(
        [sys.executable, "-m", "support.dask_scenarios"],
        env={**os.environ, "PYTHONPATH": str(TESTS)},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout)


def test_results_come_in_order_and_once(told):
    assert told["results"] == [*SQUARES, 2, *SQUARES]
    assert told["workers"] <= 2
    assert told["first"] == 0


def test_nodes_that_are_killed_lose_and_repeat_no_result(told):
    assert told["killed"] == [number**2 for number in range(60)]


def test_nodes_import_nothing_of_the_tasks_that_they_pass_on(told):
    assert told["imported"]["results"] == ["support.far_task"] * 4
    assert set(told["imported"]["nodes"]) == {False}  # of those that run: one that was killed may be starting yet


def test_a_call_within_a_call_comes_first(told):
    assert told["order"] < 10  # of 20, two at a time


def test_an_exception_of_a_task_is_told(told):
    assert "not this one" in told["error"]


def test_a_cluster_that_has_no_worker_or_loses_its_scheduler_is_given_up(told):
    assert "the cluster has no workers" in told["no_worker"]
    assert "the Dask scheduler is gone" in told["no_scheduler"]


def test_nobody_answers(told):
    assert "no Dask scheduler answers" in told["nobody"]
