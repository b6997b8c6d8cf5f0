"""One example of a campaign as a task for an engine: drawn and tried wherever it runs."""

import pickle
from dataclasses import dataclass

from plumbline.oracle.harness.compilers import CompilerUnderTest

from .engines.task import Bench
from .findings import TrialResult
from .fuzzers import find_fuzzer
from .isolation import Involved, Workshop


@dataclass(frozen=True, slots=True)
class DrawnTrial:
    """An example of one seed: see Workshop.try_drawn.

    fuzzer: its name.  compiler: one that can be pickled, as those of the known compilers can.
    """

    fuzzer: str
    compiler: CompilerUnderTest
    backend: str
    seed: str
    avoided: Involved

    def run(self, bench: Bench) -> TrialResult:
        """Return the result; the child process that tries it is kept for the next one."""
        key = self.fuzzer, pickle.dumps(self.compiler)
        return bench.keep(key, self._workshop).try_drawn(self.seed, self.avoided, self.backend)

    def _workshop(self) -> Workshop:
        mode, compiler = find_fuzzer(self.fuzzer), self.compiler
        return Workshop(lambda example, backend: mode.attempt(example, compiler, backend), draw=mode.draw)
