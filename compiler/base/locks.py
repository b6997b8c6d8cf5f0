"""Locks that a forked child finds open, whoever held them in its parent."""

import os
import threading
from collections.abc import Callable
from typing import Any
from weakref import WeakSet

_ReentrantLock: Any = type(threading.RLock())  # entered in C, where no interrupt arrives between lock and block


class ForkedLock(_ReentrantLock):  # type: ignore[misc]  # the class has no public name
    """A reentrant lock; in a child of `os.fork` it is open, unless the thread that forks holds it.

    Only that thread goes on in the child, so what another one held would never be released. What the other was changing
    may be half done there: the compiler publishes what it makes in one step, at the end.
    """

    def __init__(self) -> None:
        super().__init__()
        _LOCKS.add(self)

    def renew(self) -> None:
        """Open the lock in a child, unless this thread holds it."""
        if not self._is_owned():
            self._at_fork_reinit()


_LOCKS: WeakSet[ForkedLock] = WeakSet()


def _renew_all() -> None:
    for lock in list(_LOCKS):
        lock.renew()


_register: Callable[..., None] | None = getattr(os, "register_at_fork", None)  # Windows cannot fork
if _register is not None:
    _register(after_in_child=_renew_all)
