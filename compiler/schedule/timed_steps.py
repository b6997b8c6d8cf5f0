"""What a timed host tells of its steps: how long each took and how much it did, on record."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

from ..base.events import KernelRan, record
from ..loops.ir import Extern
from .execution_plan import ExecutionPlan
from .work import work_of


def noting(plan: ExecutionPlan) -> Callable[[int, float], None]:
    """Return what a timed host calls behind each step: it puts the time, and how much was done, on record."""
    rows: dict[int, KernelRan] = {}

    def note(number: int, started: float) -> None:
        seconds = time.perf_counter() - started
        if number not in rows:
            step = plan.steps[number]
            part = step if isinstance(step, Extern) else step.loops[0]
            work = work_of(part, plan.program)
            kind = "ATen" if isinstance(step, Extern) else "kernel"
            name = str(step.target) if isinstance(step, Extern) else part.name
            rows[number] = KernelRan(kind, name, 0.0, work.bytes, work.flops, part.origins)
        record(replace(rows[number], seconds=seconds))

    return note
