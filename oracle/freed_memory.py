"""Memory that large calls have freed, handed back to the system: what lies in gaps of the heap counts as used."""

import ctypes
import functools
from collections.abc import Callable


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
