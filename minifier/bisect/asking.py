"""Asking a failing case again with some applications switched off, as often as a flaky answer needs."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from plumbline.compiler.base.bisecting.applications import Application, counting, numbered
from plumbline.compiler.base.bisecting.switches import LIST
from plumbline.compiler.base.config import CONFIG
from plumbline.compiler.base.events import Artifact, Event, Validated, recording
from plumbline.compiler.base.options import RUN


class FailingCase(Protocol):
    """What is bisected."""

    def fails(self) -> bool:
        """Compile afresh under the configuration in force, run, and say whether it fails as it did before."""


@dataclass(frozen=True, slots=True)
class CaseAnswer:
    """fails: whether the case failed.  applications: what was asked for.  texts: the stages' results, in order."""

    fails: bool
    applications: tuple[Application, ...]
    texts: tuple[Artifact, ...]


MOST_REPEATS = 20
DOUBT = 0.001
"""Of a case that fails in a share p of its runs, this is how likely an answer 'it passes' may be wrong."""


@dataclass(slots=True)
class BisectQuestions:
    """Asks a case, counts, and knows every answer.

    repeats: runs until 'it passes' is believed; more than one for a case that fails in some runs only.
    budget: the most questions; what is asked beyond raises OutOfQuestions.
    """

    case: FailingCase
    budget: int = 400
    repeats: int = 1
    rate: float = 1.0
    asked: int = 0
    known: dict[str, CaseAnswer] = field(default_factory=dict)
    progress: Callable[[str], None] = lambda _: None

    def measure(self, runs: int) -> float:
        """Run the case as it is and return the share of runs that fail; where that is not all, ask anew from now on."""
        failed = sum(self._run(LIST).fails for _ in range(runs))
        self.rate = failed / runs
        if 0 < failed < runs:
            self.repeats = min(MOST_REPEATS, math.ceil(math.log(DOUBT) / math.log(1 - self.rate)))
            self.known.clear()
        return self.rate

    def fails_again(self, switches: str) -> bool:
        """Return whether the case fails under some switches, whatever was answered before."""
        return self._run(switches or LIST).fails

    def ask(self, switches: str) -> CaseAnswer:
        """Return what happens under some switches; one failing run is a failure."""
        text = switches or LIST
        if text not in self.known:
            answer = self._run(text)
            for _ in range(self.repeats - 1):
                if answer.fails:
                    break
                answer = self._run(text)
            self.known[text] = answer
            self.progress(f"{'fails ' if answer.fails else 'passes'}  {text[:100]}")
        return self.known[text]

    def fails(self, switches: str) -> bool:
        """Return whether the case fails under some switches."""
        return self.ask(switches).fails

    def departed_stage(self) -> str:
        """Return the first stage that departs from the one before it; empty where validation finds none."""
        events = self._events(verify=RUN, bisect="")[1]
        return next((event.departed for event in events if isinstance(event, Validated) and event.departed), "")

    def _run(self, text: str) -> CaseAnswer:
        fails, events = self._events(bisect=text)
        texts = tuple(event for event in events if isinstance(event, Artifact))
        return CaseAnswer(fails, tuple(numbered(events)), texts)

    def _events(self, **options: object) -> tuple[bool, list[Event]]:
        if self.asked >= self.budget:
            raise OutOfQuestions(f"{self.budget} questions were asked")
        self.asked += 1
        with CONFIG.patch(options), counting(), recording() as events:
            fails = self.case.fails()
        return fails, events


class OutOfQuestions(Exception):
    """The budget is used up."""
