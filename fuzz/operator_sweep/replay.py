"""Cases of the sweep tried again by their names, in a child process that may die."""

import mmap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from plumbline.oracle.harness.known_compilers import find_compiler
from plumbline.oracle.verdict import Verdict, VerdictKind

from ..findings import TrialResult
from ..isolation import Workshop
from .case_trial import CaseFault
from .cases import read_case
from .task_trial import TaskRequest, try_task

TASK_SECONDS = 900.0
"""A task compiles a few functions; with gradients of large modules, on a busy machine, that took five minutes."""


class Whereabouts:
    """What the child is doing, in memory that both processes see: a dead process cannot say it any more."""

    def __init__(self) -> None:
        self._memory = mmap.mmap(-1, 1024)

    def say(self, text: str) -> None:
        """Write down what comes next."""
        data = text.encode()[:1023]
        self._memory[: len(data) + 1] = data + b"\0"

    def read(self) -> str:
        """Return what was written last."""
        return self._memory[:].split(b"\0", 1)[0].decode(errors="replace")


@dataclass(frozen=True, slots=True)
class Lost:
    """A task without a row: why, as the end of a sentence, and whether the process died or hung."""

    sentence: str
    died: bool


class TaskChild:
    """Tries tasks in one warm child process, which is replaced when it dies, hangs or has grown old.

    A context manager.  compiler: name of the compiler under test.
    """

    TASKS = 60

    def __init__(self, compiler: str = "plumbline", seconds: float = TASK_SECONDS) -> None:
        self.where = Whereabouts()
        self._compiler = compiler
        self._workshop = Workshop(self._attempt, seconds)
        self._served = 0

    def __enter__(self) -> "TaskChild":
        """Return itself; the child starts with the first task."""
        return self

    def __exit__(self, *_: object) -> None:
        """End the child."""
        self._workshop.close()

    def _attempt(self, request: TaskRequest, backend: str) -> TrialResult:
        del backend  # the task names its own
        torch.set_num_threads(1)
        compiler = find_compiler(self._compiler, request.task.backend)
        row = try_task(request, compiler, self.where.say)
        return TrialResult(Verdict(VerdictKind.EQUAL, ""), details=row)

    def try_task(self, request: TaskRequest) -> dict[str, Any] | Lost:
        """Return the row of a task, or how it was lost."""
        if self._served >= self.TASKS:
            self._workshop.close()
            self._served = 0
        self._served += 1
        trial = self._workshop.try_one(request)
        if trial.details is not None:
            return trial.details
        assert trial.signature is not None
        return Lost(trial.verdict.sentence.removeprefix("the attempt "), died=trial.signature.aspect == "process")


def still_fails(names: Sequence[str]) -> bool:
    """Try cases of one task together, as the sweep does, and return whether the first one fails; prints why."""
    cases = [read_case(name) for name in names]
    with TaskChild() as child:
        row = child.try_task(TaskRequest(cases[0].task, samples=1, seed=0, only=tuple(names)))
    if isinstance(row, Lost):
        return True
    faults = [CaseFault(**fault) for fault in row["faults"]]
    return any(fault.case == names[0] or fault.together for fault in faults)
