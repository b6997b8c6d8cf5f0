"""One attempt at a time in a thread of its own: what a failing compiler leaves in its thread's state ends with it.

Stock torch 2.13 leaves transforms, forward-mode levels and dispatch state behind when a backend fails under a
transform; later programs then fail, or crash the interpreter, for no fault of theirs.
"""

import logging
import threading
import warnings
from collections.abc import Callable
from typing import TypeVar

from .leftovers import clear_leftovers

_Result = TypeVar("_Result")


def run_apart(attempt: Callable[[], _Result]) -> tuple[_Result, tuple[str, ...]]:
    """Return what the attempt returns, and in words what it left behind for the whole process.

    Raises what the attempt raises, interrupts included.  Warnings and log records of the attempt are dropped: nobody
    wrote these programs.
    """
    results: list[_Result] = []
    errors: list[BaseException] = []
    left: list[str] = []

    def work() -> None:
        try:
            results.append(attempt())
        except BaseException as error:  # handed to the caller's thread
            errors.append(error)
        finally:
            left.extend(clear_leftovers())

    logging.disable(logging.CRITICAL)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            thread = threading.Thread(target=work, daemon=True)
            thread.start()
            thread.join()
    finally:
        logging.disable(logging.NOTSET)
    if errors:
        raise errors[0]
    return results[0], tuple(left)
