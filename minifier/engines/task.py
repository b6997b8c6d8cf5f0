"""What an engine runs: a task that can be pickled, and the bench on which its worker keeps things warm for it."""

from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from typing import Any, Protocol, TypeVar

Thing = TypeVar("Thing")


class Bench:
    """The one thing that a worker keeps between tasks; it is closed when a task asks for another one.

    A context manager.  A warm child process serves many tasks; tasks of one campaign ask for the same one.
    """

    def __init__(self) -> None:
        self._key: object = None
        self._thing: Any = None
        self._open = ExitStack()

    def __enter__(self) -> "Bench":
        """Return the bench, which is empty."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close what is kept."""
        self._key = None
        self._open.close()

    def keep(self, key: object, make: Callable[[], AbstractContextManager[Thing]]) -> Thing:
        """Return what is kept under a key; it is made and entered if the last task asked for something else."""
        if self._key is None or key != self._key:
            self._open.close()
            self._thing, self._key = self._open.enter_context(make()), key
        thing: Thing = self._thing
        return thing


class Task(Protocol):
    """One piece of work: picklable, repeatable, independent of all others and of which worker runs it."""

    def run(self, bench: Bench) -> Any:
        """Return the result, which can be pickled; an exception ends the campaign."""
