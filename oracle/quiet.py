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
    level = logging.root.manager.disable
    with warnings.catch_warnings(), contextlib.redirect_stdout(sink), contextlib.redirect_stderr(sink):
        warnings.simplefilter("ignore")
        if level >= logging.CRITICAL:  # as in a block inside another: every change empties the caches of all loggers
            yield
            return
        logging.disable(logging.CRITICAL)
        try:
            yield
        finally:
            logging.disable(level)
