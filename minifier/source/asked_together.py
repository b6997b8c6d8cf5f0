"""Questions about candidate programs as tasks of an engine: several programs run at once, each in a warm process.

A worker of an engine is a Python process of its own; it keeps one warm process, as the command does, and every program
runs in a fork of that.  What a program is told by its surroundings is told there as in the command's own: the variables
that an engine sets for its workers are set back.
"""

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial

from ..engines.engine_places import Engine
from ..engines.task import Bench
from .source_run import RunReport, SourceSettings
from .warm_process import WarmProcess

_OF_WORKERS = ("OMP_NUM_THREADS", "PYTHONPATH")


@dataclass(frozen=True, slots=True)
class SourceQuestion:
    """A program to run on a worker.  surroundings: variables as they are where the question is asked."""

    text: str
    settings: SourceSettings
    surroundings: tuple[tuple[str, str | None], ...]

    def run(self, bench: Bench) -> RunReport:
        """Return how the program fails; the warm process is kept for the next one."""
        key = ("source", self.surroundings, self.settings.compiler, self.settings.preload)
        warm = bench.keep(key, partial(WarmProcess, dict(self.surroundings)))
        return warm.ask(self.text, self.settings)


def asked_together(texts: Iterable[str], settings: SourceSettings, engine: Engine) -> Iterator[RunReport]:
    """Yield how each program fails, in their order."""
    surroundings = tuple((name, os.environ.get(name)) for name in _OF_WORKERS)
    yield from engine.results(SourceQuestion(text, settings, surroundings) for text in texts)
