"""A sweep as the command line runs it: which tasks, where rows and findings go, a line of progress, signals."""

import json
import re
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from plumbline.compiler.base.errors import UserError
from plumbline.minifier.engines.engine_places import find_engine
from plumbline.oracle.harness.known_compilers import find_compiler
from plumbline.reports.atomic_file import write_whole
from plumbline.reports.provenance import describe_run
from plumbline.reports.rows import CaseRow, identify_case
from plumbline.reports.store import open_store

from ..findings import FuzzSignature
from ..interruption import terminated_like_interrupted
from .case_trial import CaseFault
from .cases import DTYPES, MODULE, SweepTask, dtype_of, read_case
from .known_deviations import known_deviations
from .prepared_cases import PreparedCase
from .row_store import RowStore
from .sweep import Sweep, SweepReport, SweepSettings
from .sweep_script import sweep_script
from .task_trial import TaskRequest, prepared_cases
from .torch_samples import MODULES, OPERATORS

Say = Callable[[str], None]

LINE_SECONDS = 30.0
"""Between two lines of progress where standard error is not a terminal."""


@dataclass(frozen=True, slots=True)
class SweepCommand:
    """What the user asked for: see `plumbline sweep --help`."""

    operators: str = ""
    backends: tuple[str, ...] = ("aot_eager", "inductor")
    dtypes: tuple[str, ...] = DTYPES
    sizes: tuple[str, ...] = ("static", "dynamic")
    samples: int = 4
    minutes: float | None = None
    resume: bool = False
    retry: bool = False
    seed: int = 0
    folder: Path = Path(".plumbline/sweep")
    engine: str = ""


def tasks_of(command: SweepCommand) -> tuple[SweepTask, ...]:
    """Return the tasks of a command; raises UserError for an unknown dtype or backend, or if no operator matches."""
    for name in command.dtypes:
        if name not in DTYPES:
            raise UserError(f"unknown dtype {name!r}", hint=f"choose from {', '.join(DTYPES)}")
    for backend in command.backends:
        find_compiler("plumbline", backend)
    try:
        pattern = re.compile(command.operators)
    except re.error as error:
        hint = "such as --op '^add$'"
        raise UserError(f"{command.operators!r} is not a regular expression", why=str(error), hint=hint) from None
    supported = {name: info.supported_dtypes("cpu") for name, info in OPERATORS.items()}
    supported |= {f"{MODULE}{name}": set(info.dtypes) | _HALF for name, info in MODULES.items()}
    tasks = tuple(
        SweepTask(operator, dtype, size == "dynamic", backend)
        for operator, dtypes in supported.items()
        if pattern.search(operator)
        for dtype in command.dtypes
        if dtype_of(dtype) in dtypes
        for size in command.sizes
        for backend in command.backends
    )
    if not tasks:
        raise UserError(f"no operator matches {command.operators!r}", hint="such as --op '^add$' or --op '^module:'")
    return tasks


_HALF = {torch.float16, torch.bfloat16}


def run_recorded_sweep(command: SweepCommand, database: str, say: Say) -> SweepReport:
    """Run a sweep, report each finding at once, and store rows; wrong requests are refused before anything starts."""
    tasks = tasks_of(command)
    written_under = {"seed": command.seed, "samples": command.samples}
    with (
        RowStore(
            command.folder / "rows.jsonl",
            written_under,
            resume=command.resume or command.retry,
            retry=command.retry,
        ) as rows,
        open_store(database, write=True) as results,
        ExitStack() as engines,
    ):
        run = describe_run(sys.argv, Path.cwd(), threads=1)
        results.begin_run(run)
        line = _ProgressLine()

        def on_finding(fault: CaseFault) -> None:
            line.clear()
            say(_finding_text(fault, save_finding(command.folder / "findings", fault)))

        def on_row(task: SweepTask, row: dict[str, Any]) -> None:
            results.append([task_row(task, row, run.run_id)])

        settings = SweepSettings(tasks, command.samples, command.seed, command.minutes)
        engine = engines.enter_context(find_engine(command.engine)) if command.engine else None
        sweep = Sweep(
            settings,
            rows,
            known_deviations(),
            on_row=on_row,
            on_finding=on_finding,
            progress=line.show,
            engine=engine,
        )
        with terminated_like_interrupted():
            report = sweep.run()
        line.clear()
        if not report.interrupted:
            results.finish_run(run.run_id)
    return report


def save_finding(folder: Path, fault: CaseFault) -> Path:
    """Write a finding as JSON and as a script beside it, and return the JSON file."""
    case = read_case(fault.case)
    signature = FuzzSignature(fault.kind, fault.aspect, fault.detail, (case.task.operator, case.task.dtype))
    file = folder / f"{signature.name}.json"
    plain = {name: getattr(fault, name) for name in CaseFault.__slots__}
    write_whole(file, json.dumps({"plumbline_sweep": 1, **plain}, indent=1) + "\n")
    write_whole(file.with_suffix(".py"), sweep_script(fault, _prepared(fault)))
    return file


def _prepared(fault: CaseFault) -> PreparedCase | None:
    """Prepare the case of a fault in this process, unless that is what ended the other one."""
    case = read_case(fault.case)
    if case.task.is_module or fault.aspect == "process":
        return None
    cases = prepared_cases(TaskRequest(case.task, samples=1, seed=0, only=(fault.case,)))
    return cases[0] if cases else None


def task_row(task: SweepTask, row: dict[str, Any], run_id: str) -> CaseRow:
    """Return the row of a task for the result database."""
    test = f"sweep:operators/{task.operator}[{task.dtype}-{'dynamic' if task.dynamic else 'static'}]"
    faults = [CaseFault(**fault) for fault in row["faults"]]
    compiled = row["cases"] - row["vacuous"]
    worst = faults[0] if faults else None
    return CaseRow(
        run_id=run_id,
        case_id=identify_case(test, "plumbline", task.backend),
        test=test,
        compiler="plumbline",
        backend=task.backend,
        outcome="failed" if faults else "passed" if compiled else "skipped",
        verdict=worst.kind if worst else "",
        sentence=worst.sentence if worst else f"{row['cases']} cases, {row['vacuous']} compiled to nothing",
        aspect=worst.aspect if worst else "",
        where=worst.case if worst else "",
        judged_calls=row["cases"],
        test_seconds=row["seconds"],
        notes=tuple(f"{kind}: {count} cases" for kind, count in sorted(row["kinds"].items())),
    )


def _finding_text(fault: CaseFault, file: Path) -> str:
    first = f"{fault.kind} {fault.aspect}: {fault.case}"
    return f"{first}\n  {fault.sentence[:400]}\n  saved: {file} and {file.with_suffix('.py').name}"


class _ProgressLine:
    """One line on standard error that says how far the sweep is; on a terminal it replaces itself."""

    def __init__(self) -> None:
        self._live = sys.stderr.isatty()
        self._last = time.monotonic()

    def show(self, report: SweepReport, now: str) -> None:
        """Show how far the sweep is and what it does now."""
        text = (
            f"{report.done}/{report.total} tasks, {report.cases} cases, {len(report.findings)} findings, "
            f"{report.listed} listed, {report.lost} lost, {report.rate:.0f} cases/CPU min: {now}"
        )
        if self._live:
            sys.stderr.write(f"\r\x1b[K{text[:150]}")
            sys.stderr.flush()
        elif time.monotonic() - self._last > LINE_SECONDS:
            self._last = time.monotonic()
            sys.stderr.write(f"{text}\n")
            sys.stderr.flush()

    def clear(self) -> None:
        """Remove the line, so that something else can be printed."""
        if self._live:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
