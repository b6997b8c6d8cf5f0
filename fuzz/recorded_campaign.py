"""A campaign as the command line runs it: checked before it starts, failures stored as they occur."""

import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import torch

from plumbline.minifier.engines.engine_places import find_engine
from plumbline.oracle.harness.compilers import CompilerUnderTest
from plumbline.oracle.harness.known_compilers import available_compilers, find_compiler
from plumbline.oracle.verdict import Verdict
from plumbline.reports.provenance import describe_run
from plumbline.reports.rows import CaseRow, Measurements, identify_case
from plumbline.reports.store import open_store

from .campaign import CampaignReport, CampaignSettings, DistinctFailure, run_campaign
from .campaign_state import CampaignState
from .corpus import load, prepare_folder
from .findings import FuzzSignature
from .fuzzers import Fuzzer, find_fuzzer
from .interruption import terminated_like_interrupted
from .isolation import Workshop

Say = Callable[[str], None]
SHOW_SECONDS = 2.0


def preferred_compiler() -> str:
    """Return the compiler to test by default: plumbline where it can be judged, else stock torch."""
    return "plumbline" if "plumbline" in available_compilers() else "torch"


def run_recorded(
    mode_name: str,
    compiler_name: str,
    backend: str,
    options: CampaignSettings,
    database: str,
    say: Say,
    show: Say = lambda line: None,
    *,
    resume: bool = False,
    engine: str = "",
) -> CampaignReport:
    """Run a campaign, report each failure at once, and store rows; names are checked before anything starts.

    show: gets the line of progress, every few seconds.  resume: go on with the campaign of this seed that was cut
    short, with what it found known; its state is in the folder.  engine: the place of one that tries the examples, see
    find_engine(); rows are written here.
    Raises UserError for an unknown mode, compiler or backend, an unwritable folder, a database that cannot be opened.
    """
    mode = find_fuzzer(mode_name)
    compiler = find_compiler(compiler_name, backend)
    state = None
    if options.folder is not None:
        prepare_folder(options.folder)
        state = CampaignState(options.folder, mode.name, compiler.name, backend, options.seed)
    report = CampaignReport(mode.name, compiler.name, backend, options.seed)
    if resume and state is not None:
        report, options = state.resumed(report, options)
    with open_store(database, write=True) as store, ExitStack() as engines:
        workers = engines.enter_context(find_engine(engine)) if engine else None
        run = describe_run(sys.argv, Path.cwd(), threads=torch.get_num_threads())
        store.begin_run(run)

        def on_failure(one: DistinctFailure) -> None:
            say(_failure_text(one))
            store.append([failure_row(one, run.run_id, mode.name, compiler.name, backend)])
            progress.end(report)

        progress = _Progress(show, state, options.known)
        with terminated_like_interrupted():
            run_campaign(
                mode,
                compiler,
                backend,
                options,
                on_failure=on_failure,
                on_progress=progress.advance,
                report=report,
                engine=workers,
            )
        progress.end(report)
        store.append([campaign_row(report, run.run_id)])
        if not report.interrupted:
            store.finish_run(run.run_id)
    return report


@dataclass(slots=True)
class _Progress:
    """Shows a campaign as it goes, and writes its state so that it can be gone on with."""

    show: Say
    state: CampaignState | None
    known: tuple[FuzzSignature, ...]
    shown: float = field(default_factory=time.monotonic)

    def advance(self, report: CampaignReport) -> None:
        """Show and write, every few seconds."""
        if time.monotonic() - self.shown >= SHOW_SECONDS:
            self.shown = time.monotonic()
            self.end(report)

    def end(self, report: CampaignReport) -> None:
        """Show and write now."""
        self.show(report.progress())
        if self.state is not None:
            self.state.write(report, self.known)


