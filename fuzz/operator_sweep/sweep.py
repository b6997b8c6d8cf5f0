"""The sweep: every task in turn, rows stored as they come, faults told apart, counts for a summary."""

import itertools
import time
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from typing import Any

from plumbline.minifier.engines.engine_places import Engine

from .case_trial import CaseFault
from .cases import DTYPES, SweepCase, SweepTask, read_case, shuffled_tasks
from .contexts import RANK
from .known_deviations import KnownDeviation
from .replay import Lost, TaskChild
from .row_store import RowStore
from .sweep_trial import SweepTrial, tried_row
from .task_trial import TaskRequest

MOST_LISTED = 0.005
"""The share of cases that the list of known deviations may excuse."""

ENOUGH_TO_RATE = 1000


@dataclass(frozen=True, slots=True)
class SweepSettings:
    """What a sweep goes through.

    tasks: all of them, in the order of their names.  samples: of each operator and dtype.  minutes: of wall time after
    which no task is started, None for no limit.
    """

    tasks: tuple[SweepTask, ...]
    samples: int = 4
    seed: int = 0
    minutes: float | None = None


@dataclass(slots=True)
class SweepReport:
    """Counts of a sweep, filled while it runs, so that an interruption loses nothing.

    kinds: of verdicts over all cases.  listed: cases that known deviations explain.  findings: one for each distinct
    fault.  faulty: cases that have one.  lost: processes that died or hung.  eager_died: cases in which eager itself
    ends the process, or writes where it must not.  stale: known deviations that nothing showed, though all their
    tasks were done.
    """

    total: int = 0
    done: int = 0
    resumed: int = 0
    cases: int = 0
    kinds: Counter[str] = field(default_factory=Counter)
    vacuous: int = 0
    listed: int = 0
    faulty: int = 0
    findings: list[CaseFault] = field(default_factory=list)
    lost: int = 0
    eager_died: list[str] = field(default_factory=list)
    stale: list[KnownDeviation] = field(default_factory=list)
    cpu_seconds: float = 0.0
    by_backend: dict[str, Counter[str]] = field(default_factory=dict)
    interrupted: bool = False

    @property
    def rate(self) -> float:
        """Return cases per minute of CPU time."""
        return 60 * self.cases / self.cpu_seconds if self.cpu_seconds else 0.0

    @property
    def failed(self) -> bool:
        """Return whether the command must exit with 1."""
        too_many = self.cases >= ENOUGH_TO_RATE and self.listed > MOST_LISTED * self.cases
        return bool(self.findings or self.stale or too_many)

    def summary(self) -> str:
        """Return the sweep as a few lines for a person."""
        ended = " (interrupted)" if self.interrupted else ""
        kinds = ", ".join(f"{kind} {count}" for kind, count in sorted(self.kinds.items()))
        lines = [
            f"{self.done} of {self.total} tasks, {self.cases} cases, {len(self.findings)} findings in {self.faulty} "
            f"cases, {self.listed} cases listed, {self.lost} processes lost{ended}",
            f"verdicts: {kinds or 'none'}; {self.vacuous} compiled to nothing",
            f"{self.cpu_seconds / 60:.1f} CPU minutes, {self.rate:.0f} cases a CPU minute",
        ]
        for backend, counts in self.by_backend.items():
            right = counts["cases"] - counts["faulty"] - counts["listed"]
            share = 100 * right / counts["cases"] if counts["cases"] else 0.0
            lines.append(f"{backend}: {counts['cases']} cases, {right} as in eager ({share:.3f} %)")
        lines += [f"eager itself ends or damages the process: {where}" for where in self.eager_died]
        lines += [f"nothing shows this known deviation any more: {e.operator} {e.example}" for e in self.stale]
        return "\n".join(lines)


