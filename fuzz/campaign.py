"""A campaign: hypothesis draws examples, each is tried; failures are shrunk, told apart and saved."""

import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, Phase, Verbosity, given, seed, settings
from hypothesis.errors import HypothesisException

from plumbline.oracle.harness.compilers import CompilerUnderTest
from plumbline.oracle.verdict import Verdict

from .corpus import save
from .even_draws import BACKEND, seed_draws
from .findings import FuzzSignature, TrialResult
from .fuzzers import Fuzzer
from .generated_source import forget_sources
from .isolation import Workshop

SHRINK_TRIES = 200
SHRINK_SECONDS = 60.0
ROUND_STRIDE = 1_000_003  # between the seeds of two rounds of one campaign; larger than any seed that users give


@dataclass(frozen=True, slots=True)
class CampaignSettings:
    """How long and on what a campaign runs.

    examples: how many are drawn, shrinking not counted.  seed: repeats the campaign.  folder: where failures are
    saved, None to keep them in memory only.  most_failures: the campaign ends after this many distinct failures.
    """

    examples: int
    seed: int = 0
    folder: Path | None = None
    most_failures: int = 20
    shrink_tries: int = SHRINK_TRIES
    shrink_seconds: float = SHRINK_SECONDS


@dataclass(frozen=True, slots=True)
class DistinctFailure:
    """One distinct failure, shrunk.

    repeats: it failed again when it was tried once more.  file: where it is saved, None when it is not.
    """

    signature: FuzzSignature
    example: Any
    verdict: Verdict
    script: str
    repeats: bool
    file: Path | None = None


