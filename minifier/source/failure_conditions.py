"""Under which conditions a program fails: at every run or now and then, with warm caches, on how many threads."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

from .source_run import RunReport, SourceSettings

Ask = Callable[[SourceSettings], RunReport]

STEADY_RUNS = 3
"""Runs that must all fail before a failure is taken to come at every run."""
SEARCH_RUNS = 20
"""Runs of a program that did not fail at first: a failure that comes in 1 of 5 runs is found with 99 %."""
FIRST_RUNS = 3
"""Runs with gradients before it is asked what a program needs to fail: one that fails is made small first."""
CHANGED_RUNS = 4
"""Runs of a program that was changed before it is known how often it fails: of 1 in 2 runs, 4 miss 6 %."""
RATE_RUNS = 20
"""Runs from which the rate of a failure that comes now and then is estimated."""
MISSED = 1e-3
"""Chance that a candidate which fails half as often as the program is taken for one that does not fail."""
MOST_REPEATS = 100


@dataclass(frozen=True, slots=True)
class FailureConditions:
    """When a program fails.

    settings: under which it is run from now on.  report: of a failing run.  sentence: for a person; empty when it
    fails at every run, whatever the machine.  rate: of failing runs.
    """

    settings: SourceSettings
    report: RunReport
    sentence: str = ""
    rate: float = 1.0


def first_report(ask: Ask, settings: SourceSettings) -> RunReport:
    """Run a program as it is.

    Gradients are judged last: of a large model they take most of the time, and most failures show without them.
    """
    report = ask(replace(settings, gradients=False))
    if report.signature is None and not report.own_error:
        report = ask(replace(settings, repeat=FIRST_RUNS))
    return report


def asked_again(settings: SourceSettings, report: RunReport) -> SourceSettings:
    """Return settings that look for what a report found, more than once: it may come now and then."""
    return replace(settings, sought=report.signature, repeat=CHANGED_RUNS)


def find_conditions(ask: Ask, settings: SourceSettings, first: RunReport | None = None) -> FailureConditions | None:
    """Return the conditions under which a program fails, None when it does not.  first: of the first run, if it was."""
    first = first or first_report(ask, settings)
    if first.own_error:
        return None
    if first.signature is not None:
        return _steady(ask, settings, first)
    warm = replace(settings, warm=True)
    report = ask(warm)
    if report.signature is not None and ask(replace(warm, sought=report.signature)).signature is not None:
        return FailureConditions(warm, report, "it fails only when the caches on disk are those of an earlier run")
    searched = ask(replace(settings, repeat=SEARCH_RUNS))
    return None if searched.signature is None else rated(ask, settings, searched)


def _steady(ask: Ask, settings: SourceSettings, first: RunReport) -> FailureConditions:
    sought = replace(settings, sought=first.signature)
    if not all(_fails(ask(sought), first) for _ in range(STEADY_RUNS - 1)):
        return rated(ask, settings, first)
    if settings.threads is None and not _fails(ask(replace(sought, threads=1)), first):
        return FailureConditions(settings, first, "it does not fail on one thread")
    return FailureConditions(replace(settings, threads=settings.threads or 1), first)


def _fails(report: RunReport, like: RunReport) -> bool:
    return report.signature is not None and like.signature is not None and like.signature.matches(report.signature)


def rated(ask: Ask, settings: SourceSettings, first: RunReport) -> FailureConditions:
    """Estimate the rate, and from it the runs that a candidate gets: a sequential test of "never" against "half of it".

    One failing run decides for the failure; without one, the test ends when half the rate would have shown with
    1 - MISSED (Wald's test, whose upper bound is a single failure when the other hypothesis is that there is none).
    """
    sought = replace(settings, sought=first.signature)
    failed = sum(_fails(ask(sought), first) for _ in range(RATE_RUNS))
    rate = (failed + 1) / (RATE_RUNS + 1)  # 1 where it comes at every run after all
    repeat = min(MOST_REPEATS, math.ceil(math.log(MISSED) / math.log(1 - rate / 2)))
    words = f"it fails in {failed + 1} of {RATE_RUNS + 1} runs; each check runs it up to {repeat} times"
    return FailureConditions(replace(settings, repeat=repeat), first, words, rate)