class Sweep:
    """One run over the tasks.

    on_row: called with each finished row.  on_finding: with each new distinct fault.  progress: often.
    engine: runs the tasks; a child of this process does where none is given.
    """

    def __init__(
        self,
        settings: SweepSettings,
        store: RowStore,
        known: Sequence[KnownDeviation],
        *,
        on_row: Callable[[SweepTask, dict[str, Any]], None] = lambda task, row: None,
        on_finding: Callable[[CaseFault], None] = lambda fault: None,
        progress: Callable[[SweepReport, str], None] = lambda report, now: None,
        engine: Engine | None = None,
    ) -> None:
        self.settings, self.store, self.known = settings, store, known
        self.on_row, self.on_finding, self.progress, self.engine = on_row, on_finding, progress, engine
        self.report = SweepReport(total=len(settings.tasks))
        self._used: set[KnownDeviation] = set()
        self._seen: set[tuple[str, str, str, str]] = set()

    def run(self) -> SweepReport:
        """Go through the tasks to the end, the time limit or an interruption, and return the report."""
        ends = time.monotonic() + 60 * self.settings.minutes if self.settings.minutes is not None else None
        todo = []
        for task in shuffled_tasks(self.settings.tasks, self.settings.seed):
            row = self.store.rows.get(task.key)
            if row is None:
                todo.append(task)
            else:
                self.report.resumed += 1
                self._count(task, row)
        with TaskChild() as child:
            try:
                in_time = itertools.takewhile(lambda _: ends is None or time.monotonic() <= ends, todo)
                with closing(self._rows(in_time, child)) as rows:
                    for task, row in rows:
                        self.store.append(row)
                        self._count(task, row, child)
                        self.on_row(task, row)
            except KeyboardInterrupt:
                self.report.interrupted = True
        self.report.stale = self._stale()
        return self.report

    def _rows(
        self, tasks: Iterable[SweepTask], child: TaskChild
    ) -> Generator[tuple[SweepTask, dict[str, Any]], None, None]:
        """Yield the row of each task, from the child or from the engine."""
        requests = (TaskRequest(task, self.settings.samples, self.settings.seed) for task in tasks)
        if self.engine is None:
            for request in requests:
                self.progress(self.report, request.task.key)
                yield request.task, tried_row(request, child)
            return
        asked, told = itertools.tee(requests)  # the engine is a few tasks ahead
        with closing(self.engine.results(map(SweepTrial, asked))) as results:
            for row, request in zip(results, told, strict=False):
                self.progress(self.report, request.task.key)
                yield request.task, row

    def _count(self, task: SweepTask, row: dict[str, Any], child: TaskChild | None = None) -> None:
        report = self.report
        counts = report.by_backend.setdefault(task.backend, Counter())
        report.done += 1
        report.cases += row["cases"]
        report.kinds.update(row["kinds"])
        report.vacuous += row["vacuous"]
        report.cpu_seconds += row["cpu_seconds"]
        report.lost += row.get("lost", 0)
        counts["cases"] += row["cases"]
        if row.get("eager_died"):
            report.eager_died += row["eager_died"]
        faults = [CaseFault(**{**fault, "together": tuple(fault["together"])}) for fault in row["faults"]]
        unknown = [fault for fault in faults if not self._is_known(fault)]
        faulty = {fault.case for fault in unknown}
        listed = {fault.case for fault in faults} - faulty
        report.faulty += len(faulty)
        report.listed += len(listed)
        counts["faulty"] += len(faulty)
        counts["listed"] += len(listed)
        for fault in sorted(unknown, key=_simplicity):
            self._find(task, fault, child)

    def _is_known(self, fault: CaseFault) -> bool:
        entries = [entry for entry in self.known if entry.matches(read_case(fault.case), fault)]
        self._used.update(entries)
        return bool(entries)

    def _find(self, task: SweepTask, fault: CaseFault, child: TaskChild | None) -> None:
        signature = (task.operator, fault.kind, fault.aspect, fault.detail)
        if signature in self._seen:
            return
        self._seen.add(signature)
        smallest = self._simplest_dtype(fault, child) if child is not None else fault
        self.report.findings.append(smallest)
        self.on_finding(smallest)

    def _simplest_dtype(self, fault: CaseFault, child: TaskChild) -> CaseFault:
        """Return the fault as the simplest dtype shows it: where faults are alike, float32 is easier to read."""
        case = read_case(fault.case)
        if case.task.dtype == DTYPES[0] or fault.together or fault.aspect in ("process", "judge"):
            return fault
        simpler = SweepCase(replace(case.task, dtype=DTYPES[0]), case.sample, case.context)
        request = TaskRequest(simpler.task, self.settings.samples, self.settings.seed, only=(simpler.key,))
        row = child.try_task(request)
        for plain in [] if isinstance(row, Lost) else row["faults"]:
            first = CaseFault(**plain)
            if first.same_fault(fault):
                return first
        return fault

    def _stale(self) -> list[KnownDeviation]:
        """Return the entries that nothing showed although every task they could be about was done."""
        undone = [task for task in self.settings.tasks if task.key not in self.store.rows]
        about = {task.operator for task in self.settings.tasks}
        return [
            entry
            for entry in self.known
            if entry not in self._used
            and entry.operator in about
            and not any(map(entry.concerns, undone))
            and read_case(entry.example).task in self.settings.tasks
        ]


def _simplicity(fault: CaseFault) -> tuple[int, int]:
    case = read_case(fault.case)
    return RANK.get(case.context, 0), case.sample
