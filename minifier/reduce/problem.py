"""A problem: the smallest candidate that still fails, and the ledger of every question asked about others.

The engine knows nothing of tensors or graphs.  A pass is a function `Problem -> None` that proposes candidates with
`attempt`; the problem adopts those that fail in the same way (the shape of shrinkray and of hypothesis' shrinker).
"""

import time
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Generic, TypeVar

C = TypeVar("C")  # a candidate
A = TypeVar("A")  # what a test answers about one


class QueriesExhausted(Exception):
    """The budget of queries or seconds is used up; the smallest candidate so far stands."""


@dataclass(frozen=True, slots=True)
class Budget:
    """What a reduction may cost: queries asked, and wall seconds."""

    queries: int = 400
    seconds: float = 3600.0


@dataclass(frozen=True, slots=True)
class Questions(Generic[C, A]):
    """How candidates are judged.

    ask: the costly test.  accepts: whether an answer means the failure that is looked for.
    valid: a cheap check that a candidate means anything at all; an invalid one costs no query.
    key: equal keys get equal answers.
    """

    ask: Callable[[C], A]
    accepts: Callable[[A], bool]
    valid: Callable[[C], bool]
    key: Callable[[C], Hashable]


@dataclass(frozen=True, slots=True)
class LogEntry:
    """One line of the log: which pass, after how many queries, how large the candidate became."""

    name: str
    queries: int
    size: int
    seconds: float


class Problem(Generic[C, A]):
    """Holds the current candidate, which fails; asks about others, each at most once.

    size: how large a candidate is, for the log only.
    Raises QueriesExhausted from any question beyond the budget.
    """

    def __init__(
        self,
        current: C,
        questions: Questions[C, A],
        size: Callable[[C], int],
        budget: Budget | None = None,
    ) -> None:
        self.current = current
        self.queries = 0
        self.repeated = 0
        self.log: list[LogEntry] = []
        self._questions = questions
        self._size = size
        self._budget = budget or Budget()
        self._answers: dict[Hashable, A | None] = {}
        self._started = time.monotonic()

    def answer(self, candidate: C) -> A | None:
        """Return what the test says of a candidate, None for an invalid one; asked before: from memory."""
        key = self._questions.key(candidate)
        if key in self._answers:
            self.repeated += 1
            return self._answers[key]
        answer: A | None = None
        if self._questions.valid(candidate):
            if self.queries >= self._budget.queries or self.seconds >= self._budget.seconds:
                raise QueriesExhausted
            self.queries += 1
            answer = self._questions.ask(candidate)
        self._answers[key] = answer
        return answer

    def fails(self, candidate: C) -> bool:
        """Return whether a candidate fails in the way that is looked for."""
        answer = self.answer(candidate)
        return answer is not None and self._questions.accepts(answer)

    def attempt(self, candidate: C) -> bool:
        """Adopt a candidate that fails and is another than the current one; return whether it was adopted."""
        key = self._questions.key
        if key(candidate) == key(self.current) or not self.fails(candidate):
            return False
        self.current = candidate
        return True

    def run(self, passes: "tuple[Pass[C, A], ...]") -> None:
        """Run passes one after the other and note in the log those that changed something."""
        for work in passes:
            before = self.current
            work(self)
            if self.current is not before:
                name = getattr(work, "__name__", type(work).__name__)
                self.log.append(LogEntry(name, self.queries, self._size(self.current), self.seconds))

    @property
    def seconds(self) -> float:
        """Return the wall seconds since the problem was posed."""
        return time.monotonic() - self._started


Pass = Callable[[Problem[C, A]], None]
