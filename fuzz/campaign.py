"""A campaign: examples are drawn from seeds and tried; failures are told apart, shrunk, staged and saved.

Example `number` of seed `s` is drawn by a generator of its own, so that any example can be drawn again by its number,
and a campaign that was cut short goes on where it was (`CampaignReport.next_number`).

Examples come in rounds of ROUND: what was found before a round is left out of all its examples. The examples of a round
do not depend on each other, so they may be tried side by side by an engine, and the findings are the same. An engine
begins the next round while one ends, and throws that away where something new was found.
"""

import time
from collections import Counter
from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from plumbline.minifier.engines.engine_places import Engine
from plumbline.oracle.harness.compilers import LADDER, CompilerUnderTest, rungs_below
from plumbline.oracle.verdict import Verdict, VerdictKind

from .corpus import save
from .coverage.lead import Lead, LedDraw
from .culprits import culprit_name
from .drawn_trial import DrawnTrial, GivenTrial, RoundsAhead, workshop_of
from .findings import FuzzSignature, TrialResult
from .fuzzers import Fuzzer
from .isolation import Involved, Workshop
from .shrinker import ShrinkBudget, same_failure, shrink

ROUND = 20
"""Few enough that a fault is soon left out, many enough for the workers of a cluster."""

SHRINK_TRIES = 200
SHRINK_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class CampaignSettings:
    """How long and on what a campaign runs.

    examples: how many are judged, shrinking not counted.  seed: repeats the campaign.  folder: where failures are
    saved, None to keep them in memory only.  most_failures: the campaign ends after this many distinct failures.
    seconds: of wall time, None without a limit.  known: signatures that are not reported again.
    led: what is drawn follows what was reached, see coverage/lead.py.
    """

    examples: int
    seed: int = 0
    folder: Path | None = None
    most_failures: int = 20
    shrink_tries: int = SHRINK_TRIES
    shrink_seconds: float = SHRINK_SECONDS
    seconds: float | None = None
    known: tuple[FuzzSignature, ...] = ()
    led: bool = False


@dataclass(frozen=True, slots=True)
class DistinctFailure:
    """One distinct failure, shrunk.

    repeats: it failed again when it was tried once more.  stage: the first backend of the ladder that fails so.
    number: of the example it was found in.  file: where it is saved, None when it is not.  departing_stage: the stage
    of our own compiler that first departs from the one before, in words; empty where none does.  culprit: the step of
    our own compiler that is to blame, see culprits.py; empty where none is known.
    """

    signature: FuzzSignature
    example: Any
    verdict: Verdict
    script: str
    repeats: bool
    stage: str = ""
    number: int = 0
    file: Path | None = None
    departing_stage: str = ""
    culprit: str = ""


@dataclass(slots=True)
class CampaignReport:
    """The results of a campaign; filled while it runs, so that an interruption loses nothing.

    examples: how many programs were judged.  verdicts: how many had each kind.  duplicates: failures that an earlier
    one explains.  notes: remarks that are not failures, with counts.  next_number: of the example to go on with.
    cpu_seconds: of the attempts and the compilers they started, shrinking included.  lead: of a campaign that is led.
    """

    mode: str
    compiler: str
    backend: str
    seed: int
    examples: int = 0
    verdicts: Counter[str] = field(default_factory=Counter)
    failures: list[DistinctFailure] = field(default_factory=list)
    duplicates: int = 0
    notes: Counter[str] = field(default_factory=Counter)
    seconds: float = 0.0
    cpu_seconds: float = 0.0
    shrink_tries: int = 0
    next_number: int = 0
    interrupted: bool = False
    lead: Lead | None = None

    @property
    def per_cpu_minute(self) -> float:
        """Return how many programs one minute of processor time judges."""
        return 60 * self.examples / self.cpu_seconds if self.cpu_seconds else 0.0

    def progress(self) -> str:
        """Return the campaign so far as one line."""
        rate = self.examples / self.seconds if self.seconds else 0.0
        return (
            f"{self.examples} programs in {self.seconds:.0f} s ({rate:.1f}/s, {self.per_cpu_minute:.0f} a CPU minute), "
            f"{len(self.failures)} failures, {self.duplicates} duplicates"
        )

    def summary(self) -> str:
        """Return the campaign as a few lines for a person."""
        kinds = ", ".join(f"{kind} {count}" for kind, count in sorted(self.verdicts.items()))
        rate = self.examples / self.seconds if self.seconds else 0.0
        lines = [
            f"{self.examples} examples in {self.seconds:.1f} s ({rate:.1f}/s, {self.per_cpu_minute:.0f} a CPU minute), "
            f"{len(self.failures)} failures, {self.duplicates} duplicates, {self.shrink_tries} tries to shrink"
            + (" (interrupted)" if self.interrupted else ""),
            f"verdicts: {kinds or 'none'}",
        ]
        lines += [self.lead.summary()] if self.lead is not None else []
        lines += [f"{count}x {note}" for note, count in self.notes.most_common(10)]
        return "\n".join(lines)


