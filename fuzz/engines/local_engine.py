"""Workers on this machine: processes that a single thread feeds."""

import os
from collections import Counter, deque
from collections.abc import Generator, Iterable, Iterator
from multiprocessing.connection import wait
from typing import Any

from plumbline.compiler.base.errors import UserError

from .task import Task
from .worker_process import WorkerDied, WorkerProcess

MOST_LOSSES = 5
"""Workers that one task may lose before it is taken for the cause."""

AHEAD = 4
"""Tasks for each worker that are taken before the oldest result is there: a slow task must not stop the others."""


class LocalEngine:
    """Runs tasks on worker processes of this machine.

    workers: how many; one for each processor that this process may use where None is given.
    """

    def __init__(self, workers: int | None = None) -> None:
        self.workers = workers or len(os.sched_getaffinity(0))
        self._idle: list[WorkerProcess] = []
        self._busy: dict[WorkerProcess, tuple[int, Task]] = {}
        self._lost: deque[tuple[int, Task]] = deque()
        self._losses: Counter[int] = Counter()

    def __enter__(self) -> "LocalEngine":
        """Return the engine."""
        return self

    def __exit__(self, *_: object) -> None:
        """End the workers."""
        self._drop_busy()
        while self._idle:
            self._idle.pop().close()

    def results(self, tasks: Iterable[Task]) -> Generator[Any, None, None]:
        """Yield the result of each task, in their order; see Engine."""
        source = enumerate(tasks)
        done: dict[int, Any] = {}
        following, exhausted = 0, False
        try:
            while True:
                while self._lost and len(self._busy) < self.workers:
                    self._give(*self._lost.popleft())
                while not exhausted and len(self._busy) < self.workers and self._pending(done) < AHEAD * self.workers:
                    one = next(source, None)
                    if one is None:
                        exhausted = True
                    else:
                        self._give(*one)
                while following in done:
                    yield done.pop(following)
                    following += 1
                if self._busy:
                    done.update(self._answers())
                elif exhausted and not self._lost:
                    return
        finally:
            self._drop_busy()
            self._lost.clear()
            self._losses.clear()

    def _pending(self, done: dict[int, Any]) -> int:
        return len(self._busy) + len(self._lost) + len(done)

    def _give(self, number: int, task: Task) -> None:
        worker = self._idle.pop() if self._idle else WorkerProcess()
        self._busy[worker] = number, task
        try:
            worker.send(task)
        except WorkerDied:
            self._lose(worker)

    def _answers(self) -> Iterator[tuple[int, Any]]:
        """Yield what the workers that have answered since say; there is at least one, unless it died."""
        by_connection = {worker.connection: worker for worker in self._busy}
        for ready in wait(list(by_connection)):
            worker = by_connection[ready]  # type: ignore[index]  # these are connections
            try:
                answer = worker.receive()
            except WorkerDied:
                self._lose(worker)
            else:
                number, _ = self._busy.pop(worker)
                self._idle.append(worker)
                yield number, answer

    def _lose(self, worker: WorkerProcess) -> None:
        """Remember the task of a dead worker; raises UserError where too many of its workers died."""
        number, task = self._busy.pop(worker)
        worker.close()
        self._losses[number] += 1
        if self._losses[number] >= MOST_LOSSES:
            raise too_many_losses(task)
        self._lost.append((number, task))

    def _drop_busy(self) -> None:
        while self._busy:
            self._busy.popitem()[0].close()


def too_many_losses(task: Task) -> UserError:
    """Return the error for a task whose workers all died."""
    why = f"{MOST_LOSSES} workers died with it"
    return UserError("a task cannot be run", where=str(task)[:200], why=why, hint="look at the memory of the machines")
