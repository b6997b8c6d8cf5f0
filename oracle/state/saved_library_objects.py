"""Objects of the standard library with state of their own: locks, loggers, streams, queues.

Their state is no attribute that a program could set, so each kind has a row: what describes it, and what sets it back.
"""

import collections
import ctypes
import hashlib
import logging
import mmap
import queue
import sqlite3
import threading
import weakref
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from io import BytesIO, StringIO
from typing import Any

import numpy

_LOCK, _REENTRANT_LOCK = type(threading.Lock()), type(threading.RLock())


@dataclass(frozen=True, slots=True)
class LibraryKind:
    """One kind of object.  read: its state, as values or objects that were there before.  write: sets that state.

    write: None where nothing can: a call that changes such an object is not judged, and run compiled alone.
    """

    classes: tuple[type, ...]
    read: Callable[[Any], Any]
    write: Callable[[Any, Any], object] | None


def _set_lock(lock: Any, held: bool) -> None:
    if lock.locked() != held:
        if held:
            lock.acquire(blocking=False)
        else:
            lock.release()


def _set_reentrant(lock: Any, held: bool) -> None:
    """Set whether this thread holds the lock; another thread's hold is not ours to end."""
    while lock._is_owned() and not held:
        lock.release()
    if held and not lock._is_owned():
        lock.acquire(blocking=False)


def _read_logger(value: Any) -> tuple[Any, ...]:
    return value.level, tuple(value.filters), tuple(value.handlers), value.disabled, value.propagate


def _write_logger(value: Any, saved: tuple[Any, ...]) -> None:
    value.setLevel(saved[0])
    value.filters[:], value.handlers[:] = saved[1:3]
    value.disabled, value.propagate = saved[3:]


def _read_stream(value: Any) -> tuple[Any, ...]:
    return ("closed",) if value.closed else (value.getvalue(), value.tell())


def _write_stream(value: Any, saved: tuple[Any, ...]) -> None:
    if not value.closed and len(saved) == 2:
        value.seek(0)
        value.truncate()
        value.write(saved[0])
        value.seek(saved[1])


def _read_queue(value: Any) -> tuple[Any, ...]:
    items = []
    while not value.empty():
        items.append(value.get_nowait())
    for item in items:
        value.put(item)
    return tuple(items)


def _write_queue(value: Any, saved: tuple[Any, ...]) -> None:
    while not value.empty():
        value.get_nowait()
    for item in saved:
        value.put(item)


def _set_bits(value: Any, saved: Any) -> None:
    value.state = saved


def _read_memory(value: Any) -> bytes:
    return ctypes.string_at(ctypes.addressof(value), ctypes.sizeof(value))


def _write_memory(value: Any, saved: bytes) -> None:
    ctypes.memmove(ctypes.addressof(value), saved, len(saved))


def _read_mapped(value: Any) -> tuple[Any, ...]:
    """Return what a mapped file of moderate size holds: to read a large one may take minutes."""
    if value.closed:
        return ("closed",)
    return (value[:], value.tell()) if len(value) <= _LARGEST_MAPPED else (len(value), value.tell())


def _write_mapped(value: Any, saved: tuple[Any, ...]) -> None:
    if not value.closed and len(saved) == 2:
        if isinstance(saved[0], bytes) and value[:] != saved[0]:
            value[:] = saved[0]
        value.seek(saved[1])


_LARGEST_MAPPED = 1 << 24
_OF_BYTES = (ctypes.Structure, ctypes.Union, ctypes.Array, type(ctypes.c_int()).__mro__[1])
_HASHES = tuple({type(hashlib.new(name)) for name in ("sha1", "blake2b", "blake2s", "sha3_256")})
_PACKERS = (type(zlib.compressobj()), type(zlib.decompressobj()))

_ROWS = (
    LibraryKind((_LOCK,), lambda lock: lock.locked(), _set_lock),
    LibraryKind((_REENTRANT_LOCK,), lambda lock: lock._is_owned(), _set_reentrant),
    LibraryKind((logging.Logger,), _read_logger, _write_logger),
    LibraryKind((StringIO, BytesIO), _read_stream, _write_stream),
    LibraryKind((queue.SimpleQueue,), _read_queue, _write_queue),
    LibraryKind((numpy.random.BitGenerator,), lambda value: value.state, _set_bits),
    LibraryKind(_OF_BYTES, _read_memory, _write_memory),
    LibraryKind((mmap.mmap,), _read_mapped, _write_mapped),
    LibraryKind(_HASHES, lambda value: value.hexdigest() if value.digest_size else "", None),
    LibraryKind(_PACKERS, lambda value: value.copy().flush(), None),
    LibraryKind((sqlite3.Connection,), lambda value: value.total_changes, None),
)

LIBRARY_CLASSES = tuple(kind for row in _ROWS for kind in row.classes)
"""The classes of all rows, for the table of kinds."""


def _row_of(value: object) -> LibraryKind:
    return next(row for row in _ROWS if isinstance(value, row.classes))


@dataclass(frozen=True, slots=True)
class SavedLibraryObject:
    """An object of a row, with its state."""

    value: Any
    row: LibraryKind
    state: Any

    def changed(self) -> bool:
        """Compare states."""
        return not _alike(self.row.read(self.value), self.state)

    def restore(self) -> None:
        """Set the state back."""
        if self.row.write is not None and self.changed():
            self.row.write(self.value, self.state)


def save_library_object(value: Any) -> SavedLibraryObject:
    """Save an object of one of the classes above."""
    row = _row_of(value)
    return SavedLibraryObject(value, row, row.read(value))


def _alike(first: Any, second: Any) -> bool:
    """Compare states; what is held counts by identity, arrays and plain values by what they are."""
    if first is second:
        return True
    if type(first) is not type(second):
        return False
    if isinstance(first, tuple):
        return len(first) == len(second) and all(map(_alike, first, second))
    if isinstance(first, Mapping):
        return first.keys() == second.keys() and all(_alike(first[key], second[key]) for key in first)
    if isinstance(first, numpy.ndarray):
        return bool(numpy.array_equal(first, second))
    if isinstance(first, (bool, int, float, str, bytes, weakref.ref, collections.abc.Hashable)):
        return bool(first == second) if isinstance(first, (bool, int, float, str, bytes)) else first is second
    return False


def library_parts(path: str, value: Any) -> list[tuple[str, object]]:
    """Return `(path, part)` for what an object holds and is in."""
    state = _row_of(value).read(value)
    return list(_parts(path, state))


def held_parts(path: str, value: Any) -> list[tuple[str, object]]:
    """Return `(path, part)` for what a call reaches through an object.

    Nothing through a logger: its handlers and filters run in the live run alone, where somebody hears them.
    """
    return [] if isinstance(value, logging.Logger) else library_parts(path, value)


def _parts(path: str, state: Any) -> list[tuple[str, object]]:
    if isinstance(state, tuple):
        return [part for number, item in enumerate(state) for part in _parts(f"{path}[{number}]", item)]
    if isinstance(state, Mapping):
        return [part for name, item in state.items() for part in _parts(f"{path}[{name!r}]", item)]
    if isinstance(state, weakref.ref):
        return [(path, state())]
    return [(path, state)]
