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


class _Noting(threading.local):
    """Whether warnings of this thread are noted: filters belong to the process. It fits texts as a pattern would."""

    on = False

    def match(self, text: str) -> bool:
        """Return whether warnings of the running thread are noted."""
        del text
        return self.on


_NOTING = _Noting()


@contextmanager
def noted_warnings(noted: list[str]) -> Iterator[None]:
    """Append the texts of this thread's warnings to a list instead of showing them, whatever the filters say.

    `warnings.catch_warnings` would also make Python forget which warnings it has shown, and the program's next warning
    would be shown once too often. Inserting a filter by hand does not.
    """
    shows, before = warnings.showwarning, _NOTING.on

    def show(message, category, filename, lineno, file=None, line=None):  # type: ignore[no-untyped-def]  # as Python's
        if _NOTING.on:
            noted.append(f"{category.__name__}: {message}")
        else:
            shows(message, category, filename, lineno, file, line)

    entry: Any = ("always", _NOTING, Warning, None, 0)
    filters: Any = warnings.filters  # a list, typed as a sequence
    filters.insert(0, entry)
    warnings.showwarning, _NOTING.on = show, True
    try:
        yield
    finally:
        _NOTING.on = before
        if warnings.showwarning is show:
            warnings.showwarning = shows
        if entry in filters:
            filters.remove(entry)
        if noted:
            re.purge()  # a pattern warns when it is compiled, and has to be compiled again


@contextmanager
def shown_warnings() -> Iterator[None]:
    """Show warnings in the block as ever: it runs in place of the program, once for all."""
    before, _NOTING.on = _NOTING.on, False
    try:
        yield
    finally:
        _NOTING.on = before
