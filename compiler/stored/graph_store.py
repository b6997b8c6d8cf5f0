"""Compiled graphs on disk, as plain data under a key; whatever is wrong with an entry, it is not there."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

from ..base.options import Options, default_cache_directory
from ..runtime.disk_cache import DiskCache
from .plain_data import NotPlain, Plain, plain_bytes, plain_of_bytes, plain_text

FORMAT = "1"  # raise when the form of entries changes


@dataclass(frozen=True, slots=True, eq=False)
class GraphStore:
    """Entries of one cache folder."""

    disk: DiskCache

    @staticmethod
    def of(options: Options) -> GraphStore:
        """Return the store that the options name."""
        return GraphStore(DiskCache(default_cache_directory(options), ".graph"))

    def find(self, key: str) -> Plain | None:
        """Return what is kept under a key; None where there is nothing, or nothing whole."""
        path = self.disk.find(key)
        if path is None:
            return None
        try:
            form, name, content = plain_of_bytes(path.read_bytes())
        except Exception:  # truncated, of another format, or not an entry at all
            return None
        return content if (form, name) == (FORMAT, key) else None

    def keep(self, key: str, content: Plain) -> str:
        """Put an entry under a key; returns "" or the reason why it is not kept."""
        _, reason = self.disk.keep_content(key, plain_bytes((FORMAT, key, content)))
        return reason


def key_of_plain(*parts: Plain) -> str:
    """Return the key of plain data: of all of it, to the last bit."""
    return hashlib.sha256(plain_text((FORMAT, parts)).encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class StoredPart:
    """A compiled graph as it is kept.

    content: all that it takes to make it again.  condition: Python text over `names`, the dynamic sizes in order, that
    says for which sizes it may be used; empty for all.
    """

    content: Plain
    condition: str = ""
    names: tuple[str, ...] = ()


Describe = Callable[[], StoredPart]
_DESCRIBED: WeakKeyDictionary[Callable[..., Any], Describe] = WeakKeyDictionary()


def describe(compiled: Callable[..., Any], description: Describe) -> None:
    """Let a compiled graph be kept: description gives what it takes to make it again, or raises NotPlain."""
    _DESCRIBED[compiled] = description


def description_of(compiled: Callable[..., Any]) -> StoredPart:
    """Return what it takes to make a compiled graph again; raises NotPlain where that cannot be written down.

    To be asked once: what was described holds texts that nothing else needs.
    """
    try:
        description = _DESCRIBED.pop(compiled, None)
    except TypeError:  # no weak references to it: not one that was described
        description = None
    if description is None:
        raise NotPlain("a graph that runs operator by operator")
    return description()
