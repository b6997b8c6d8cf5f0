"""Which session judges now, on this thread; None outside a judged test body. Light: loaded in every pytest session."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


class _CurrentSession(threading.local):
    session: Any = None  # a judge_access.Session, whose module is not light


_CURRENT = _CurrentSession()


def current_session() -> Any:
    """Return the session that judges on this thread, None when none does."""
    return _CURRENT.session


@contextmanager
def session_is(session: Any) -> Iterator[None]:
    """Make a session the current one of this thread for the duration of a block."""
    before, _CURRENT.session = _CURRENT.session, session
    try:
        yield
    finally:
        _CURRENT.session = before
