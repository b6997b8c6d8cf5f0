"""A problem: the smallest candidate that still fails, and the answers to every question asked about others.

Nothing here knows of tensors or graphs.  A pass is a function `Problem -> None` that proposes candidates with
`attempt`; the problem adopts those that fail in the same way (the design of shrinkray and of hypothesis' shrinker).
How to write one is said below, at `Pass`.
"""

import time
from collections.abc import Callable, Hashable, Iterable, Sequence
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
class Together(Generic[C, A]):
    """A test of several candidates at once, for no more time than the slowest of them takes.

    ask: candidates -> what `Questions.ask` would say of each, in their order.  count: how many.
    """

    ask: Callable[[Sequence[C]], Iterable[A]]
    count: int


@dataclass(frozen=True, slots=True)
class Questions(Generic[C, A]):
    """How candidates are judged.

    ask: the costly test.  accepts: whether an answer means the failure that is looked for.
    valid: a cheap check that a candidate is a program at all; an invalid one costs no query.
    key: equal keys get equal answers.
    together: where several can be asked at once.
    """

    ask: Callable[[C], A]
    accepts: Callable[[A], bool]
    valid: Callable[[C], bool]
    key: Callable[[C], Hashable]
    together: Together[C, A] | None = None


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

    def foresee(self, candidates: Iterable[C]) -> None:
        """Ask about the next few candidates at once, where the test can; attempts of them are answered from memory.

        candidates: in the order in which a pass attempts them as long as none is adopted; no more are read than asked.
        What is adopted is the same as without this, for each attempt is still made in its turn.
        """
        together = self._questions.together
        room = self._budget.queries - self.queries
        if together is None or room < 2 or self.seconds >= self._budget.seconds:
            return
        chosen: dict[Hashable, C] = {}
        for candidate in candidates:
            key = self._questions.key(candidate)
            known = key in self._answers or key == self._questions.key(self.current)
            if known and not chosen:
                return  # the next attempt costs nothing
            if not known and self._questions.valid(candidate):
                chosen[key] = candidate
            if len(chosen) == min(together.count, room):
                break
        if len(chosen) > 1:
            self.queries += len(chosen)
            self._answers.update(zip(chosen, together.ask(list(chosen.values())), strict=True))

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
"""One way to make a candidate smaller: a function, or an object with `__call__`, that takes the problem.

A pass looks at `problem.current`, builds candidates that are simpler in one respect, and hands each to
`problem.attempt`, which returns whether it still fails in the same way and is now the current one.  Everything else is
done for it.  To write a good one:

*What a pass may rely on.*  `problem.current` fails, and is valid, whenever the pass looks at it.  A candidate may be
anything of the same type: an invalid one is refused without a query, one that was asked about before is answered from
memory, and one equal to the current one is refused, so a pass need not check for any of these.  Queries are the cost,
each a compile and a judgement; building candidates is free beside them.  The budget may end in any question with
`QueriesExhausted`, and the smallest candidate so far stands; a pass that keeps state of its own must leave it right
when that passes through.

*What a pass must promise.*  Every candidate is simpler than the current one by an order of the pass's own: fewer
operators, smaller sizes, plainer values.  The problem does not compare sizes.  A pass that may propose what another
one undoes lets the two run in turn until the rounds are used up.  And a pass never decides by itself that a candidate
fails: only `attempt` and `fails` know which failure is looked for, so that one bug is not exchanged for another.

*Be deterministic.*  The same candidate must lead to the same proposals in the same order: iterate over the order of the
graph, never over a set, draw no random numbers, read no clock.  Only then does a reduction give the same script twice,
does the memory of answers hit in the second round, and can a bad reduction be debugged.  Randomness buys nothing here:
a reduction is a few hundred queries long, and a poor order is better mended than shuffled.

*Do not iterate inside.*  The engine runs the passes of a group in turn until none of them changes anything, so a pass
goes over its candidates once.  After a success it goes on from the same place with the new current candidate; it does
not start over.  Starting over after each success costs a quadratic number of queries, and spends them while another
pass could have removed half of the candidate with one.  Halving as long as halving succeeds is one pass over the
sizes, and fine; `bypass_each_op` starts over because graphs are small when it runs.

*Say what comes next.*  A pass that goes through many candidates hands those that it would attempt if all were refused
to `problem.foresee`: where several can be tested at once, they are.

*Try the large step first.*  One candidate without half of everything, then one thing at a time.  Where it is not known
which few of many parts are needed, ask `search.minimal_subset`, and where how much is needed, `search.gallop`: both
take a yes/no test and need about as many queries as the logarithm of what they search.

*Do one thing.*  Two passes of ten lines, named for what they remove, are better than one with a switch: the log names
the pass that made each step, and the order of passes is one tuple (`REMOVING_PASSES`, `INPUT_PASSES`).
"""
