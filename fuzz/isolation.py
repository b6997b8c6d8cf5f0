"""Attempts in a child process: a crash, a hang or damaged state is one failure and does not cause the next.

Stock torch 2.13 needs it: a backend that fails under a transform leaves forward-mode levels and dispatch state behind,
after which eager programs raise, and garbage collection may crash.
"""

import contextlib
import faulthandler
import functools
import logging
import multiprocessing
import signal
import sys
import warnings
from collections.abc import Callable
from dataclasses import replace
from multiprocessing.connection import Connection
from multiprocessing.context import ForkContext, ForkProcess
from typing import Any

import torch

from plumbline.oracle.judge import judge_call
from plumbline.oracle.judge_options import JudgeOptions
from plumbline.oracle.verdict import Finding, Verdict, VerdictKind

from .findings import FuzzSignature, TrialResult
from .leftovers import clear_leftovers

ATTEMPT_SECONDS = 180.0
"""A first compile takes seconds; a program of a dozen operators that takes this long hangs."""

Attempt = Callable[[Any], TrialResult]


class Workshop:
    """Makes attempts in a child process, and starts a new child whenever one is dead or may be damaged.

    A context manager.  attempt: from an example to its result; the child inherits it, so it need not be picklable.
    Without fork (Windows) attempts run in this process.
    """

    def __init__(self, attempt: Attempt, seconds: float = ATTEMPT_SECONDS) -> None:
        self._attempt = attempt
        self._seconds = seconds
        self._child: tuple[ForkProcess, Connection] | None = None

    def __enter__(self) -> "Workshop":
        """Return the workshop; the child starts with the first attempt."""
        return self

    def __exit__(self, *_: object) -> None:
        """End the child."""
        self.close()

    def close(self) -> None:
        """End the child; the next attempt starts a new one."""
        if self._child is not None:
            process, connection = self._child
            self._child = None
            connection.close()
            process.kill()
            process.join()

    def try_one(self, example: Any) -> TrialResult:
        """Return the result of an example; a dead or hanging child is a crash of the program.

        Raises KeyboardInterrupt when the attempt was interrupted, never what the attempt raises otherwise.
        """
        if sys.platform == "win32":
            return _attempted(self._attempt, example)
        trial = self._in_child(example)
        if trial.tainted:
            self.close()
        return trial

    def _in_child(self, example: Any) -> TrialResult:
        process, connection = self._child or self._fork()
        self._child = process, connection
        try:
            connection.send(example)
            if not connection.poll(self._seconds):
                self.close()
                return _crash("process", "hang", f"does not end within {self._seconds:g} s")
            answer = connection.recv()
        except (EOFError, ConnectionError):
            process.join()
            self.close()
            return _crash("process", _death(process.exitcode), f"ends the process ({_death(process.exitcode)})")
        except KeyboardInterrupt:
            self.close()
            raise
        if answer is None:
            self.close()
            raise KeyboardInterrupt
        trial: TrialResult = answer
        return trial

    def _fork(self) -> tuple[ForkProcess, Connection]:
        _warm_up()
        context: ForkContext = multiprocessing.get_context("fork")
        ours, theirs = context.Pipe()
        process = context.Process(target=_serve, args=(theirs, ours, self._attempt), daemon=True)
        with warnings.catch_warnings():  # Python 3.12 warns of forks with threads; the parent runs no kernels of torch
            warnings.simplefilter("ignore")
            process.start()
        theirs.close()
        return process, ours


@functools.cache
def _warm_up() -> None:
    """Let torch import what transforms need once, in the parent: in each child it would take seconds.

    One element each, so that no thread of torch is started before a fork.
    """
    one = torch.ones(1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.func.jvp(torch.func.grad(torch.sum), (one,), (one,))
        torch.vmap(torch.sin)(one)
        judge_call(torch.sin, torch.cos, (one,), {}, JudgeOptions(), {"x": one})


def _serve(connection: Connection, other_end: Connection, attempt: Attempt) -> None:
    """Answer examples until the parent closes its end; the child's whole life."""
    other_end.close()
    faulthandler.disable()  # the parent reports a crash, with its example
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent handles interrupts
    logging.disable(logging.CRITICAL)
    warnings.simplefilter("ignore")  # generated programs warn of much
    with contextlib.suppress(EOFError, ConnectionError):
        while True:
            try:
                connection.send(_attempted(attempt, connection.recv()))
            except KeyboardInterrupt:
                connection.send(None)


def _attempted(attempt: Attempt, example: Any) -> TrialResult:
    try:
        trial = attempt(example)
    except Exception as error:  # a failure of the judge must neither end a campaign nor pass unseen
        text = str(error).splitlines()[0][:200] if str(error) else ""
        trial = _crash("judge", type(error).__name__, f"raises {type(error).__name__}: {text}")
    left = clear_leftovers()
    raised = trial.signature is not None and trial.signature.aspect == "exceptions"
    return replace(trial, notes=(*trial.notes, *left), tainted=trial.tainted or raised or bool(left))


def _crash(aspect: str, detail: str, sentence: str) -> TrialResult:
    finding = Finding(VerdictKind.CRASH, aspect, "the attempt", sentence)
    verdict = Verdict(VerdictKind.CRASH, f"the attempt {sentence}", (finding,))
    return TrialResult(verdict, FuzzSignature(VerdictKind.CRASH.value, aspect, detail), tainted=True)


def _death(status: int | None) -> str:
    if status is not None and status < 0:
        return signal.Signals(-status).name
    return f"exit status {status}"