@dataclass(slots=True)
class CampaignReport:
    """The results of a campaign; filled while it runs, so that an interruption loses nothing.

    verdicts: how often each kind was the verdict of a drawn example.  duplicates: failures that an earlier one
    explains.  notes: remarks that are not failures, with counts.
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
    shrink_tries: int = 0
    interrupted: bool = False

    def summary(self) -> str:
        """Return the campaign as a few lines for a person."""
        rate = self.examples / self.seconds if self.seconds else 0.0
        kinds = ", ".join(f"{kind} {count}" for kind, count in sorted(self.verdicts.items()))
        lines = [
            f"{self.examples} examples in {self.seconds:.1f} s ({rate:.1f}/s), "
            f"{len(self.failures)} failures, {self.duplicates} duplicates, {self.shrink_tries} tries to shrink"
            + (" (interrupted)" if self.interrupted else ""),
            f"verdicts: {kinds or 'none'}",
        ]
        lines += [f"{count}x {note}" for note, count in self.notes.most_common(10)]
        return "\n".join(lines)


class _Failing(Exception):
    """Tells hypothesis that an example fails; one class and one line, so that it sees one bug and shrinks it."""


def run_campaign(
    mode: Fuzzer,
    compiler: CompilerUnderTest,
    backend: str,
    options: CampaignSettings,
    *,
    on_failure: Callable[[DistinctFailure], None] = lambda failure: None,
) -> CampaignReport:
    """Run a campaign to its end or to Ctrl-C and return the report; never raises what an example raises.

    on_failure: called with each distinct failure when it is shrunk (and saved).
    """
    report = CampaignReport(mode.name, compiler.name, backend, options.seed)
    started = time.monotonic()
    workshop = Workshop(lambda example: mode.attempt(example, compiler, backend))
    hunt = _Hunt(mode, workshop, options, report)
    try:
        while report.examples < options.examples and len(report.failures) < options.most_failures:
            before = report.examples
            hunt = _Hunt(mode, workshop, options, report)
            hunt.search(options.seed * ROUND_STRIDE + len(report.failures))
            if hunt.best is not None:
                failure = hunt.conclude()
                report.failures.append(failure)
                on_failure(failure)
            if hunt.best is None or report.examples == before:
                break  # everything is drawn, or there is nothing new to draw
    except KeyboardInterrupt:
        report.interrupted = True
        unshrunk = hunt.unshrunk()
        if unshrunk is not None:
            report.failures.append(unshrunk)
            on_failure(unshrunk)
    finally:
        workshop.close()
    report.seconds = time.monotonic() - started
    forget_sources()
    return report


class _Hunt:
    """One round: examples until the first new failure, then that one shrunk."""

    def __init__(self, mode: Fuzzer, workshop: Workshop, options: CampaignSettings, report: CampaignReport) -> None:
        self.mode, self.workshop, self.options, self.report = mode, workshop, options, report
        self.trials: dict[Any, TrialResult] = {}
        self.best: tuple[Any, TrialResult] | None = None
        self.first_failure = 0.0
        self.tries = 0

    def search(self, number: int) -> None:
        """Draw examples until one fails in a new way, and let hypothesis shrink it."""
        drawn = settings(
            max_examples=self.options.examples - self.report.examples,
            database=None,
            deadline=None,
            phases=[Phase.generate, Phase.shrink],
            suppress_health_check=list(HealthCheck),
            report_multiple_bugs=False,
            print_blob=False,
            verbosity=Verbosity.quiet,
            backend=BACKEND,
        )

        seed_draws(number)

        @seed(number)
        @drawn
        @given(self.mode.examples)
        def failing(example: Any) -> None:
            if self._fails(example):
                raise _Failing

        with suppress(
            _Failing, HypothesisException
        ):  # HypothesisException: it could not repeat the failure; `conclude` says so
            failing()

    def _fails(self, example: Any) -> bool:
        if self.best is None:
            return self._is_new(example)
        return self._shrinks(example)

    def _is_new(self, example: Any) -> bool:
        trial = self._try(example)
        self.report.examples += 1
        self.report.verdicts[trial.verdict.kind.value] += 1
        self.report.notes.update(trial.notes)
        if trial.signature is None:
            return False
        if any(failure.signature.explains(trial.signature) for failure in self.report.failures):
            self.report.duplicates += 1
            return False
        self.best = (example, trial)
        self.trials[example] = trial
        self.first_failure = time.monotonic()
        return True

    def _shrinks(self, example: Any) -> bool:
        """Return whether a smaller example fails in the same way; beyond the budget only known examples do."""
        assert self.best is not None
        target = self.best[1].signature
        assert target is not None
        if example not in self.trials:
            late = time.monotonic() - self.first_failure > self.options.shrink_seconds
            if late or self.tries >= self.options.shrink_tries:
                return False
            self.tries += 1
            self.report.shrink_tries += 1
            self.trials[example] = self._try(example)
        trial = self.trials[example]
        same = trial.signature is not None and trial.signature.same_failure(target)
        if same:
            self.best = (example, trial)  # hypothesis keeps the smallest and ends with it
        return same

    def _try(self, example: Any) -> TrialResult:
        trial = self.workshop.try_one(example)
        if (
            trial.signature is not None and not trial.signature.involved
        ):  # a dead process cannot say what its example was
            return replace(trial, signature=replace(trial.signature, involved=example.names))
        return trial

    def conclude(self) -> DistinctFailure:
        """Return the failure after the last simplifications, try it once more, and save it."""
        self.first_failure = time.monotonic()  # a budget of its own
        self.tries = 0
        self._simplify()
        assert self.best is not None
        example, trial = self.best
        self.workshop.close()  # the last try runs in a fresh process
        again = self._try(example)
        assert trial.signature is not None
        repeats = again.signature is not None and again.signature.same_failure(trial.signature)
        return self._saved(example, trial, repeats)

    def unshrunk(self) -> DistinctFailure | None:
        """Return the failure as far as it was shrunk when the campaign was interrupted."""
        if self.best is None or any(failure.example == self.best[0] for failure in self.report.failures):
            return None
        return self._saved(*self.best, repeats=True)

    def _simplify(self) -> None:
        """Remove what hypothesis could not, greedily, until nothing more can be removed."""
        assert self.best is not None
        again = True
        while again:
            again = False
            for smaller in self.mode.simpler(self.best[0]):
                if smaller not in self.trials and self._shrinks(smaller):
                    again = True
                    break

    def _saved(self, example: Any, trial: TrialResult, repeats: bool) -> DistinctFailure:
        assert trial.signature is not None
        compiler, backend = self.report.compiler, self.report.backend
        place = (self.mode.name, compiler, backend)
        script = self.mode.script(example, compiler, backend, trial.verdict)
        file = None
        if self.options.folder is not None:
            file = save(self.options.folder, trial.signature, example, script, trial.verdict, place)
        return DistinctFailure(trial.signature, example, trial.verdict, script, repeats, file)
