"""Workers on this machine: processes that a single thread feeds."""

import os
import time
from collections import Counter, deque
from collections.abc import Generator, Iterable
from dataclasses import dataclass, field
from multiprocessing.connection import wait
from typing import Any

from plumbline.compiler.base.errors import UserError

from .task import Task
from .worker_process import WorkerDied, WorkerProcess

MOST_LOSSES = 5
"""Workers that one task may lose before it is taken for the cause."""

GRACE_SECONDS = 5.0
"""How long a worker may go on with a task that nobody wants any more: a new worker takes as long to import torch."""

AHEAD = 10
"""Tasks for each worker that are taken before the oldest result is there: neither a slow task nor one whose result is
looked at for long may stop the others."""


@dataclass(eq=False, slots=True)
class _OpenCall:
    """One call of results(): several may be open at once, for a result may raise questions of its own.

    running: tasks that workers have.  lost: those whose worker died.  done: results that wait for their turn.
    closed: when the call was closed, None while it is open; see GRACE_SECONDS.
    """

    running: int = 0
    lost: deque[tuple[int, Task]] = field(default_factory=deque)
    done: dict[int, Any] = field(default_factory=dict)
    losses: Counter[int] = field(default_factory=Counter)
    closed: float | None = None

    @property
    def pending(self) -> int:
        """Return how many tasks were taken whose results were not given yet."""
        return self.running + len(self.lost) + len(self.done)


class LocalEngine:
    """Runs tasks on worker processes of this machine.

    workers: how many; one for each processor that this process may use where None is given.
    """

    def __init__(self, workers: int | None = None) -> None:
        self.workers = workers or len(os.sched_getaffinity(0))
        self._idle: list[WorkerProcess] = []
        self._busy: dict[WorkerProcess, tuple[_OpenCall, int, Task]] = {}

    def __enter__(self) -> "LocalEngine":
        """Return the engine."""
        return self

    def __exit__(self, *_: object) -> None:
        """End the workers."""
        while self._busy:
            self._busy.popitem()[0].close()
        while self._idle:
            self._idle.pop().close()

    def results(self, tasks: Iterable[Task | None]) -> Generator[Any, None, None]:
        """Yield the result of each task, in their order; see Engine."""
        source = iter(tasks)
        stream = _OpenCall()
        given, following, exhausted = 0, 0, False
        try:
            while True:
                while stream.lost and len(self._busy) < self.workers:
                    self._give(stream, *stream.lost.popleft())
                while not exhausted and len(self._busy) < self.workers and stream.pending < AHEAD * self.workers:
                    try:
                        task = next(source)
                    except StopIteration:
                        exhausted = True
                        break
                    if task is None:
                        break
                    self._give(stream, given, task)
                    given += 1
                while following in stream.done:
                    yield stream.done.pop(following)
                    following += 1
                if exhausted and not stream.pending:
                    return
                if self._busy:
                    self._take_answers()
        finally:
            stream.closed = time.monotonic()

    def _give(self, stream: _OpenCall, number: int, task: Task) -> None:
        worker = self._idle.pop() if self._idle else WorkerProcess()
        self._busy[worker] = stream, number, task
        stream.running += 1
        try:
            worker.send(task)
        except WorkerDied:
            self._lose(worker)

    def _take_answers(self) -> None:
        """Wait until a worker has answered, died or had its grace, whichever stream its task is of."""
        by_connection = {worker.connection: worker for worker in self._busy}
        closed = [stream.closed for stream, _, _ in self._busy.values() if stream.closed is not None]
        grace = max(0.0, min(closed) + GRACE_SECONDS - time.monotonic()) if closed else None
        for ready in wait(list(by_connection), grace):
            worker = by_connection[ready]  # type: ignore[index]  # these are connections
            try:
                answer = worker.receive()
            except WorkerDied:
                self._lose(worker)
            except RuntimeError:
                stream, _ = self._free(worker)
                if stream.closed is None:
                    raise
            else:
                stream, number = self._free(worker)
                stream.done[number] = answer
        self._end_late_ones()

    def _free(self, worker: WorkerProcess) -> tuple[_OpenCall, int]:
        stream, number, _ = self._busy.pop(worker)
        self._idle.append(worker)
        stream.running -= 1
        return stream, number

    def _lose(self, worker: WorkerProcess) -> None:
        """Remember the task of a dead worker; raises UserError where too many of its workers died."""
        stream, number, task = self._busy.pop(worker)
        worker.close()
        stream.running -= 1
        if stream.closed is not None:
            return
        stream.losses[number] += 1
        if stream.losses[number] >= MOST_LOSSES:
            raise too_many_losses(task)
        stream.lost.append((number, task))

    def _end_late_ones(self) -> None:
        """End the workers whose tasks nobody wants and that had their grace."""
        over = time.monotonic() - GRACE_SECONDS
        for worker, (stream, _, _) in list(self._busy.items()):
            if stream.closed is not None and stream.closed <= over:
                del self._busy[worker]
                worker.close()


def too_many_losses(task: Task) -> UserError:
    """Return the error for a task whose workers all died."""
    why = f"{MOST_LOSSES} workers died with it"
    return UserError("a task cannot be run", where=str(task)[:200], why=why, hint="look at the memory of the machines")
