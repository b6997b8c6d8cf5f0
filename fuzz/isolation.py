"""Attempts in a child process: a crash, a hang or damaged state is one failure and does not cause the next.

Stock torch 2.13 needs it: a backend that fails under a transform leaves forward-mode levels and dispatch state behind,
after which eager programs raise, and garbage collection may crash.
"""

import contextlib
import ctypes
import faulthandler
import functools
import logging
import multiprocessing
import os
import random
import signal
import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection
from multiprocessing.context import ForkContext, ForkProcess
from typing import Any

import torch

from plumbline.oracle.judge import judge_call
from plumbline.oracle.judge_options import JudgeOptions
from plumbline.oracle.verdict import Finding, Verdict, VerdictKind

from .coverage.behaviours import Behaviours, reached_behaviours
from .coverage.lead import LedDraw
from .coverage.lineage_draws import LineageDraws
from .findings import FuzzSignature, TrialResult
from .leftovers import clear_leftovers

ATTEMPT_SECONDS = 180.0
"""A first compile takes seconds; a program of a dozen operators that takes this long hangs."""

_SIGNAL_AT_PARENTS_DEATH = 1  # the number that Linux has given to this request

_NOT_DRAWN = TrialResult(
    Verdict(VerdictKind.EAGER_FAILED, "eager ends the process while the example is drawn"),
    notes=("eager ends the process while an example is drawn",),
)
"""An example is drawn by running it: what ends the process then has not met a compiler yet."""

MOST_DRAWS = 8
"""Draws of one example at most, to get one without what is known to fail."""

Attempt = Callable[[Any, str], TrialResult]
Avoided = Callable[[frozenset[str]], bool]
Draw = Callable[[random.Random, Avoided], Any]
Foretell = Callable[[Any], Behaviours]
Involved = tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class Means:
    """What a child draws and tries examples with; see Workshop."""

    attempt: Attempt
    draw: Draw | None
    foretell: Foretell
    prepare: Callable[[], None]


@dataclass(frozen=True, slots=True)
class _Drawn:
    """A request to draw an example from a seed and, unless only the example is wanted, to try it.

    led: how to draw it instead, and what it reaches is told.
    """

    seed: str
    avoided: Involved
    tried: bool = True
    led: LedDraw | None = None


class Workshop:
    """Draws and tries examples in a child process, and starts a new one whenever it is dead or may be damaged.

    A context manager.  attempt: from an example and a backend to its result; draw: from a generator to an example;
    foretell: from an example to what it would reach, where a lead draws; prepare: called here before a child starts,
    for what each child would else do again.  The child inherits them, so they need not be picklable.  Without fork
    (Windows) all happens in this process.
    """

    def __init__(
        self,
        attempt: Attempt,
        seconds: float = ATTEMPT_SECONDS,
        draw: Draw | None = None,
        foretell: Foretell = lambda example: frozenset(),
        prepare: Callable[[], None] = lambda: None,
    ) -> None:
        self._means = Means(attempt, draw, foretell, prepare)
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

    def try_one(self, example: Any, backend: str = "") -> TrialResult:
        """Return the result of an example; a dead or hanging child is a crash of the program.

        Raises KeyboardInterrupt when the attempt was interrupted, never what the attempt raises otherwise.
        """
        trial: TrialResult = self._asked(example, backend)
        if trial.tainted:
            self.close()
        return trial

    def try_drawn(self, seed: str, avoided: Involved, backend: str = "", led: LedDraw | None = None) -> TrialResult:
        """Draw the example of a seed and try it; the result has the example where it fails.

        avoided: sets of names, each of which failed before; examples that hold one of them are drawn again.
        led: draws it otherwise; the result says what it reached.
        """
        trial: TrialResult = self._asked(_Drawn(seed, avoided, led=led), backend)
        if trial.tainted:
            self.close()
        if trial.signature is not None and trial.example is None:  # the child died before it could say
            example = self._asked(_Drawn(seed, avoided, tried=False, led=led), backend)
            self.close()
            return _NOT_DRAWN if isinstance(example, TrialResult) else replace(trial, example=example)
        return trial

    def _asked(self, request: Any, backend: str) -> Any:
        if sys.platform == "win32":
            return _answer(self._means, request, backend)
        process, connection = self._child or self._fork()
        self._child = process, connection
        try:
            connection.send((request, backend))
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
        return answer

    def _fork(self) -> tuple[ForkProcess, Connection]:
        _warm_up()
        self._means.prepare()
        context: ForkContext = multiprocessing.get_context("fork")
        ours, theirs = context.Pipe()
        process = context.Process(target=_serve, args=(theirs, ours, self._means), daemon=True)
        with warnings.catch_warnings():  # Python 3.12 warns of forks with threads; the parent runs no kernels of torch
            warnings.simplefilter("ignore")
            process.start()
        theirs.close()
        return process, ours


