"""A campaign or a sweep that is told to end from outside ends as if its user had pressed Ctrl-C: with its summary."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def terminated_like_interrupted() -> Iterator[None]:
    """Let SIGTERM, which `timeout`, build servers and job schedulers send, raise KeyboardInterrupt in the block.

    Only the main thread may set a handler; in any other the block runs as it is.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def interrupt(number: int, frame: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
