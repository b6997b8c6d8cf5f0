"""In which pieces a program runs: kernels between two ATen calls at once, and how long each tensor is needed.

`plan_execution` is pure; the host text and the C file are written from its plan.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from ..base.bisecting.applications import Gate
from ..loops.ir import Buffer, Extern, Loop, LoopProgram, Ref, Step
from ..loops.loop_interpreter import InterpretedLoop
from .memory_plan import Lifetime, MemoryPlan, plan_memory, with_own_places


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
    """The steps of a program in order.

    ends: per step, the tensors that nobody needs after it, inputs among them.  unread: inputs that no step needs.
    in_place: results, each with the tensor whose memory it takes while it is written.
    """

    program: LoopProgram
    steps: tuple[Segment | Extern, ...]
    ends: tuple[tuple[str, ...], ...]
    unread: tuple[str, ...]
    in_place: Mapping[str, str] = field(default_factory=dict)

    @property
    def segments(self) -> tuple[Segment, ...]:
        """The runs of kernels, in order."""
        return tuple(step for step in self.steps if isinstance(step, Segment))


def plan_execution(program: LoopProgram, gate: Gate | None = None, *, apart: bool = False) -> ExecutionPlan:
    """Gather neighbouring kernels, and place the tensors that live inside one segment only.

    gate: asked for each loop that becomes a kernel, and for each tensor that takes memory which another had.
    apart: each kernel is a segment of its own, so that it can be timed.
    """
    if gate is not None and not program.sizes:
        program = replace(program, steps=tuple(_kernel_or_not(step, program, gate) for step in program.steps))
    runs = _runs(program, apart=apart)
    shared = _shared_tensors(program, runs)
    steps = [run if isinstance(run, Extern) else _segment(run, shared, program.buffers, gate) for run in runs]
    last_uses = _last_uses(program, runs)
    ends: list[list[str]] = [[] for _ in runs]
    for name in sorted(shared & last_uses.keys()):
        ends[last_uses[name]].append(name)
    unread = [name for name in program.inputs if name not in last_uses and name not in program.output_names]
    return ExecutionPlan(program, tuple(steps), tuple(map(tuple, ends)), tuple(unread))


def _kernel_or_not(step: Step, program: LoopProgram, gate: Gate) -> Step:
    """Return a step; where its kernel is switched off, a call of what runs the loop in Python."""
    if isinstance(step, Extern) or not all(symbol.size for symbol in step.kept):
        return step
    if not all(store.whole for store in step.stores):  # a piece of a tensor, which other kernels fill too
        return step
    place = step.origins[-1].partition("  ")[0] if step.origins else ""
    reads, writes = sorted(step.reads - step.writes), sorted(step.writes)
    if gate.allows("kernel", f"ran {step.name} as C", rule="kernel", place=place):
        return step
    run = InterpretedLoop(
        step, {name: program.buffers[name] for name in (*reads, *writes)}, tuple(reads), tuple(writes)
    )
    arguments = tuple(Ref(name) for name in reads)
    return Extern(f"run_{step.name}", run, arguments, {}, tuple(writes), single=False, origins=step.origins)


def _runs(program: LoopProgram, *, apart: bool) -> list[tuple[Loop, ...] | Extern]:
    """Return steps with neighbouring loops gathered; those without points are left out."""
    result: list[tuple[Loop, ...] | Extern] = []
    for step in program.steps:
        if isinstance(step, Extern):
            result.append(step)
        elif not all(symbol.size for symbol in step.kept):
            continue
        elif result and isinstance(result[-1], tuple) and not apart:
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
    outside = set(program.constants) | set(program.output_names)
    for number, run in enumerate(runs):
        for step in (run,) if isinstance(run, Extern) else run:
            for name in (step.reads | step.writes) - outside:
                last[name] = number
    return last


def _segment(run: tuple[Loop, ...], shared: set[str], buffers: dict[str, Buffer], gate: Gate | None) -> Segment:
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
    arena = plan_memory(lifetimes)
    return Segment(run, tuple(sorted(first)), arena if gate is None else with_own_places(arena, lifetimes, gate))
