"""Tasks for engines that need no torch: a square, one that kills its worker a few times, one that raises."""

import os
import signal
import time
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Square:
    number: int
    seconds: float = 0.0

    def run(self, bench):
        time.sleep(self.seconds)
        return self.number**2


@dataclass(frozen=True)
class Deadly:
    """Kills the process that runs it, until a folder holds a file for each time."""

    folder: Path
    times: int

    def run(self, bench):
        died = len(list(self.folder.iterdir()))
        if died < self.times:
            (self.folder / str(died)).touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return died


@dataclass(frozen=True)
class Noted:
    """Leaves a file of its number when it begins, and takes some time."""

    folder: Path
    number: int
    seconds: float

    def run(self, bench):
        (self.folder / str(self.number)).touch()
        time.sleep(self.seconds)
        return self.number


@dataclass(frozen=True)
class Raising:
    def run(self, bench):
        raise ValueError("not this one")


@dataclass(frozen=True)
class Kept:
    """Returns the process and how many tasks with this key it has run in a row."""

    key: str

    def run(self, bench):
        kept = bench.keep(self.key, lambda: nullcontext([]))
        kept.append(self.key)
        return os.getpid(), len(kept)
