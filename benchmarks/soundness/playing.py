"""One program played plain and judged: what the judge says of it, and whether judging it changed what it does.

A program is a function of `call`, and writes `call(f, x)` where a user calls compiled code.  Played plain, `call` only
calls; judged, it judges the call and hands on what the judge gives back.
"""

import hashlib
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy
import torch

from plumbline.oracle.harness.boundary import Boundary, call_roots, name_apart
from plumbline.oracle.harness.compilers import CompileRequest
from plumbline.oracle.harness.known_compilers import find_compiler
from plumbline.oracle.judge import Judgement, judge_call
from plumbline.oracle.judge_options import JudgeOptions
from plumbline.oracle.state.process_state import ProcessState
from plumbline.oracle.state.unwritten_memory import FILLINGS, FilledMemory
from plumbline.oracle.verdict import Verdict, VerdictKind

from .fingerprints import Fingerprints, first_difference

Call = Callable[..., Any]
ALARMS = (VerdictKind.JUDGE_FAILED, VerdictKind.UNSTABLE)
"""What a sound program may not be told either, besides the kinds that fail a test."""
MOST_SENTENCE = 600
OPTIONS = JudgeOptions()


@dataclass(frozen=True, slots=True)
class SoundProgram:
    """A program that is right.  dtype: torch's default while it is played, None to leave that alone."""

    name: str
    play: Callable[[Call], Any]
    dtype: torch.dtype | None = None


@dataclass(slots=True)
class _Judged:
    """Judges each call against the same function."""

    verdicts: list[Verdict] = field(default_factory=list)

    def __call__(self, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        roots = call_roots(function, "function", args, kwargs)
        roots[name_apart("compiled", roots)] = function
        return self._said(judge_call(function, function, args, kwargs, OPTIONS, roots))

    def _said(self, judgement: Judgement) -> Any:
        self.verdicts.append(judgement.verdict)
        return judgement.unwrap()


@dataclass(slots=True)
class _Compiled(_Judged):
    """Compiles each function once, and judges its calls."""

    compiler: str = ""
    backend: str = ""
    boundaries: dict[int, Boundary] = field(default_factory=dict)

    def __call__(self, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        boundary = self.boundaries.get(id(function))
        if boundary is None:
            under_test = find_compiler(self.compiler, self.backend)
            boundary = Boundary(function, "function", CompileRequest(), under_test, self.backend, OPTIONS)
            self.boundaries[id(function)] = boundary
        judgement = boundary.call(args, kwargs)
        return boundary.run_unjudged(args, kwargs) if judgement is None else self._said(judgement)


def identity_rows(program: SoundProgram) -> dict[str, Any]:
    """Play a program plain and judged from equal states, and return its row."""
    judged = _Judged()
    expected = _played(program, _plain)
    actual = _played(program, judged)
    changed = first_difference(expected, actual)
    if changed and (first_difference(expected, _played(program, _plain)) or _reads_unwritten_memory(program)):
        changed = ""  # plain runs differ among themselves: time, addresses, memory that nobody wrote
    return _row(program, judged.verdicts, changed)


def pair_rows(program: SoundProgram, compiler: str, backend: str) -> dict[str, Any]:
    """Play a program with a real compiler, every call judged, and return its row."""
    under_test = find_compiler(compiler, backend)
    under_test.reset()
    judged = _Compiled(compiler=compiler, backend=backend)
    _played(program, judged)
    under_test.reset()
    return _row(program, judged.verdicts, "")


def _reads_unwritten_memory(program: SoundProgram) -> bool:
    """Return whether a plain run leaves what lay in memory that it made and did not write."""
    plays = []
    for number in FILLINGS:
        with FilledMemory(number):
            plays.append(_played(program, _plain))
    return bool(first_difference(*plays))


def _plain(function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
    return function(*args, **kwargs)


def _played(program: SoundProgram, call: Call) -> list[object]:
    """Play once from seeded generators and return what it left, as plain data; puts back the state of the process."""
    before = ProcessState.now()
    random.seed(0)
    numpy.random.seed(0)
    torch.manual_seed(0)
    if program.dtype is not None:
        torch.set_default_dtype(program.dtype)
    try:
        result: tuple[str, Any] = ("returns", program.play(call))
    except Exception as error:
        result = ("raises", (type(error).__name__, str(error)))
    after = ProcessState.now()
    drawn = (torch.get_rng_state(), repr(random.getstate()), repr(numpy.random.get_state()))
    before.restore()
    prints = Fingerprints()
    return [*prints.of(result), *prints.of(drawn), *prints.of(dict(after.values))]


def _row(program: SoundProgram, verdicts: list[Verdict], changed: str) -> dict[str, Any]:
    alarms = [verdict for verdict in verdicts if verdict.failed or verdict.kind in ALARMS]
    heaviest = max(verdicts, key=lambda verdict: verdict.kind.weight, default=None)
    return {
        "program": program.name,
        "calls": len(verdicts),
        "verdict": heaviest.kind.value if heaviest else "NOT CALLED",
        "alarm": _said(alarms[0]) if alarms else "",
        "changed": changed[:MOST_SENTENCE],
    }


def _said(verdict: Verdict) -> str:
    return "\n".join([str(verdict)[:MOST_SENTENCE], *(verdict.notes if verdict.kind in ALARMS else ())])


def seed_of(*parts: object) -> int:
    """Return a seed that depends on the parts alone."""
    text = "|".join(map(str, parts))
    return int.from_bytes(hashlib.blake2s(text.encode(), digest_size=6).digest(), "big")


def in_dtypes(name: str, play: Callable[[Call], Any]) -> Iterator[SoundProgram]:
    """Yield a program in float32 and in bfloat16."""
    for dtype in (torch.float32, torch.bfloat16):
        yield SoundProgram(f"{name} {str(dtype).removeprefix('torch.')}", play, dtype)
