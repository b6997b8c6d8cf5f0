"""The last words of a worker: a file that Python writes to where a signal or the time limit ends the process."""

import faulthandler
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

LAST_WORDS = "plumbline_last_words"
"""Name of the file's path in what pytest-xdist gives to a worker."""

GRACE = 5.0
"""Seconds after the limit at which a process is ended that the signal has not reached."""


class LastWords:
    """The file, open as long as the process lives."""

    def __init__(self, place: str) -> None:
        self._file: TextIO = open(place, "w", encoding="utf-8")  # noqa: SIM115  open as long as the process lives
        faulthandler.enable(file=self._file)

    @contextmanager
    def at_most(self, seconds: float | None) -> Iterator[None]:
        """End the process where a block takes longer than the limit and some grace; forget earlier words."""
        self._file.seek(0)
        self._file.truncate()
        if seconds is None:
            yield
            return
        faulthandler.dump_traceback_later(seconds + GRACE, exit=True, file=self._file)
        try:
            yield
        finally:
            faulthandler.cancel_dump_traceback_later()
