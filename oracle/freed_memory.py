"""Memory that calls have freed: that of large ones goes back to the system, that of others stays for the next run."""

import ctypes
import functools
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

_TRIM_THRESHOLD, _MAP_THRESHOLD = -1, -3  # the numbers by which glibc knows the two
_MOST_KEPT = 256 << 20
_LARGEST_IN_HEAP = 32 << 20  # the most that glibc takes


@functools.cache
def _of_glibc(name: str, *parameters: Any) -> Callable[..., int] | None:
    """Return one of glibc's own functions, None with other C libraries."""
    try:
        function: Any = getattr(ctypes.CDLL(None), name)
    except (AttributeError, OSError, TypeError):  # Windows has no library of the process itself
        return None
    function.argtypes = parameters
    function.restype = ctypes.c_int
    return function  # type: ignore[no-any-return]  # ctypes has no type for it


def return_freed_memory() -> None:
    """Let the system have the pages that nothing uses; a few milliseconds."""
    trim = _of_glibc("malloc_trim", ctypes.c_size_t)
    if trim is not None:
        trim(0)


@functools.cache
def keep_freed_memory() -> None:
    """Let the process keep up to 256 MiB that it has freed: runs of one call take the same memory again and again.

    What is handed back comes with a fault of the processor for each page, a fifth of the time of a judged call.
    """
    options = _of_glibc("mallopt", ctypes.c_int, ctypes.c_int)
    if options is not None:
        options(_TRIM_THRESHOLD, _MOST_KEPT)
        options(_MAP_THRESHOLD, _LARGEST_IN_HEAP)


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
