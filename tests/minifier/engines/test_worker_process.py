"""A worker process answers task after task, tells exceptions as text, and is gone when it is killed or closed."""

import os
import signal

import pytest

from plumbline.minifier.engines.worker_process import WorkerDied, WorkerProcess, packed, unpacked
from support.engine_tasks import Kept, Raising, Square


def answer_of(worker, task):
    return unpacked(worker.relay(packed(task)))


def test_a_worker_answers_until_it_is_killed():
    worker = WorkerProcess()
    try:
        assert answer_of(worker, Square(7)) == 49
        with pytest.raises(RuntimeError, match="ValueError: not this one"):
            answer_of(worker, Raising())
        assert answer_of(worker, Kept("a")) == (worker.pid, 1)
        assert answer_of(worker, Kept("a")) == (worker.pid, 2)
        os.kill(worker.pid, signal.SIGKILL)
        with pytest.raises(WorkerDied):
            answer_of(worker, Square(1))
    finally:
        worker.close()


def test_a_worker_ends_with_its_connection():
    worker = WorkerProcess()
    assert answer_of(worker, Square(2)) == 4
    worker.connection.close()
    assert worker._process.wait(timeout=20) == 0
