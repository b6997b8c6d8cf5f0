"""A function called in a child process, where a crash, a hang or a huge allocation is a result and not the end.

The child is a fork of this process, so torch is loaded and candidates need no copying; a query costs milliseconds
more than one in this process.  It uses one thread, as a forked OpenMP pool would never wake up, unless it is told that
there is no pool yet.
"""

import contextlib
import faulthandler
import os
import pickle
import re
import select
import signal
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import IO, Generic, TypeVar

import torch

from plumbline.compiler.base.errors import UserError

T = TypeVar("T")
QUERY_SECONDS = 300.0
"""A query that takes longer is called a hang; compiling one graph with stock inductor takes 10 s to 60 s."""

TOO_LATE = "SIGALRM"
"""How a child ends that was `not_longer_than` a limit and took longer."""


@contextlib.contextmanager
def not_longer_than(seconds: float) -> Iterator[None]:
    """End this process, a child, unless the block ends in time, native code that never returns included.

    The system's timer does it: that of faulthandler waits for its thread, which a fork of a pytest run with
    faulthandler_timeout does not have.  Without such a timer (Windows) there is no limit.
    """
    if not hasattr(signal, "setitimer"):
        yield
        return
    main = threading.current_thread() is threading.main_thread()
    handler = signal.signal(signal.SIGALRM, signal.SIG_DFL) if main else None
    left, interval = signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, left, interval)
        if handler is not None:
            signal.signal(signal.SIGALRM, handler)


@dataclass(frozen=True, slots=True)
class ChildOutcome(Generic[T]):
    """The result of a child: `value` if it returned one, else `death` (a signal's name, or `hang`) and where."""

    value: T | None = None
    death: str = ""
    site: str = ""


def in_child(question: Callable[[], T], seconds: float = QUERY_SECONDS, *, threads: int | None = 1) -> ChildOutcome[T]:
    """Run `question` in a forked child and return its picklable answer, or how the child died.

    threads: of torch in the child; None leaves them, for a parent that never ran a kernel on several threads.
    Raises what the question raises; UserError where processes cannot fork.
    """
    if not hasattr(os, "fork"):
        raise UserError("level 3 needs processes that fork", why=f"this is {os.name}", hint="use --level 4")
    reader, writer = os.pipe()
    with tempfile.TemporaryFile("w+") as traces:
        child = os.fork()
        if child == 0:
            os.close(reader)
            _answer(question, writer, traces, threads)
        os.close(writer)
        data, late = _read_all(reader, time.monotonic() + seconds)
        if late:
            os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        traces.seek(0)
        site = _innermost(traces.read())
    if late:
        return ChildOutcome(death="hang", site=site)
    if data and not os.WIFSIGNALED(status):
        value, error = pickle.loads(data)
        if error is not None:
            raise error
        return ChildOutcome(value)
    name = signal.Signals(os.WTERMSIG(status)).name if os.WIFSIGNALED(status) else f"exit {os.WEXITSTATUS(status)}"
    return ChildOutcome(death=name, site=site)


def _answer(question: Callable[[], object], writer: int, traces: IO[str], threads: int | None) -> None:
    """Answer in the child and exit at once: no cleanup of the parent's objects, no second flush of its buffers."""
    code = 1
    try:
        if threads is not None:
            torch.set_num_threads(threads)
        faulthandler.enable(traces)
        try:
            answer = pickle.dumps((question(), None))
        except Exception as error:
            answer = pickle.dumps((None, RuntimeError(f"{type(error).__name__}: {error}")))
        with os.fdopen(writer, "wb") as pipe:
            pipe.write(answer)
        code = 0
    finally:
        os._exit(code)


def _read_all(reader: int, until: float) -> tuple[bytes, bool]:
    """Return what the child wrote, and whether it was still busy at the deadline."""
    parts: list[bytes] = []
    with contextlib.closing(os.fdopen(reader, "rb", buffering=0)) as pipe:
        while True:
            left = until - time.monotonic()
            ready, _, _ = select.select([pipe], [], [], max(0.0, left))
            if not ready:
                return b"".join(parts), True
            part = pipe.read(1 << 16)
            if not part:
                return b"".join(parts), False
            parts.append(part)


def _innermost(trace: str) -> str:
    """Return `<folder>/<file>:<function>` of the innermost Python frame that faulthandler wrote."""
    match = re.search(r'File "([^"]+)", line \d+ in (\S+)', trace)
    return f"{'/'.join(match[1].split('/')[-2:])}:{match[2]}" if match else ""
