"""A process forked while another thread compiled hung at its first compiled call: the locks stayed held there."""

import gc
import os
import signal
import threading
import time
from weakref import WeakSet

import pytest
import torch

import plumbline
from plumbline.compiler.base.locks import _LOCKS, ForkedLock

X = torch.ones(3)


def in_child(act, seconds=60):
    """Return what a forked child exits with; None if it had to be killed."""
    child = os.fork()
    if child == 0:
        try:
            act()
            os._exit(0)
        except BaseException:
            os._exit(1)
    for _ in range(seconds * 20):
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.05)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return None


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
def test_a_call_in_a_child_forked_during_a_compilation():
    inside, go_on = threading.Event(), threading.Event()

    def backend(graph, inputs):
        inside.set()
        go_on.wait(60)
        return graph.forward

    run = plumbline.compile(lambda x: x + 1, backend=backend)
    thread = threading.Thread(target=run, args=(X,))
    thread.start()
    assert inside.wait(60)

    def call():
        go_on.set()
        assert torch.equal(run(X), X + 1)

    assert in_child(call, seconds=20) == 0
    go_on.set()
    thread.join()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
def test_the_thread_that_forks_keeps_its_lock():
    lock = ForkedLock()

    def use():
        with lock:
            pass
        lock.release()
        with pytest.raises(RuntimeError):
            lock.release()

    with lock:
        assert in_child(use) == 0


def test_locks_are_not_kept():
    assert isinstance(_LOCKS, WeakSet)
    lock = ForkedLock()
    before = len(_LOCKS)
    del lock
    gc.collect()
    assert len(_LOCKS) < before
