"""In which pieces a program runs: kernels between two ATen calls at once, and how long each tensor is needed.

`plan_execution` is pure; the host text and the C file are written from its plan.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..loops.ir import Buffer, Extern, Loop, LoopProgram
from .memory_plan import Lifetime, MemoryPlan, plan_memory


@dataclass(frozen=True, slots=True, eq=False)
class Segment:
    """A run of kernels called at once.

    parameters: the tensors passed.  arena: the place of those that nothing outside the segment sees.
    """

    loops: tuple[Loop, ...]
    parameters: tuple[str, ...]
    arena: MemoryPlan


@dataclass(frozen=True, slots=True, eq=False)
class ExecutionPlan:
    """The steps of a program in order; ends: per step, the tensors that nobody needs after it."""

    program: LoopProgram
    steps: tuple[Segment | Extern, ...]
    ends: tuple[tuple[str, ...], ...]

    @property
    def segments(self) -> tuple[Segment, ...]:
        """The runs of kernels, in order."""
        return tuple(step for step in self.steps if isinstance(step, Segment))


def plan_execution(program: LoopProgram) -> ExecutionPlan:
    """Gather neighbouring kernels, and place the tensors that live inside one segment only."""
    runs = _runs(program)
    shared = _shared_tensors(program, runs)
    steps = [run if isinstance(run, Extern) else _segment(run, shared, program.buffers) for run in runs]
    last_uses = _last_uses(program, runs)
    ends = tuple(
        tuple(sorted(name for name, position in last_uses.items() if position == number and name in shared))
        for number in range(len(runs))
    )
    return ExecutionPlan(program, tuple(steps), ends)


def _runs(program: LoopProgram) -> list[tuple[Loop, ...] | Extern]:
    """Return steps with neighbouring loops gathered; those without points are left out."""
    result: list[tuple[Loop, ...] | Extern] = []
    for step in program.steps:
        if isinstance(step, Extern):
            result.append(step)
        elif not all(symbol.size for symbol in step.kept):
            continue
        elif result and isinstance(result[-1], tuple):
            result[-1] = (*result[-1], step)
        else:
            result.append((step,))
    return result


def _shared_tensors(program: LoopProgram, runs: Sequence[tuple[Loop, ...] | Extern]) -> set[str]:
    """Return names that must be real tensors: seen by the caller, by ATen, or by more than one segment."""
    shared = set(program.inputs) | set(program.constants) | set(program.output_names)
    seen: dict[str, int] = {}
    for number, run in enumerate(runs):
        if isinstance(run, Extern):
            shared |= run.reads | run.writes
            continue
        for loop in run:
            for name in loop.reads | loop.writes:
                if seen.setdefault(name, number) != number:
                    shared.add(name)
    return shared


def _last_uses(program: LoopProgram, runs: Sequence[tuple[Loop, ...] | Extern]) -> dict[str, int]:
    last: dict[str, int] = {}
    outside = set(program.inputs) | set(program.constants) | set(program.output_names)
    for number, run in enumerate(runs):
        for step in (run,) if isinstance(run, Extern) else run:
            for name in (step.reads | step.writes) - outside:
                last[name] = number
    return last


def _segment(run: tuple[Loop, ...], shared: set[str], buffers: dict[str, Buffer]) -> Segment:
    first: dict[str, int] = {}
    last: dict[str, int] = {}
    for number, loop in enumerate(run):
        for name in loop.reads | loop.writes:
            first.setdefault(name, number)
            last[name] = number
    lifetimes = [
        Lifetime(name, buffers[name].span * buffers[name].dtype.itemsize, first[name], last[name])
        for name in sorted(set(first) - shared)
    ]
    return Segment(run, tuple(sorted(first)), plan_memory(lifetimes))
