"""Workers of a Dask cluster that exists already: its scheduler is given by address.

Each thread of a Dask worker keeps a worker process of ours; Dask gives the tasks of a dead worker to another one.
"""

import importlib
import threading
import time
from collections import deque
from collections.abc import Generator, Iterable
from typing import Any

from plumbline.compiler.base.errors import UserError

from .local_engine import AHEAD, MOST_LOSSES, too_many_losses
from .task import Task
from .worker_process import WorkerDied, WorkerProcess, packed, unpacked

CONNECT_SECONDS = 20
WITHOUT_WORKERS_SECONDS = 600.0
"""How long a cluster may have no worker, as while a killed one is started again, before a campaign gives it up."""
ASK_SECONDS = 5.0
_thread = threading.local()


def run_in_thread(task: bytes) -> bytes | None:
    """Run a packed task in the worker process of this thread; None where its workers all died.

    Called on the nodes of the cluster, which only pass it on: they need not import what the task is made of.
    """
    for _ in range(MOST_LOSSES):
        if getattr(_thread, "worker", None) is None:
            _thread.worker = WorkerProcess()
        worker: WorkerProcess = _thread.worker
        try:
            return worker.relay(task)
        except WorkerDied:
            worker.close()
            _thread.worker = None
    return None


class DaskEngine:
    """Runs tasks on a Dask cluster.

    address: of its scheduler, host:port.  The workers need the same versions of plumbline and torch.
    """

    def __init__(self, address: str) -> None:
        try:
            distributed: Any = importlib.import_module("distributed")  # Any: most of its methods have no types
        except ImportError:
            raise UserError("Dask is not installed", hint="pip install 'plumbline[dask]'") from None
        self._killed: type[Exception] = distributed.KilledWorker
        self._late: type[Exception] = distributed.TimeoutError
        self._cancelled: type[BaseException] = distributed.CancelledError
        self._address = address
        self._open_calls = 0
        try:
            self._client = distributed.Client(f"tcp://{address}", timeout=CONNECT_SECONDS, set_as_default=False)
        except OSError as error:
            why = str(error).splitlines()[0]
            hint = "start one: dask scheduler, and dask worker on each machine"
            raise UserError("no Dask scheduler answers", where=address, why=why, hint=hint) from None

    def __enter__(self) -> "DaskEngine":
        """Return the engine."""
        return self

    def __exit__(self, *_: object) -> None:
        """Leave the cluster; its workers stay."""
        self._client.close(timeout=CONNECT_SECONDS)

    @property
    def workers(self) -> int:
        """Return how many threads the workers of the cluster have now."""
        threads: dict[str, int] = self._client.nthreads()
        return max(1, sum(threads.values()))

    def results(self, tasks: Iterable[Task | None]) -> Generator[Any, None, None]:
        """Yield the result of each task, in their order; see Engine.

        Those of a call within a call come first: somebody waits for all of them before another result of the outer one.
        """
        source = iter(tasks)
        ahead: deque[tuple[Task, Any]] = deque()
        depth = self._open_calls
        self._open_calls += 1
        try:
            while True:
                window = AHEAD * self.workers
                while len(ahead) < window and (task := next(source, None)) is not None:
                    ahead.append((task, self._submitted(task, depth)))
                if not ahead:
                    return
                yield self._result(*ahead[0], depth)
                ahead.popleft()
        finally:
            self._open_calls -= 1
            for _, future in ahead:
                future.release()  # what nobody wants is not run

    def _submitted(self, task: Task, depth: int) -> Any:
        return self._client.submit(run_in_thread, packed(task), pure=False, priority=depth)

    def _result(self, task: Task, future: Any, depth: int) -> Any:
        for _ in range(MOST_LOSSES):
            try:
                answer = self._awaited(future)
                if answer is None:
                    break
                return unpacked(answer)
            except self._killed:
                future = self._submitted(task, depth)
            except self._cancelled:
                hint = "start the scheduler again, and go on with --resume"
                raise UserError("the Dask scheduler is gone", where=self._address, hint=hint) from None
        raise too_many_losses(task)

    def _awaited(self, future: Any) -> Any:
        """Return the result of a future; raises UserError where the cluster has no worker for long."""
        seen = time.monotonic()
        while True:
            try:
                return future.result(timeout=ASK_SECONDS)
            except self._late:
                if self._client.nthreads():
                    seen = time.monotonic()
                elif time.monotonic() - seen > WITHOUT_WORKERS_SECONDS:
                    hint = "start some: dask worker, on each machine"
                    raise UserError("the cluster has no workers", where=self._address, hint=hint) from None
