"""A worker: a fresh Python process that runs one task after the other; it may be killed at any time.

A process of its own, and not a fork of the one that asks: workers of clusters have threads, and some of them are
daemons, which may have no children of multiprocessing's.
"""

import contextlib
import os
import pickle
import signal
import socket
import subprocess
import sys
from multiprocessing.connection import Connection
from typing import Any

from .task import Bench, Task


class WorkerDied(Exception):
    """The process is gone before it answered; the same task may be given to another worker."""


def packed(task: Task) -> bytes:
    """Return a task as a worker reads it; tensors go along by value, to other machines as well."""
    return pickle.dumps(task)


def unpacked(answer: bytes) -> Any:
    """Return the result that a worker answers; raises RuntimeError for an exception of the task's."""
    raised, result = pickle.loads(answer)
    if raised:
        raise RuntimeError(result)
    return result


class WorkerProcess:
    """A worker process and the connection to it; it ends when the connection does."""

    def __init__(self) -> None:
        ours, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-m", __name__, str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "OMP_NUM_THREADS": "1"},
                stdin=subprocess.DEVNULL,
                start_new_session=True,  # an interrupt at the terminal is for the campaign, which closes its workers
            )
        self.connection: Connection = Connection(ours.detach())

    @property
    def pid(self) -> int:
        """Return the number of the process."""
        return self._process.pid

    def send(self, task: Task) -> None:
        """Give it a task; raises WorkerDied."""
        self._send(packed(task))

    def receive(self) -> Any:
        """Wait for the result of the task; raises WorkerDied, and RuntimeError for an exception of the task's."""
        return unpacked(self._receive())

    def relay(self, task: bytes) -> bytes:
        """Return the answer to a packed task, as it is: who relays them imports nothing; raises WorkerDied."""
        self._send(task)
        return self._receive()

    def _send(self, task: bytes) -> None:
        try:
            self.connection.send_bytes(task)
        except (BrokenPipeError, ConnectionError):
            raise WorkerDied from None

    def _receive(self) -> bytes:
        try:
            return self.connection.recv_bytes()
        except (EOFError, ConnectionError):
            raise WorkerDied from None

    def close(self) -> None:
        """End the process, whatever it is doing, and what it has started."""
        self.connection.close()
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        self._process.wait()


def _serve(connection: Connection) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with Bench() as bench:
        while True:
            try:
                task: Task = pickle.loads(connection.recv_bytes())
            except (EOFError, ConnectionError):
                return
            try:
                answer = pickle.dumps((False, task.run(bench)))
            except Exception as error:  # as text: its class may not exist where it is read
                answer = pickle.dumps((True, f"{type(error).__name__}: {error}"))
            try:
                connection.send_bytes(answer)
            except ConnectionError:
                return


if __name__ == "__main__":
    _serve(Connection(int(sys.argv[1])))