def run_campaign(
    mode: Fuzzer,
    compiler: CompilerUnderTest,
    backend: str,
    options: CampaignSettings,
    *,
    on_failure: Callable[[DistinctFailure], None] = lambda failure: None,
    on_progress: Callable[[CampaignReport], None] = lambda report: None,
    report: CampaignReport | None = None,
    engine: Engine | None = None,
) -> CampaignReport:
    """Run a campaign to its end or to an interrupt and return the report; never raises what an example raises.

    on_failure: called with each distinct failure when it is shrunk (and saved).  on_progress: after each example.
    report: of a campaign that was cut short, to go on with.  engine: tries the examples and what they are shrunk to; a
    child of this process does where none is given.
    Raises UserError where the engine has lost its workers.
    """
    report = report or CampaignReport(mode.name, compiler.name, backend, options.seed)
    if options.led and report.lead is None:
        report.lead = Lead()
    hunt = _Hunt(mode, compiler, options, report, on_failure, engine)
    before, started = report.seconds, time.monotonic()
    try:
        while not _is_over(report, options, started):
            with closing(hunt.next_round()) as trials:
                for number, trial in trials:
                    hunt.take(number, trial)
                    report.seconds = before + time.monotonic() - started
                    on_progress(report)
                    if _is_over(report, options, started):
                        break
    except KeyboardInterrupt:
        report.interrupted = True
        hunt.keep_unshrunk()
    finally:
        hunt.close()
    report.seconds = before + time.monotonic() - started
    return report


def _is_over(report: CampaignReport, options: CampaignSettings, started: float) -> bool:
    late = options.seconds is not None and time.monotonic() - started > options.seconds
    return late or report.examples >= options.examples or len(report.failures) >= options.most_failures


