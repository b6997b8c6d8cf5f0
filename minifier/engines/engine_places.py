"""The engines by name, and what each of them does: results in the order of the tasks, each exactly once."""

from collections.abc import Callable, Generator, Iterable
from types import TracebackType
from typing import Any, Protocol

from plumbline.compiler.base.errors import UserError

from .dask_engine import DaskEngine
from .local_engine import LocalEngine
from .task import Task


class Engine(Protocol):
    """Runs tasks on workers; a context manager.

    A worker that dies is replaced and its task is run again: a task may run twice, its result comes once.
    """

    @property
    def workers(self) -> int:
        """Return how many tasks run at once."""

    def results(self, tasks: Iterable[Task | None]) -> Generator[Any, None, None]:
        """Yield the result of each task, in their order; the tasks are read some ahead of the results.

        None among them is no task: it asks to read on after another result, and may come only where one is due.
        Another call may be made, and read to its end, between two results of this one.
        Raises UserError where the workers are gone, RuntimeError for an exception of a task's.
        """

    def __enter__(self) -> "Engine":
        """Return the engine; workers start with the first task."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None, /
    ) -> None:
        """Take back what runs, and end the workers that are its own."""


def _local(address: str) -> Engine:
    if address and not (address.isdecimal() and int(address)):
        raise UserError(f"{address!r} is not a number of workers", hint="such as --engine local:4")
    return LocalEngine(int(address) if address else None)


_ENGINES: dict[str, Callable[[str], Engine]] = {"local": _local, "dask": DaskEngine}


def find_engine(place: str) -> Engine:
    """Return the engine of a place: `local`, `local:4`, `dask://host:8786`.

    Raises UserError for a place that names none, for a package that is not installed, and where nobody answers.
    """
    kind, _, address = place.partition(":")
    if kind not in _ENGINES:
        raise UserError(f"unknown engine {place!r}", hint="local, local:4 or dask://host:8786")
    return _ENGINES[kind](address.removeprefix("//"))