def replay(file: Path, compiler_name: str | None, backend: str | None, say: Say) -> bool:
    """Try a saved example again, under the compiler that failed unless another is named; return whether it fails.

    Raises UserError for a file that is not a saved failure, or an unknown compiler or backend.
    """
    saved = load(file)
    mode: Fuzzer = find_fuzzer(saved.mode)
    example = mode.read(saved.example)
    backend = backend or saved.backend
    compiler: CompilerUnderTest = find_compiler(compiler_name or saved.compiler, backend)
    with Workshop(lambda example, backend: mode.attempt(example, compiler, backend)) as workshop:
        trial = workshop.try_one(example, backend)
    say(str(trial.verdict))
    for note in trial.notes:
        say(f"note: {note}")
    if trial.signature is None:
        say(f"passes under {compiler.name}:{backend}; it was saved as: {saved.signature}")
    return trial.signature is not None


def _failure_text(failure: DistinctFailure) -> str:
    lines = [str(failure.signature), f"  {failure.verdict.sentence}"]
    if failure.stage:
        lines.append(f"  stage: {failure.stage}")
    if failure.departing_stage:
        lines.append(f"  departs: {failure.departing_stage}")
    if failure.culprit:
        lines.append(f"  culprit: {failure.culprit}")
    if failure.signature.is_missing_error:
        lines.append("  low rank: an error that eager raises does not come")
    if not failure.repeats:
        lines.append("  did not fail again when it was tried once more")
    if failure.file is not None:
        lines.append(f"  saved: {failure.file} and {failure.file.with_suffix('.py').name}")
    return "\n".join(lines)


def failure_row(failure: DistinctFailure, run_id: str, mode: str, compiler: str, backend: str) -> CaseRow:
    """Return the row of one distinct failure; the suite is the first part of its test name, `fuzz:transforms`."""
    test = f"fuzz:{mode}/{failure.signature.name}"
    verdict = failure.verdict
    worst = verdict.worst
    return CaseRow(
        run_id=run_id,
        case_id=identify_case(test, compiler, backend),
        test=test,
        compiler=compiler,
        backend=backend,
        outcome="failed",
        verdict=verdict.kind.value,
        sentence=verdict.sentence,
        aspect=worst.aspect if worst else "",
        where=worst.where if worst else "",
        stage=failure.stage or None,
        user_file=str(failure.file.with_suffix(".py")) if failure.file else "",
        judged_calls=1,
        boundaries=1,
        graphs=verdict.graphs,
        ops=verdict.ops,
        breaks=len(verdict.breaks),
        recompiles=verdict.recompiles,
        eager_seconds=verdict.reference_seconds,
        compiled_seconds=verdict.candidate_seconds,
        notes=_notes(failure),
        **_measured(verdict),
    )


def _notes(failure: DistinctFailure) -> tuple[str, ...]:
    known = {"departs": failure.departing_stage, "culprit": failure.culprit}
    departs = tuple(f"{name}: {what}" for name, what in known.items() if what)
    return departs if failure.repeats else (*departs, "did not fail again when it was tried once more")


def campaign_row(report: CampaignReport, run_id: str) -> CaseRow:
    """Return the row of the campaign itself: how many examples, which verdicts, which notes."""
    test = f"fuzz:{report.mode}"
    verdicts = tuple(f"{kind}: {count} examples" for kind, count in sorted(report.verdicts.items()))
    compiled = report.examples - report.verdicts["VACUOUS"] - report.verdicts["EAGER_FAILED"]
    outcome = "failed" if report.failures else "passed" if compiled else "vacuous"
    return CaseRow(
        run_id=run_id,
        case_id=identify_case(test, report.compiler, report.backend),
        test=test,
        compiler=report.compiler,
        backend=report.backend,
        outcome=outcome,
        sentence=f"{len(report.failures)} distinct failures in {report.examples} examples of seed {report.seed}, "
        f"{report.per_cpu_minute:.0f} a CPU minute",
        judged_calls=report.examples,
        test_seconds=report.seconds,
        notes=(*verdicts, *_reached(report), *(f"{count}x {note}" for note, count in report.notes.most_common())),
    )


def _reached(report: CampaignReport) -> tuple[str, ...]:
    return (report.lead.summary(),) if report.lead is not None else ()


def _measured(verdict: Verdict) -> dict[str, Any]:
    numbers = verdict.worst.numbers if verdict.worst else None
    if numbers is None:
        return {}
    return {one.name: getattr(numbers, one.name) for one in fields(Measurements)}
