"""The row of a task: what its cases gave, with those that end or hang the process found one by one."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from plumbline.minifier.engines.task import Bench

from .case_trial import CaseFault
from .cases import SweepTask
from .replay import Lost, TaskChild
from .task_trial import EAGER, TaskRequest

MOST_EAGER_DEATHS = 5
"""Cases of a task in which eager itself may end the process before the task is given up."""


@dataclass(frozen=True, slots=True)
class SweepTrial:
    """A task of a sweep for an engine."""

    request: TaskRequest

    def run(self, bench: Bench) -> dict[str, Any]:
        """Return the row; the child process that tries it is kept for the next task."""
        return tried_row(self.request, bench.keep("sweep", TaskChild))


def tried_row(request: TaskRequest, child: TaskChild) -> dict[str, Any]:
    """Return the row of a task, whatever ends the processes that try it."""
    task = request.task
    died: list[str] = []
    row = child.try_task(request)
    while isinstance(row, Lost) and row.died and child.where.read().startswith(EAGER):
        died.append(child.where.read().removeprefix(EAGER).strip())
        if len(died) > MOST_EAGER_DEATHS:
            return {**_empty_row(task), "eager_died": died}
        request = replace(request, without=tuple(died))
        row = child.try_task(request)
    if isinstance(row, Lost):
        row = _case_by_case(child, request, row)
    return {**row, "eager_died": [*died, *row.get("eager_died", ())]} if died else row


def _case_by_case(child: TaskChild, request: TaskRequest, first: Lost) -> dict[str, Any]:
    """Try each case of a task that was lost on its own, to name the one that loses it."""
    where = child.where.read()
    names = child.try_task(replace(request, listed=True))
    rows: list[dict[str, Any]] = []
    lost = int(first.died)
    for name in [] if isinstance(names, Lost) else names["names"]:
        row = child.try_task(replace(request, only=(name,)))
        if isinstance(row, Lost):
            lost += row.died
            row = {**_empty_row(request.task), "cases": 1, "kinds": {"CRASH": 1}, "faults": [_lost(name, row)]}
        rows.append(row)
    total = _sum(request.task, rows)
    if not total["faults"]:  # it takes several of them
        told = replace(first, sentence=f"{first.sentence}, at: {where}")
        total["faults"] = [_lost(f"{request.task.key} alone 0", told)]
    return {**total, "lost": lost}


def _lost(name: str, lost: Lost) -> dict[str, Any]:
    aspect = "process" if lost.died else "judge"
    return _plain(CaseFault(name, "CRASH", aspect, lost.sentence[:60], f"the compiled program {lost.sentence}"))


def _plain(fault: CaseFault) -> dict[str, Any]:
    return {name: getattr(fault, name) for name in CaseFault.__slots__}


def _empty_row(task: SweepTask, **more: object) -> dict[str, Any]:
    counts: dict[str, Any] = {"cases": 0, "refused": 0, "kinds": {}, "vacuous": 0, "breaks": {}, "faults": []}
    return {"task": task.key, **counts, "cpu_seconds": 0.0, "seconds": 0.0, **more}


def _sum(task: SweepTask, rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    total = _empty_row(task)
    for row in rows:
        for name in ("cases", "refused", "vacuous", "cpu_seconds", "seconds"):
            total[name] += row[name]
        for name in ("kinds", "breaks"):
            total[name] = dict(Counter(total[name]) + Counter(row[name]))
        total["faults"] = [*total["faults"], *row["faults"]]
    return total
