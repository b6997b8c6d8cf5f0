"""A limit on the time of a test, kept by a signal; where Python itself hangs, `--compile-isolate` ends the process."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class OutOfTime(BaseException):
    """A test took longer than --compile-timeout; no program catches this by `except Exception`."""


@contextmanager
def at_most(seconds: float | None) -> Iterator[None]:
    """Raise OutOfTime in a block that takes longer; does nothing without a limit, or off the main thread."""
    if seconds is None or threading.current_thread() is not threading.main_thread() or not hasattr(signal, "SIGALRM"):
        yield
        return

    def ring(number: int, frame: FrameType | None) -> None:
        raise OutOfTime(f"took longer than --compile-timeout={seconds:g}")

    before = signal.signal(signal.SIGALRM, ring)
    remaining, interval = signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, remaining, interval)
        signal.signal(signal.SIGALRM, before)
