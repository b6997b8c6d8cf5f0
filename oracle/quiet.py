"""Discards what reference runs print, warn about and log: the test must not see it."""

import contextlib
import io
import logging
import warnings
from collections.abc import Iterator


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Discard standard output, standard error, warnings and log records of the block."""
    sink = io.StringIO()
    handle = logging.Logger.handle
    with warnings.catch_warnings(), contextlib.redirect_stdout(sink), contextlib.redirect_stderr(sink):
        warnings.simplefilter("ignore")
        # Not `logging.disable`: that empties the caches of all loggers, which costs more than most calls.
        logging.Logger.handle = _discard  # type: ignore[method-assign, assignment]  # put back below
        try:
            yield
        finally:
            logging.Logger.handle = handle  # type: ignore[method-assign]  # as it was


def _discard(logger: logging.Logger, record: logging.LogRecord) -> None:
    """Take the place of `Logger.handle`."""
