"""Examples of a campaign as tasks for an engine: drawn, or given, and tried wherever the task runs."""

import pickle
from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Any

from plumbline.minifier.engines.engine_places import Engine
from plumbline.minifier.engines.task import Bench, Task
from plumbline.oracle.harness.compilers import CompilerUnderTest

from .coverage.lead import LedDraw
from .findings import TrialResult
from .fuzzers import Fuzzer, find_fuzzer
from .isolation import Involved, Workshop


@dataclass(frozen=True, slots=True)
class DrawnTrial:
    """An example of one seed, or one that a lead draws: see Workshop.try_drawn.

    fuzzer: its name.  compiler: one that can be pickled, as those of the known compilers can.
    """

    fuzzer: str
    compiler: CompilerUnderTest
    backend: str
    seed: str
    avoided: Involved
    led: LedDraw | None = None

    def run(self, bench: Bench) -> TrialResult:
        """Return the result; the child process that tries it is kept for the next one."""
        workshop = _kept_workshop(bench, self.fuzzer, self.compiler)
        return workshop.try_drawn(self.seed, self.avoided, self.backend, self.led)


@dataclass(frozen=True, slots=True)
class GivenTrial:
    """An example that is there already, a smaller one of a failing one: see Workshop.try_one.  Fields as above."""

    fuzzer: str
    compiler: CompilerUnderTest
    backend: str
    example: Any

    def run(self, bench: Bench) -> TrialResult:
        """Return the result; the child process that tries it is kept for the next one."""
        return _kept_workshop(bench, self.fuzzer, self.compiler).try_one(self.example, self.backend)


BEYOND = 3
"""Examples for each worker that are open while a round ends: those that are missing are of the next round."""


class RoundsAhead:
    """The examples of one round after the other, by an engine that begins the next round while this one ends.

    What is known to fail is left out of a whole round, so what was begun ahead counts only where nothing new was found;
    else it is thrown away. It is begun as late as the workers allow, and no longer once an example has failed.
    task: of an example's number, and of what is left out.
    """

    def __init__(self, engine: Engine, task: Callable[[int, Involved], Task]) -> None:
        self._engine, self._task = engine, task
        self._results: Generator[Any, None, None] | None = None
        self._following: tuple[int, Involved] | None = None
        self._until = 0

    def results(self, numbers: range, avoided: Involved, *, last: bool = False) -> Generator[TrialResult, None, None]:
        """Yield the results of the examples of a round; last: no other round is begun."""
        self._until = numbers.stop
        beyond = 0 if last else BEYOND * self._engine.workers
        if self._results is None or self._following != (numbers.start, avoided):
            self.close()
            self._results = self._engine.results(self._tasks(numbers.start, avoided))
        for number in numbers:
            self._until = max(self._until, number + beyond)
            trial: TrialResult = next(self._results)
            self._following = number + 1, avoided
            if trial.signature is not None:
                beyond = 0
            yield trial

    def _tasks(self, number: int, avoided: Involved) -> Generator[Task | None, None, None]:
        while True:
            if number < self._until:
                yield self._task(number, avoided)
                number += 1
            else:
                yield None

    def close(self) -> None:
        """Throw away what was begun."""
        if self._results is not None:
            self._results.close()
            self._results = None


def workshop_of(mode: Fuzzer, compiler: CompilerUnderTest) -> Workshop:
    """Return a workshop that draws and tries what a fuzzer does."""
    return Workshop(
        lambda example, backend: mode.attempt(example, compiler, backend),
        draw=mode.draw,
        foretell=mode.foretell,
        prepare=mode.prepare,
    )


def _kept_workshop(bench: Bench, fuzzer: str, compiler: CompilerUnderTest) -> Workshop:
    def made() -> Workshop:
        return workshop_of(find_fuzzer(fuzzer), compiler)

    return bench.keep((fuzzer, pickle.dumps(compiler)), made)
