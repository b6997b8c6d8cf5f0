"""Several ranks run the same tests: what each found becomes one row a case, of the worst of them."""

import os
import socket
import subprocess
import sys

import pytest
import torch

from plumbline.pytest_plugin.recording.ranks import (
    RankGroup,
    gather,
    launched_group,
    receive_rows,
    send_rows,
    worst_rows,
)
from plumbline.reports.rows import CallRow, CaseRow, identify_case
from plumbline.reports.store import open_store

ENVIRONMENT = {"RANK": "1", "WORLD_SIZE": "2", "MASTER_ADDR": "localhost", "MASTER_PORT": "29500"}
TESTS = """
import os
import torch
import torch.distributed as dist
import pytest

RANK = int(os.environ["RANK"])
model = torch.nn.Linear(4, 4)

def double(x):
    return model(x) * 2

@pytest.fixture(scope="session", autouse=True)
def group():
    dist.init_process_group("gloo")
    yield
    dist.destroy_process_group()

def test_alike():
    total = double(torch.ones(2, 4)).sum().detach()
    dist.all_reduce(total)

def test_one_fails():
    double(torch.ones(2, 4))
    assert RANK == 0

@pytest.mark.skipif(RANK == 0, reason="of the other")
def test_of_one_rank():
    double(torch.ones(2, 4))
"""


def case(name, outcome="passed", verdict="EQUAL", **fields):
    column = {"compiler": "plumbline", "backend": "eager"}
    known = identify_case(name, *column.values())
    return CaseRow(run_id="", case_id=known, test=name, outcome=outcome, verdict=verdict, **column, **fields)


def call(row):
    return CallRow(run_id="", case_id=row.case_id, boundary="f", call=1, verdict=row.verdict)


class Shelf(dict):
    """A store of one process."""

    def set(self, key, value):
        self[key] = value.encode()

    def get(self, key):
        if key not in self:
            raise torch.distributed.DistStoreError("wait timeout after 10ms")
        return self[key]


def test_a_process_by_itself_is_no_group():
    assert launched_group({}) is None
    assert launched_group(ENVIRONMENT | {"WORLD_SIZE": "1", "RANK": "0"}) is None
    assert launched_group(ENVIRONMENT | {"RANK": "two"}) is None
    assert launched_group(ENVIRONMENT | {"RANK": "2"}) is None
    assert launched_group(ENVIRONMENT) == RankGroup(1, 2, "localhost", 29500, hosted=False)
    assert launched_group(ENVIRONMENT | {"TORCHELASTIC_USE_AGENT_STORE": "True"}).hosted


@pytest.mark.parametrize(
    ("first", "second", "worst"),
    [
        ({}, {"outcome": "failed", "verdict": "WRONG"}, 1),
        ({"outcome": "error"}, {"outcome": "failed", "verdict": "WRONG"}, 0),
        ({"outcome": "skipped", "verdict": ""}, {}, 1),
        ({"verdict": "NOISE", "margin": 0.2}, {"verdict": "NOISE", "margin": 0.4}, 1),
        ({"verdict": "NOISE", "margin": 0.2}, {"verdict": "EQUAL"}, 0),
        ({"verdict": "NOISE", "margin": 0.2}, {"verdict": "NOISE", "margin": float("nan")}, 1),
        ({}, {}, 0),
    ],
)
def test_the_worst_rank_is_the_row(first, second, worst):
    rows = [case("t", **first), case("t", **second)]
    [(row, [judged])] = worst_rows({rank: [(row, [call(row)])] for rank, row in enumerate(rows)}, 2, "run")
    assert (row.outcome, row.verdict) == (rows[worst].outcome, rows[worst].verdict)
    assert row.run_id == judged.run_id == "run"
    differ = (rows[0].outcome, rows[0].verdict) != (rows[1].outcome, rows[1].verdict)
    assert bool(row.notes) == differ
    assert not differ or f"of rank {worst} of 2, the worst" in row.notes[0]


def test_a_case_of_one_rank_alone_says_so():
    [(row, _)] = worst_rows({0: [], 2: [(case("t", sentence="is off"), [])]}, 3, "run")
    assert row.notes == ("of rank 2 of 3, the worst (no other; nothing of ranks 0, 1)",)
    assert row.sentence == "is off"


def test_retries_are_rows_of_their_own():
    first, again = case("t", outcome="failed"), case("t", attempt=2)
    joined = worst_rows({0: [(first, []), (again, [])], 1: [(case("t"), [])]}, 2, "run")
    assert [(row.attempt, row.outcome) for row, _ in joined] == [(1, "failed"), (2, "passed")]


def test_long_rows_arrive_whole():
    rows = [
        (case(f"test {number}", sentence="ä" * 3000, margin=float("inf")), [call(case("t"))]) for number in range(500)
    ]
    shelf = Shelf()
    send_rows(shelf, 1, rows)
    assert len(shelf) > 2
    assert receive_rows(shelf, 1) == rows


def test_a_rank_that_is_gone_is_named():
    rows = [(case("t"), [])]
    joined, trouble = gather(RankGroup(0, 2, "", 0), Shelf(), rows, "run")
    assert [row.test for row, _ in joined] == ["t"]
    assert trouble == "rank 1 did not hand its rows over: wait timeout after 10ms"


@pytest.mark.skipif(not torch.distributed.is_available(), reason="torch was built without distributed")
def test_two_launched_processes_leave_one_row_a_case(tmp_path):
    (tmp_path / "test_ranks_of_a_user.py").write_text(TESTS)
    with socket.socket() as free:
        free.bind(("localhost", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node=2", f"--master-port={port}"]
    command += ["-m", "pytest", "-q", "-p", "no:cacheprovider", "--compile-backends=eager", "--compile-db=results.db"]
    environment = {k: v for k, v in os.environ.items() if not k.startswith("PYTEST")} | {"OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=200, check=False
    )
    with open_store(str(tmp_path / "results.db")) as store:
        [run] = store.runs()
        found = {row.test.rpartition("::")[2]: row for row in store.cases(run.run_id)}
    assert run.finished, done.stdout + done.stderr
    assert found.keys() == {"test_alike", "test_one_fails", "test_of_one_rank"}
    assert {name: row.outcome for name, row in found.items()} == {
        "test_alike": "passed",
        "test_one_fails": "failed",
        "test_of_one_rank": "passed",
    }
    assert found["test_alike"].notes == ()
    assert "of rank 1 of 2, the worst" in found["test_one_fails"].notes[-1]
