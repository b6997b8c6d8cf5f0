"""SilentBench as the command line runs it: each chosen case in a child process, judged and scored."""

import json
import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from tabulate import tabulate

from plumbline.compiler.base.errors import UserError
from plumbline.oracle.harness.known_compilers import find_compiler
from plumbline.oracle.verdict import VerdictKind
from plumbline.reports.atomic_file import write_whole

from ..findings import TrialResult
from ..interruption import terminated_like_interrupted
from ..isolation import Workshop
from .bench_cases import BenchCase, bench_cases
from .bench_scores import BenchReport, CaseOutcome
from .case_judgement import judged_case
from .other_tools import flagged_tests
from .plain_comparison import NAME, compared_case

JUDGE = "plumbline's judge"
_UNJUDGED = frozenset({VerdictKind.VACUOUS, VerdictKind.JUDGE_FAILED, VerdictKind.NO_REFERENCE})

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class BenchCommand:
    """What the user asked for: see `plumbline bench silent --help`.

    judge: "" for ours, `assert_close` for the yardstick, anything else names the tool that is scored.
    """

    compiler: str = "torch"
    backends: tuple[str, ...] = ("inductor",)
    pattern: str = ""
    junit: Path | None = None
    judge: str = ""


def run_bench(command: BenchCommand, on_progress: Say = lambda line: None) -> list[BenchReport]:
    """Return a report for each backend; ends early, marked interrupted, on Ctrl-C and SIGTERM.

    Raises UserError for an unknown compiler or backend, or where no case matches.
    """
    for backend in command.backends:
        find_compiler(command.compiler, backend)
    cases = chosen_cases(command.pattern)
    if command.junit is not None:
        return [_scored(command, command.junit, cases)]
    reports = []
    with terminated_like_interrupted():
        for backend in command.backends:
            report = _report(command, backend, cases)
            reports.append(report)
            judge_cases(report, cases, on_progress)
            if report.interrupted:
                break
    return reports


def chosen_cases(pattern: str) -> tuple[BenchCase, ...]:
    """Return the cases whose `class/name` has the pattern; raises UserError if there is none."""
    try:
        wanted = re.compile(pattern)
    except re.error as error:
        raise UserError(
            f"{pattern!r} is not a regular expression", why=str(error), hint="such as --case ^hooks/"
        ) from None
    cases = tuple(case for case in bench_cases() if wanted.search(f"{case.fault}/{case.name}"))
    if not cases:
        raise UserError(f"no case matches {pattern!r}", hint="such as --case ^hooks/ or --case nan")
    return cases


def case_list(pattern: str) -> str:
    """Return the chosen cases as a table: what each program checks of, where it is from, what is known of it."""
    rows = [
        (
            f"{case.fault}/{case.name}",
            case.source or "-",
            case.wrong_at or "-",
            ", ".join(f"{version} {status.value}" for version, status in case.torch.items()),
            case.plumbline.value,
        )
        for case in chosen_cases(pattern)
    ]
    return str(tabulate(rows, headers=("case", "source", "wrong at", "torch", "plumbline")))


def _report(command: BenchCommand, backend: str, cases: Sequence[BenchCase]) -> BenchReport:
    return BenchReport(command.judge or JUDGE, command.compiler, backend, str(torch.__version__), len(cases))


def judge_cases(report: BenchReport, cases: Sequence[BenchCase], on_progress: Say) -> None:
    """Judge the cases one by one and add what comes out to the report, which an interruption marks."""
    judged = compared_case if report.judge == NAME else judged_case
    with Workshop(lambda case, backend: judged(case, report.compiler, backend)) as workshop:
        try:
            for case in cases:
                on_progress(f"{len(report.outcomes)} of {report.total} cases, now {case.fault}/{case.name}")
                started = time.monotonic()
                trial = workshop.try_one(case, report.backend)
                report.outcomes.append(outcome_of(case, trial, time.monotonic() - started))
        except KeyboardInterrupt:
            report.interrupted = True


def outcome_of(case: BenchCase, trial: TrialResult, seconds: float) -> CaseOutcome:
    """Return what a judgement says of a case; an end of the process, or a hang, is a flag as well."""
    verdict = trial.verdict
    details = trial.details or {}
    worst = verdict.worst
    remark = verdict.kind.value if verdict.kind in _UNJUDGED else ""
    if details.get("ended") and not verdict.failed:
        remark = f"the program ends with {details['ended']}"
    return CaseOutcome(
        case,
        flagged=verdict.failed,
        verdict=verdict.kind.value,
        sentence=verdict.sentence,
        aspect=worst.aspect if worst else "",
        remark=remark,
        seconds=round(seconds, 2),
    )


def _scored(command: BenchCommand, junit: Path, cases: Sequence[BenchCase]) -> BenchReport:
    """Return the report on another tool: what failed in its run of the programs."""
    report = _report(command, command.backends[0], cases)
    ran = flagged_tests(junit)
    for case in cases:
        flagged = ran.get(case.name)
        report.outcomes.append(CaseOutcome(case, bool(flagged), remark="" if flagged is not None else "did not run"))
    return report


def write_reports(file: Path, reports: Sequence[BenchReport]) -> None:
    """Write the reports as JSON."""
    write_whole(file, json.dumps([report.as_data() for report in reports], indent=1) + "\n")
