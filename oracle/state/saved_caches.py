"""Caches of `functools.lru_cache` whose functions do more than give a value: what a run added is taken out again.

Most cached functions only compute, and a cache that a reference run has filled is of no harm. One that counts, prints
or appends would do so in the reference run alone, and the program's own run would miss it.
"""

import functools
import gc
from typing import Any

from .children import own_dict


class SavedCache:
    """What one cache held at a moment."""

    def __init__(self, cache: "functools._lru_cache_wrapper[Any]") -> None:
        self.cache = cache
        self.misses = cache.cache_info().misses
        self.keys = list(_entries(cache))  # alive, so that their ids stay theirs

    def is_filled(self) -> bool:
        """Return whether its function has run since."""
        return self.cache.cache_info().misses != self.misses

    def restore(self) -> None:
        """Take out what was added since; what it had dropped for that does not come back, nor do its counts."""
        if not self.is_filled():
            return
        if not self.keys:
            self.cache.cache_clear()
            return
        known, entries = set(map(id, self.keys)), _entries(self.cache)
        for key in [key for key in entries if id(key) not in known]:
            del entries[key]  # the cache itself looks again for entries that somebody has removed


def _entries(cache: "functools._lru_cache_wrapper[Any]") -> dict[Any, Any]:
    """Return the dictionary inside a cache, which Python shows to garbage collection alone: behind what is cached."""
    own = own_dict(cache)
    found = [part for part in gc.get_referents(cache) if type(part) is dict and part is not own]
    return found[-1] if found else {}
