"""Warnings of what capture evaluates: noted, not shown, so that what warns is left to plain Python.

Capture evaluates an operation once, some of them twice, where plain Python performs it at every call. A warning of such
an operation would be shown at capture and never again. So capture shows none; an instruction that warned is a graph
break, and its warning comes from plain Python, under the filters of the moment.
"""

import re
import threading
import warnings
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .locks import ForkedLock


@dataclass(frozen=True, slots=True, eq=False)
class NotedWarning:
    """A warning that was not shown; file: of the Python code that was running."""

    message: Warning | str
    category: type[Warning]
    file: str

    def is_of_ours(self) -> bool:
        """Return whether code of plumbline was running."""
        return self.file.startswith(_OUR_FOLDER)

    def __str__(self) -> str:
        return f"{self.category.__name__}: {self.message}"


class _NotedOfThread(threading.local):
    """Where warnings of this thread go, None for where they always go; among: those of these texts only, None for all.

    It fits texts as a pattern of a filter would.
    """

    noted: list[NotedWarning] | None = None
    among: Collection[str] | None = None

    def match(self, text: str) -> bool:
        """Return whether such warnings of the running thread are noted: filters belong to the process."""
        return self.noted is not None and (self.among is None or text in self.among)


class _Installation:
    """The filter and the function that note warnings: put in by the first thread that notes, taken out by the last."""

    def __init__(self) -> None:
        self.lock = ForkedLock()
        self.users = 0
        self.shows: Any = None
        self.entry: Any = ("always", _NOTING, Warning, None, 0)

    def enter(self) -> None:
        """Install both for one user more."""
        with self.lock:
            self.users += 1
            if warnings.showwarning != self.show:
                self.shows, warnings.showwarning = warnings.showwarning, self.show
            filters: Any = warnings.filters  # a list, typed as a sequence; `catch_warnings` may have put another there
            if self.entry not in filters:
                filters.insert(0, self.entry)

    def leave(self) -> None:
        """Take both out after the last user."""
        with self.lock:
            self.users -= 1
            if self.users:
                return
            if warnings.showwarning == self.show:
                warnings.showwarning = self.shows
            filters: Any = warnings.filters
            if self.entry in filters:
                filters.remove(self.entry)

    def show(self, message: Any, category: Any, filename: str, *rest: Any, **named: Any) -> None:
        """Note a warning of a thread that notes, show those of others."""
        if _NOTING.noted is not None and _NOTING.match(str(message)):
            _NOTING.noted.append(NotedWarning(message, category, filename))
        else:
            self.shows(message, category, filename, *rest, **named)


_OUR_FOLDER = str(Path(__file__).parents[1])
_NOTING = _NotedOfThread()
_INSTALLATION = _Installation()


@contextmanager
def noted_warnings(noted: list[NotedWarning], among: Collection[str] | None = None) -> Iterator[None]:
    """Append this thread's warnings to a list instead of showing them, whatever the filters say.

    among: only those of these texts.

    `warnings.catch_warnings` would also make Python forget which warnings it has shown, and the program's next warning
    would be shown once too often. Inserting a filter by hand does not.
    """
    if among is not None and not among:
        yield
        return
    before = _NOTING.noted, _NOTING.among
    _NOTING.noted, _NOTING.among = noted, among
    known = _compiled_patterns()
    _INSTALLATION.enter()
    try:
        yield
    finally:
        _NOTING.noted, _NOTING.among = before
        _INSTALLATION.leave()
        if noted and _compiled_patterns() != known:
            re.purge()  # a pattern warns when it is compiled, and has to be compiled again


def _compiled_patterns() -> frozenset[object]:
    """Return the keys of the patterns that `re` holds; what equals nothing where it does not tell."""
    return frozenset(getattr(re, "_cache", (object(),)))


@contextmanager
def shown_warnings() -> Iterator[None]:
    """Show warnings in the block as ever: it runs in place of the program, once for all."""
    before, _NOTING.noted = _NOTING.noted, None
    try:
        yield
    finally:
        _NOTING.noted = before
