"""A worker: a fresh Python process that runs one task after the other; it may be killed at any time.

A process of its own, and not a fork of the one that asks: workers of clusters have threads, and some of them are
daemons, which may have no children of multiprocessing's.
"""

import contextlib
import os
import signal
import socket
import subprocess
import sys
from multiprocessing.connection import Connection
from typing import Any

from .task import Bench, Task


class WorkerDied(Exception):
    """The process is gone before it answered; the same task may be given to another worker."""


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
        try:
            self.connection.send(task)
        except (BrokenPipeError, ConnectionError):
            raise WorkerDied from None

    def receive(self) -> Any:
        """Wait for the result of the task; raises WorkerDied, and RuntimeError for an exception of the task's."""
        try:
            raised, answer = self.connection.recv()
        except (EOFError, ConnectionError):
            raise WorkerDied from None
        if raised:
            raise RuntimeError(answer)
        return answer

    def run(self, task: Task) -> Any:
        """Return the result of a task; raises as send() and receive() do."""
        self.send(task)
        return self.receive()

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
                task: Task = connection.recv()
            except (EOFError, ConnectionError):
                return
            try:
                connection.send((False, task.run(bench)))
            except ConnectionError:
                return
            except Exception as error:  # as text: its class may not exist where it is read
                connection.send((True, f"{type(error).__name__}: {error}"))


if __name__ == "__main__":
    _serve(Connection(int(sys.argv[1])))
