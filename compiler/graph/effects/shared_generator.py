"""Random generators are left as they were by what is captured and traced, however many threads compile at once.

Tracing draws nothing, but it has to see that a program seeds: it runs under a seed of ours.  Threads share the
generator, so whichever leaves first puts the program's state back, and the others go on without the seed.
"""

import random
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import torch

from ...base.errors import Unsupported
from ...base.locks import ForkedLock

_WATCHED_SEED = 0x5EED_0F_ACE5  # nobody seeds with it by chance


class _SharedGenerator:
    """The CPU generator, which all threads share.

    theirs: the program's state while the seed is ours, None while it is the program's.  seed: that which traces expect.
    watching: the blocks of each thread that are running.  changes: how often the seed was put in and taken out.
    """

    def __init__(self) -> None:
        self.lock = ForkedLock()
        self.theirs: torch.Tensor | None = None
        self.seed = 0
        self.watching: dict[int, int] = {}
        self.changes = 0
        self.own = threading.local()  # the changes by this thread

    def of_others(self) -> int:
        """Return how often other threads put the seed in or took it out."""
        return self.changes - int(getattr(self.own, "changes", 0))

    def watch(self) -> None:
        """Begin a block: put the seed in, unless it is in."""
        thread = threading.get_ident()
        self.watching[thread] = self.watching.get(thread, 0) + 1
        if self.theirs is None:
            self.theirs = torch.get_rng_state()
            torch.default_generator.manual_seed(_WATCHED_SEED)
            self._note_change()

    def leave(self) -> None:
        """End a block: with the outermost one of a thread, the seed is taken out."""
        thread = threading.get_ident()
        self.watching[thread] -= 1
        if self.watching[thread]:
            return
        del self.watching[thread]
        if self.theirs is not None:
            torch.set_rng_state(self.theirs)
            self.theirs = None
            self._note_change()

    def _note_change(self) -> None:
        self.seed = torch.initial_seed()
        self.changes += 1
        self.own.changes = getattr(self.own, "changes", 0) + 1


_GENERATOR = _SharedGenerator()


@contextmanager
def kept_generators() -> Iterator[None]:
    """Leave the random generators as they were: operations on fake tensors may draw."""
    with _GENERATOR.lock:
        torch_state, python_state = torch.get_rng_state(), random.getstate()
        others, alone = _GENERATOR.of_others(), not _GENERATOR.watching.keys() - {threading.get_ident()}
    try:
        yield
    finally:
        with _GENERATOR.lock:
            if alone and _GENERATOR.of_others() == others:  # else another thread puts its state back, or has
                torch.set_rng_state(torch_state)
        random.setstate(python_state)


@contextmanager
def watched_generator() -> Iterator[None]:
    """Put a seed of ours into the CPU generator for the time of a trace, and the former state back afterwards.

    Tracing draws nothing, so a program that seeds shows itself by another seed (`demand_untouched_generator`).
    """
    with _GENERATOR.lock:
        _GENERATOR.watch()
    try:
        yield
    finally:
        with _GENERATOR.lock:
            _GENERATOR.leave()


def demand_untouched_generator() -> None:
    """Raise Unsupported if the traced program seeded the generator: a graph draws, it does not seed."""
    with _GENERATOR.lock:
        seeded = torch.initial_seed() != _GENERATOR.seed
    if seeded:
        raise Unsupported("the program seeds the generator", hint="expected: the graph runs eagerly")
