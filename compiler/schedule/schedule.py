"""schedule(program) -> program: drop what nobody reads, join loops into kernels, keep the order sound.

The passes are one list; each takes a program and returns one with the same outputs.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from ..base.errors import UserError
from ..base.events import FusionRefused, PassDone, is_recording, record
from ..base.options import Options
from ..loops.ir import Extern, Loop, Program, Step
from ..loops.verify import verify
from .fusion import FusionDecision, merge

Pass = Callable[[Program], Program]


def drop_unread(program: Program) -> Program:
    """Remove stores to tensors that no later step and no output needs, and steps left without any effect."""
    needed = set(program.output_names)
    steps: list[Step] = []
    for step in reversed(program.steps):
        if isinstance(step, Extern):
            if step.ordered or step.writes & needed:
                steps.append(step)
                needed |= step.reads
            continue
        stores = tuple(store for store in step.stores if store.access.buffer in needed)
        if stores:
            kept = step if len(stores) == len(step.stores) else Loop(
                step.name, step.kept, step.reduced, stores, step.origins
            )  # fmt: skip
            steps.append(kept)
            needed |= kept.reads
    return _with_steps(program, steps[::-1])


def join_forward(program: Program) -> Program:
    """Join each loop to the earliest kernel that may run it: the one that makes its inputs, or one that reads them."""
    groups: list[Step] = []
    made_at: dict[str, int] = {}
    barrier = 0
    for step in program.steps:
        first = max([made_at[name] for name in step.reads if name in made_at], default=0)
        first = max(first, barrier)
        place = _join_into(groups, first, step, program) if isinstance(step, Loop) else None
        if place is None:
            place = len(groups)
            groups.append(step)
        for name in step.writes:
            made_at[name] = max(place, made_at.get(name, 0))
        if isinstance(step, Extern) and step.mutates:
            barrier = len(groups)
    return _with_steps(program, groups)


def _join_into(groups: list[Step], first: int, loop: Loop, program: Program) -> int | None:
    """Try the kernels from the one that must be over, or be joined, to the last; return the one joined."""
    if first < len(groups) and (groups_first := groups[first]) and isinstance(groups_first, Extern):
        if groups_first.writes & loop.reads:
            first += 1
    order = [first, *range(len(groups) - 1, first, -1)] if first < len(groups) else []
    for position in order:
        other = groups[position]
        if not isinstance(other, Loop) or not (other.reads | other.writes) & loop.reads:
            continue
        joined = merge(other, loop, program.buffers)
        if isinstance(joined, Loop):
            groups[position] = joined
            return position
        _refused(other, loop, joined)
    return None


def join_backward(program: Program) -> Program:
    """Move a kernel down into its first reader where that is allowed: producers kept apart by a call in between."""
    groups = list(program.steps)
    position = len(groups) - 1
    while position >= 0:
        step = groups[position]
        reader = _first_reader(groups, position) if isinstance(step, Loop) else None
        if reader is not None and isinstance(step, Loop):
            other = groups[reader]
            joined = merge(step, other, program.buffers) if isinstance(other, Loop) else None
            if isinstance(joined, Loop):
                groups[reader] = joined
                del groups[position]
        position -= 1
    return _with_steps(program, groups)


def _first_reader(groups: list[Step], position: int) -> int | None:
    """Return the first step that needs what this one writes; None where a mutation lies between."""
    step = groups[position]
    for later in range(position + 1, len(groups)):
        other = groups[later]
        if step.writes & (other.reads | other.writes):
            return later
        if isinstance(other, Extern) and other.mutates:
            return None
    return None


def _refused(first: Loop, second: Loop, decision: FusionDecision) -> None:
    if is_recording():
        record(FusionRefused(first.name, second.name, decision.rule, decision.why))


def _with_steps(program: Program, steps: list[Step]) -> Program:
    return Program(program.inputs, program.buffers, tuple(steps), program.outputs, program.constants)


PASSES: tuple[Pass, ...] = (
    drop_unread,  # first: dead loops must not hold others together
    join_forward,  # producers and consumers, and loops that read the same tensors
    join_backward,  # after joining forward: what is left alone may go down to its only reader
    drop_unread,  # joined readers no longer need the tensor in memory
)
UNFUSED: tuple[Pass, ...] = (drop_unread,)
_REPLACED: ContextVar[dict[str, Pass]] = ContextVar("replaced_passes", default={})  # noqa: B039  never mutated, only replaced


@contextmanager
def replace_pass(name: str, function: Pass) -> Iterator[None]:
    """Put another scheduling pass in force inside the block: how tests plant a fault.

    name: one of `drop_unread`, `join_forward`, `join_backward`.  Raises UserError for another name.
    """
    known = sorted({each.__name__ for each in PASSES})
    if name not in known:
        raise UserError(f"no pass is named {name!r}", hint=f"one of: {', '.join(known)}")
    token = _REPLACED.set({**_REPLACED.get(), name: function})
    try:
        yield
    finally:
        _REPLACED.reset(token)


def replaced_pass_names() -> tuple[str, ...]:
    """Return the names of passes that are replaced here; part of every cache key."""
    return tuple(sorted(_REPLACED.get()))


def schedule(program: Program, options: Options) -> Program:
    """Return the program as kernels in order; every pass is recorded, and checked where options ask for it."""
    for each in PASSES if options.fuse else UNFUSED:
        run = _REPLACED.get().get(each.__name__, each)
        start = time.perf_counter()
        before = len(program.steps)
        program = run(program)
        record(PassDone("schedule", each.__name__, before, len(program.steps), time.perf_counter() - start))
        if options.verify:
            verify(program, each.__name__)
    return program