class _Hunt:
    """The examples of one campaign, one after the other; a new failure is shrunk before the next example."""

    def __init__(
        self,
        mode: Fuzzer,
        compiler: CompilerUnderTest,
        options: CampaignSettings,
        report: CampaignReport,
        on_failure: Callable[[DistinctFailure], None],
        engine: Engine | None,
    ) -> None:
        self.mode, self.compiler, self.options, self.report = mode, compiler, options, report
        self.on_failure, self.engine = on_failure, engine
        self.workshop = workshop_of(mode, compiler)
        self.ahead = RoundsAhead(engine, self._task) if engine is not None else None
        self.shrinking: TrialResult | None = None
        self.led: dict[int, LedDraw | None] = {}

    @property
    def known(self) -> tuple[FuzzSignature, ...]:
        """Return the signatures that are not reported again."""
        return (*self.options.known, *(failure.signature for failure in self.report.failures))

    def next_round(self) -> Generator[tuple[int, TrialResult], None, None]:
        """Yield the examples of the round that is on, by number, as they are tried."""
        report = self.report
        first = report.next_number
        numbers = range(first, first - first % ROUND + ROUND)
        avoided = tuple(signature.involved for signature in self.known)
        plan: list[LedDraw | None] = [None] * len(numbers)
        if report.lead is not None:
            plan = [*report.lead.plan(report.seed, numbers)]
        self.led = dict(zip(numbers, plan, strict=True))
        if self.engine is None or self.ahead is None:
            for number, led in self.led.items():
                yield number, self.workshop.try_drawn(f"{report.seed}:{number}", avoided, report.backend, led)
        elif report.lead is not None:  # what the next round draws follows from what this one reached
            tasks = (self._task(number, avoided, led) for number, led in self.led.items())
            with closing(self.engine.results(tasks)) as results:
                yield from zip(numbers, results, strict=True)
        else:
            programs = report.examples / max(1, first)  # of an example
            last = report.examples + programs * len(numbers) >= self.options.examples
            yield from zip(numbers, self.ahead.results(numbers, avoided, last=last), strict=True)

    def _task(self, number: int, avoided: Involved, led: LedDraw | None = None) -> DrawnTrial:
        seed = f"{self.report.seed}:{number}"
        return DrawnTrial(self.mode.name, self.compiler, self.report.backend, seed, avoided, led)

    def close(self) -> None:
        """End the processes of the hunt, and what an engine began for it."""
        self.workshop.close()
        if self.ahead is not None:
            self.ahead.close()

    def take(self, number: int, trial: TrialResult) -> None:
        """Count the result of an example; shrink and report what fails in a new way."""
        report = self.report
        report.next_number = number + 1
        report.examples += trial.programs
        report.cpu_seconds += trial.cpu_seconds
        report.verdicts.update(dict(trial.kinds) or {trial.verdict.kind.value: 1})
        report.notes.update(trial.notes)
        led = self.led.get(number)
        if report.lead is not None and led is not None:
            report.lead.take(report.seed, number, led, trial)
        for failing in (trial, *trial.others):
            if failing.signature is not None and len(report.failures) < self.options.most_failures:
                self._consider(failing, number)

    def _consider(self, trial: TrialResult, number: int) -> None:
        """Shrink a failure that no earlier one explains, and report it unless it has become one of them."""
        trial = self._with_names(trial)
        if self._is_known(trial):
            self.report.duplicates += 1
            return
        budget = ShrinkBudget(self.options.shrink_tries, self.options.shrink_seconds)
        self.shrinking = trial
        at_once = self.engine.workers if self.engine is not None else 1
        smallest = shrink(trial, self._try_all, self.mode.simpler, budget, self._keep, at_once=at_once)
        self.report.shrink_tries += budget.used
        culprit = "" if self._is_known(smallest) else self._culprit(smallest)
        if self._is_known(smallest) or (culprit and culprit in (known.culprit for known in self.report.failures)):
            self.report.duplicates += 1
        else:
            self.workshop.close()  # the last try runs in a fresh process
            repeats = same_failure(self._try(smallest.example), smallest)
            self._report(smallest, repeats, self._stage(smallest), number, culprit)
        self.shrinking = None

    def _keep(self, trial: TrialResult) -> None:
        self.shrinking = trial

    def _is_known(self, trial: TrialResult) -> bool:
        assert trial.signature is not None
        return any(known.explains(trial.signature) for known in self.known)

    def _try_all(self, examples: Sequence[Any]) -> list[TrialResult]:
        """Try variants of an example, side by side where there is an engine."""
        return list(self._tried([(example, self.report.backend) for example in examples]))

    def _tried(self, asked: Sequence[tuple[Any, str]]) -> Generator[TrialResult, None, None]:
        """Yield the result of each example under its backend; one after the other where there is no engine."""
        if self.engine is None:
            for example, backend in asked:
                yield self._try(example, backend)
            return
        tasks = (GivenTrial(self.mode.name, self.compiler, backend, example) for example, backend in asked)
        with closing(self.engine.results(tasks)) as trials:
            for (example, _), trial in zip(asked, trials, strict=True):
                yield self._counted(trial, example)

    def _try(self, example: Any, backend: str | None = None) -> TrialResult:
        return self._counted(self.workshop.try_one(example, backend or self.report.backend), example)

    def _counted(self, trial: TrialResult, example: Any) -> TrialResult:
        self.report.cpu_seconds += trial.cpu_seconds
        return self._with_names(replace(trial, example=example))

    def _with_names(self, trial: TrialResult) -> TrialResult:
        """Return the trial with a signature that names its example: a dead process cannot say what its example was."""
        if trial.signature is None or trial.signature.involved:
            return trial
        return replace(trial, signature=replace(trial.signature, involved=trial.example.names))

    def _stage(self, trial: TrialResult) -> str:
        """Return the first backend of the ladder that fails in this way, the campaign's own if no earlier one does."""
        rungs = [lower for lower in rungs_below(self.report.backend) if lower in self.compiler.backends]
        with closing(self._tried([(trial.example, lower) for lower in rungs])) as tried:
            failing = (lower for lower, result in zip(rungs, tried, strict=True) if same_failure(result, trial))
            return next(failing, self.report.backend)

    def _departing_stage(self, trial: TrialResult, stage: str) -> str:
        """Return which stage of our own compiler departs."""
        if self.report.compiler != "plumbline" or stage == LADDER[0]:
            return ""
        return self._asked_apart(trial.example, lambda example: self.mode.departing_stage(example, stage))

    def _culprit(self, trial: TrialResult) -> str:
        """Return which step of our own compiler is to blame."""
        signature = trial.signature
        if self.report.compiler != "plumbline" or signature is None:
            return ""
        return self._asked_apart(
            trial.example,
            lambda example: culprit_name(self.mode, self.compiler, self.report.backend, example, signature),
        )

    def _asked_apart(self, example: Any, question: Callable[[Any], str]) -> str:
        """Return the answer of a process of its own, which may die; then it is empty."""

        def asked(example: Any, backend: str) -> TrialResult:
            del backend
            verdict = Verdict(VerdictKind.EQUAL, "a question about an example, no trial")
            return TrialResult(verdict, details={"answer": question(example)})

        with Workshop(asked) as workshop:
            return str((workshop.try_one(example).details or {}).get("answer", ""))

    def keep_unshrunk(self) -> None:
        """Report the failure as far as it was shrunk when the campaign was interrupted."""
        if self.shrinking is not None:
            self._report(self.shrinking, True, "", self.report.next_number - 1)

    def _report(self, trial: TrialResult, repeats: bool, stage: str, number: int, culprit: str = "") -> None:
        assert trial.signature is not None
        report = self.report
        verdict = replace(trial.verdict, stage=stage or None)
        script = self.mode.script(trial.example, report.compiler, stage or report.backend, verdict)
        file = None
        if self.options.folder is not None:
            place = (self.mode.name, report.compiler, report.backend)
            file = save(self.options.folder, trial.signature, trial.example, script, verdict, place)
        departing = self._departing_stage(trial, stage)
        failure = DistinctFailure(
            trial.signature, trial.example, verdict, script, repeats, stage, number, file, departing, culprit
        )
        report.failures.append(failure)
        self.shrinking = None  # an interrupt from here on finds it reported
        self.on_failure(failure)
