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
ROUND_STRIDE = 1_000_003  # between the seeds of the rounds of one campaign: any number larger than campaigns have seeds


@dataclass(frozen=True, slots=True)
class CampaignSettings:
    """How long and on what a campaign runs.

    examples: how many are drawn, shrinking not counted.  seed: repeats the campaign.  folder: where failures are
    saved, None to keep them in memory only.  most_failures: a compiler that fails more ways than this is told enough.
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

    repeats: it failed again when tried once more.  file: where it is saved, None when it is not.
    """

    signature: FuzzSignature
    example: Any
    verdict: Verdict
    script: str
    repeats: bool
    file: Path | None = None


@dataclass(slots=True)
class CampaignReport:
    """What a campaign came to; filled while it runs, so that an interruption loses nothing.

    verdicts: how often each kind was the verdict of a drawn example.  duplicates: failures explained by one found
    before.  notes: what was said without failing, with counts.
    """

    mode: str
    compiler: str
    backend: str
    seed: int
    examples: int = 0
    verdicts: Counter[str] = field(default_factory=Counter)
    found: list[DistinctFailure] = field(default_factory=list)
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
            f"{len(self.found)} failures, {self.duplicates} duplicates, {self.shrink_tries} tries to shrink"
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
    on_found: Callable[[DistinctFailure], None] = lambda found: None,
) -> CampaignReport:
    """Run a campaign to its end or to Ctrl-C and return the report; never raises what an example raises.

    on_found: called with each distinct failure when it is shrunk (and saved).
    """
    report = CampaignReport(mode.name, compiler.name, backend, options.seed)
    started = time.monotonic()
    workshop = Workshop(lambda example: mode.attempt(example, compiler, backend))
    hunt = _Hunt(mode, workshop, options, report)
    try:
        while report.examples < options.examples and len(report.found) < options.most_failures:
            before = report.examples
            hunt = _Hunt(mode, workshop, options, report)
            hunt.search(options.seed * ROUND_STRIDE + len(report.found))
            if hunt.best is not None:
                found = hunt.conclude()
                report.found.append(found)
                on_found(found)
            if hunt.best is None or report.examples == before:
                break  # all drawn, or nothing new to draw
    except KeyboardInterrupt:
        report.interrupted = True
        found_so_far = hunt.unshrunk()
        if found_so_far is not None:
            report.found.append(found_so_far)
            on_found(found_so_far)
    finally:
        workshop.close()
    report.seconds = time.monotonic() - started
    forget_sources()
    return report


class _Hunt:
    """One round: examples until the first failure that is news, then that one shrunk."""

    def __init__(self, mode: Fuzzer, workshop: Workshop, options: CampaignSettings, report: CampaignReport) -> None:
        self.mode, self.workshop, self.options, self.report = mode, workshop, options, report
        self.tried: dict[Any, TrialResult] = {}
        self.best: tuple[Any, TrialResult] | None = None
        self.first_failure = 0.0
        self.tries = 0

    def search(self, number: int) -> None:
        """Draw examples until one fails with news, and let hypothesis shrink it."""
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

        with suppress(_Failing, HypothesisException):  # the second: it could not repeat it; `conclude` says so
            failing()

    def _fails(self, example: Any) -> bool:
        if self.best is None:
            return self._is_news(example)
        return self._shrinks(example)

    def _is_news(self, example: Any) -> bool:
        tried = self._try(example)
        self.report.examples += 1
        self.report.verdicts[tried.verdict.kind.value] += 1
        self.report.notes.update(tried.notes)
        if tried.signature is None:
            return False
        if any(found.signature.explains(tried.signature) for found in self.report.found):
            self.report.duplicates += 1
            return False
        self.best = (example, tried)
        self.tried[example] = tried
        self.first_failure = time.monotonic()
        return True

    def _shrinks(self, example: Any) -> bool:
        """Say whether a smaller example has the same trouble; beyond the budget only what is known fails."""
        assert self.best is not None
        wanted = self.best[1].signature
        assert wanted is not None
        if example not in self.tried:
            late = time.monotonic() - self.first_failure > self.options.shrink_seconds
            if late or self.tries >= self.options.shrink_tries:
                return False
            self.tries += 1
            self.report.shrink_tries += 1
            self.tried[example] = self._try(example)
        tried = self.tried[example]
        same = tried.signature is not None and tried.signature.same_trouble(wanted)
        if same:
            self.best = (example, tried)  # hypothesis keeps the smallest and ends with it
        return same

    def _try(self, example: Any) -> TrialResult:
        tried = self.workshop.try_one(example)
        if tried.signature is not None and not tried.signature.involved:  # a crash knows nothing of its example
            return replace(tried, signature=replace(tried.signature, involved=example.names))
        return tried

    def conclude(self) -> DistinctFailure:
        """Return the failure after the last simplifications, tried once more, and save it."""
        self.first_failure = time.monotonic()  # a budget of its own
        self.tries = 0
        self._simplify()
        assert self.best is not None
        example, tried = self.best
        self.workshop.close()  # the last word has a fresh process
        again = self._try(example)
        assert tried.signature is not None
        repeats = again.signature is not None and again.signature.same_trouble(tried.signature)
        return self._saved(example, tried, repeats)

    def unshrunk(self) -> DistinctFailure | None:
        """Return the failure as far as it was shrunk when the campaign was interrupted."""
        if self.best is None or any(found.example == self.best[0] for found in self.report.found):
            return None
        return self._saved(*self.best, repeats=True)

    def _simplify(self) -> None:
        """Drop what hypothesis could not, greedily, until nothing more can go."""
        assert self.best is not None
        again = True
        while again:
            again = False
            for smaller in self.mode.simpler(self.best[0]):
                if smaller not in self.tried and self._shrinks(smaller):
                    again = True
                    break

    def _saved(self, example: Any, tried: TrialResult, repeats: bool) -> DistinctFailure:
        assert tried.signature is not None
        compiler, backend = self.report.compiler, self.report.backend
        place = (self.mode.name, compiler, backend)
        script = self.mode.script(example, compiler, backend, tried.verdict)
        file = None
        if self.options.folder is not None:
            file = save(self.options.folder, tried.signature, example, script, tried.verdict, place)
        return DistinctFailure(tried.signature, example, tried.verdict, script, repeats, file)