@functools.cache
def _warm_up() -> None:
    """Let torch import what the judge needs once, in the parent: in each child it would take time again."""
    one = torch.ones(1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        judge_call(torch.sin, torch.cos, (one,), {}, JudgeOptions(), {"x": one})


def _serve(connection: Connection, other_end: Connection, means: Means) -> None:
    """Answer examples until the parent closes its end; the child's whole life."""
    other_end.close()
    _end_with_the_parent()
    torch.set_num_threads(1)  # a fork has none of the threads that the parent's pool counts on, and would wait for them
    faulthandler.disable()  # the parent reports a crash, with its example
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)  # the parent handles interrupts, and kills this process
    logging.disable(logging.CRITICAL)
    warnings.simplefilter("ignore")  # generated programs warn of much
    with contextlib.suppress(EOFError, ConnectionError):
        while True:
            try:
                connection.send(_answer(means, *connection.recv()))
            except KeyboardInterrupt:
                connection.send(None)


def _end_with_the_parent() -> None:
    """Have the system end this process with its parent: an endless example looks at no connection."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_SIGNAL_AT_PARENTS_DEATH, signal.SIGKILL)


def _answer(means: Means, request: Any, backend: str) -> Any:
    """Return the example or the result that a request asks for."""
    if not isinstance(request, _Drawn):
        return _attempted(means.attempt, request, backend)
    assert means.draw is not None
    started = _cpu_seconds()
    if request.led is not None:
        trial = _led_answer(means, request, request.led, backend)
        if not isinstance(trial, TrialResult):
            return trial
    else:
        example = drawn_example(means.draw, request.seed, request.avoided)
        if not request.tried:
            return example
        trial = _with_example(_attempted(means.attempt, example, backend), example)
    return replace(trial, cpu_seconds=_cpu_seconds() - started)


def _with_example(trial: TrialResult, example: Any) -> TrialResult:
    return replace(trial, example=example) if trial.signature is not None and trial.example is None else trial


def _led_answer(means: Means, request: _Drawn, led: LedDraw, backend: str) -> Any:
    """Return the result, or only the example, of the choice that would do most that is new."""
    assert means.draw is not None
    best: tuple[int, Any, Behaviours, LineageDraws, str] | None = None
    for first in led.lineages():
        example, draws, lineage = _drawn_by_lineage(means.draw, first, request.avoided)
        foretold = means.foretell(example)
        worth = led.worth(foretold)
        if best is None or worth > best[0]:
            best = worth, example, foretold, draws, lineage
    assert best is not None
    _, example, foretold, draws, lineage = best
    if not request.tried:
        return example
    os.environ["PLUMBLINE_GRAPH_CACHE"] = "0"  # what an earlier campaign left there would be reached by nobody
    with reached_behaviours() as reached:
        trial = _with_example(_attempted(means.attempt, example, backend), example)
    return replace(trial, reached=foretold | reached, lineage=lineage, taken=draws.taken)


def drawn_example(draw: Draw, seed: str, avoided: Involved = ()) -> Any:
    """Return the example of a seed: the first that holds none of the avoided sets, or the last of a few attempts."""
    example, _, _ = _drawn_by_lineage(draw, seed, avoided)
    return example


def _drawn_by_lineage(draw: Draw, first: str, avoided: Involved) -> tuple[Any, LineageDraws, str]:
    """Return an example, the generator that drew it, and its lineage."""
    sets = [frozenset(one) for one in avoided if one]

    def is_avoided(names: frozenset[str]) -> bool:
        return any(one <= names for one in sets)

    for attempt in range(MOST_DRAWS):
        lineage = f"{first}:{attempt}"
        draws = LineageDraws(lineage)
        example = draw(draws, is_avoided)
        if not is_avoided(frozenset(example.names)):
            break
    return example, draws, lineage


def _cpu_seconds() -> float:
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def _attempted(attempt: Attempt, example: Any, backend: str) -> TrialResult:
    started = _cpu_seconds()
    try:
        trial = attempt(example, backend)
    except Exception as error:  # a failure of the judge must neither end a campaign nor pass unseen
        text = str(error).splitlines()[0][:200] if str(error) else ""
        trial = _crash("judge", type(error).__name__, f"raises {type(error).__name__}: {text}")
    left = clear_leftovers()
    raised = trial.signature is not None and trial.signature.aspect == "exceptions"
    cpu_seconds = _cpu_seconds() - started
    return replace(
        trial, notes=(*trial.notes, *left), tainted=trial.tainted or raised or bool(left), cpu_seconds=cpu_seconds
    )


def _crash(aspect: str, detail: str, sentence: str) -> TrialResult:
    finding = Finding(VerdictKind.CRASH, aspect, "the attempt", sentence)
    verdict = Verdict(VerdictKind.CRASH, f"the attempt {sentence}", (finding,))
    return TrialResult(verdict, FuzzSignature(VerdictKind.CRASH.value, aspect, detail), tainted=True)


def _death(status: int | None) -> str:
    if status is not None and status < 0:
        return signal.Signals(-status).name
    return f"exit status {status}"
