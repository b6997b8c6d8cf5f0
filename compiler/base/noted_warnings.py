"""Warnings of what capture evaluates: noted, not shown, so that what warns is left to plain Python.

Capture evaluates an operation once, some of them twice, where plain Python performs it at every call. A warning of such
an operation would be shown at capture and never again. So capture shows none; an instruction that warned is a graph
break, and its warning comes from plain Python, under the filters of the moment.
"""

import re
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from .locks import ForkedLock


class _NotedOfThread(threading.local):
    """Where warnings of this thread go, None for where they always go. It fits texts as a pattern of a filter would."""

    noted: list[str] | None = None

    def match(self, text: str) -> bool:
        """Return whether warnings of the running thread are noted: filters belong to the process."""
        del text
        return self.noted is not None


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

    def show(self, message: Any, category: Any, *rest: Any, **named: Any) -> None:
        """Note a warning of a thread that notes, show those of others."""
        if _NOTING.noted is not None:
            _NOTING.noted.append(f"{category.__name__}: {message}")
        else:
            self.shows(message, category, *rest, **named)


_NOTING = _NotedOfThread()
_INSTALLATION = _Installation()


@contextmanager
def noted_warnings(noted: list[str]) -> Iterator[None]:
    """Append the texts of this thread's warnings to a list instead of showing them, whatever the filters say.

    `warnings.catch_warnings` would also make Python forget which warnings it has shown, and the program's next warning
    would be shown once too often. Inserting a filter by hand does not.
    """
    before, _NOTING.noted = _NOTING.noted, noted
    _INSTALLATION.enter()
    try:
        yield
    finally:
        _NOTING.noted = before
        _INSTALLATION.leave()
        if noted:
            re.purge()  # a pattern warns when it is compiled, and has to be compiled again


@contextmanager
def shown_warnings() -> Iterator[None]:
    """Show warnings in the block as ever: it runs in place of the program, once for all."""
    before, _NOTING.noted = _NOTING.noted, None
    try:
        yield
    finally:
        _NOTING.noted = before
