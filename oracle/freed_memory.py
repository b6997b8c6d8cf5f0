"""Memory that large calls have freed, handed back to the system: what lies in gaps of the heap counts as used."""

import ctypes
import functools
from collections.abc import Callable, Iterator
from contextlib import suppress


@functools.cache
def _trim() -> Callable[[int], int] | None:
    """Return glibc's own function for it, None with other C libraries."""
    try:
        trim = ctypes.CDLL(None).malloc_trim
    except (AttributeError, OSError, TypeError):  # Windows has no library of the process itself
        return None
    trim.argtypes = (ctypes.c_size_t,)
    trim.restype = ctypes.c_int
    return trim


def return_freed_memory() -> None:
    """Let the system have the pages that nothing uses; a few milliseconds."""
    trim = _trim()
    if trim is not None:
        trim(0)


def chain_of(error: BaseException | None) -> Iterator[BaseException]:
    """Yield an exception and those that were being handled when it was raised."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or error.__context__


def without_frames(error: Exception, handled: BaseException | None) -> Exception:
    """Return the exception of a run that is undone, without the frames that it passed: what they hold is to end.

    handled: the exception that was being handled when the run began. It leads on to it, and is the caller's own.
    """
    others = {id(each) for each in chain_of(handled)}
    for each in chain_of(error):
        if id(each) not in others:
            each.__traceback__ = None
    return error


def let_go_of_frames(error: BaseException) -> None:
    """Empty the frames of the judge that an exception holds: those that are done, which ran the program.

    The frames in its traceback hold their callers, and one of these holds the exception: a circle.
    """
    for each in chain_of(error):
        frame = each.__traceback__.tb_frame if each.__traceback__ is not None else None
        while frame is not None:
            if str(frame.f_globals.get("__name__", "")).startswith("plumbline.oracle."):
                with suppress(RuntimeError):  # it runs still
                    frame.clear()
            frame = frame.f_back
