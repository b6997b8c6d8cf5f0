"""Results that take the memory of a tensor which their kernel is the last to read.

Each element is written where the only iteration that reads it has just read it.  That is so where a loop reads the old
tensor at exactly the offset of the store and at no other, visits no point twice (a vector step that overlaps the one
before would read what that has written), writes the result behind everything else, and reads nothing of it in a later
pass over the reduced points.  The kernel gets one pointer for both, so that its C says what it does.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ...base.bisecting.applications import Gate
from ...loops.body import Access
from ...loops.ir import Buffer, Loop, LoopProgram, LoopStore
from ...loops.phases import plan_phases
from ...schedule.execution_plan import ExecutionPlan, Segment
from ...symbolic.index_space import product
from ...symbolic.symbolic_sizes import divides
from ..flat_loops import flattened
from ..kernel_plan import values_of_pass
from ..kernel_shape import shape_kernel

FEWEST_BYTES = 64  # less is not worth another text of the kernel
_FRESH = ("mm", "addmm", "bmm", "baddbmm", "convolution", "convolution_backward")  # of ATen: memory of their own


def with_results_in_place(plan: ExecutionPlan, vector_bytes: int, gate: Gate | None = None) -> ExecutionPlan:
    """Return the plan with the results that take the memory of a tensor that ends; none where sizes are dynamic.

    vector_bytes: the width of a vector register.  gate: asked for each of them.
    """
    program = plan.program
    if program.sizes:
        return plan
    own = _own_tensors(program)
    chosen: dict[str, str] = {}
    for step, ends in zip(plan.steps, plan.ends, strict=True):
        if not isinstance(step, Segment):
            continue
        free = (own & set(ends)) - set(step.arena.offsets)
        last = {name: position for position, loop in enumerate(step.loops) for name in loop.reads | loop.writes}
        for position, loop in enumerate(step.loops):
            old = sorted(name for name in free & loop.reads if last[name] == position)
            pair = _pair(loop, old, program, step, vector_bytes)
            if pair is not None and _may(gate, *pair):
                chosen[pair[0]] = pair[1]
    return replace(plan, in_place=chosen)


def _may(gate: Gate | None, new: str, old: str) -> bool:
    return gate is None or gate.allows("reuse", f"put {new} into the memory of {old}", rule="in_place")


def _own_tensors(program: LoopProgram) -> set[str]:
    """Return tensors whose memory the program has made, and which no view shares: kernels' results, and some calls'."""
    own: set[str] = set()
    shared = set(program.output_names)
    for step in program.steps:
        if isinstance(step, Loop):
            own |= step.writes
        else:
            space, _, name = str(step.target).partition(".")
            shared |= {*step.alias_of, *step.mutates}
            if space != "aten" or name.startswith("unsafe_"):  # may give what it was given, and does not say so
                shared |= step.reads
            elif not step.alias_of and not step.ordered and name.partition(".")[0] in _FRESH:
                own |= step.writes
    return own - shared


def _pair(
    loop: Loop, old: list[str], program: LoopProgram, segment: Segment, vector_bytes: int
) -> tuple[str, str] | None:
    """Return a result of a loop and the tensor whose memory it may take."""
    if not old:
        return None
    flat = flattened(loop, program.buffers)
    for name in old:
        for store in flat.stores:
            new = store.access.buffer
            if new in segment.arena.offsets or not store.whole or not _fit(program, new, name, loop):
                continue
            places = [load.access for load in flat.loads() if load.access.buffer == name]
            alike = all(not place.looked_up and place.index == store.access.index for place in places)
            written, seen = as_written(loop, program.buffers, {new: name})
            if alike and _is_read_before(written, name) and _visits_once(written, seen, vector_bytes):
                return new, name
    return None


def _is_read_before(loop: Loop, old: str) -> bool:
    """Return whether no pass over the reduced points reads the old tensor behind the one that writes over it."""
    if not (loop.reduced or loop.reduces):
        return True
    phases = plan_phases(loop).phases
    stored = [number for number, phase in enumerate(phases) if loop.stores[-1] in phase.stores]
    read = [
        number
        for number, phase in enumerate(phases)
        if any(each.name == "load" and each.access.buffer == old for each in values_of_pass(phase))
    ]
    return len(stored) == 1 and max(read, default=0) <= stored[0]


def _visits_once(loop: Loop, buffers: Mapping[str, Buffer], vector_bytes: int) -> bool:
    shape = shape_kernel(loop, buffers, vector_bytes)
    return shape.tile is None and (shape.vector is None or divides(shape.lanes, shape.vector.size))


def _fit(program: LoopProgram, new: str, old: str, loop: Loop) -> bool:
    """Return whether a result has the elements of the old tensor in the same bytes, each written once."""
    one, other = program.buffers[new], program.buffers[old]
    same_bytes = one.dtype == other.dtype and one.span == other.span and not (one.offset or other.offset)
    if (
        not same_bytes
        or one.span != one.numel
        or one.span != product(each.size for each in (*loop.kept, *loop.reduced))
    ):
        return False
    if new in program.output_names and (one.shape, one.strides) != (other.shape, other.strides):
        return False  # what the caller gets is no view
    return isinstance(one.span, int) and one.span * one.dtype.itemsize >= FEWEST_BYTES


def as_written(
    loop: Loop, buffers: Mapping[str, Buffer], in_place: Mapping[str, str]
) -> tuple[Loop, Mapping[str, Buffer]]:
    """Return a loop, and the buffers as it sees them, with a result in place as a store to the old tensor, its last."""
    new = next((name for name in sorted(loop.writes) if name in in_place), None)
    if new is None:
        return loop, buffers
    old = in_place[new]
    seen = {name: Buffer(name, buffers[name].dtype, (buffers[name].span,), (1,)) for name in loop.reads | loop.writes}
    flat = flattened(loop, buffers)
    others = tuple(store for store in flat.stores if store.access.buffer != new)
    (store,) = (store for store in flat.stores if store.access.buffer == new)
    last = LoopStore(Access(old, store.access.index, store.access.looked_up), store.value)
    return Loop(flat.name, flat.kept, flat.reduced, (*others, last), flat.origins), seen


def taken_over(plan: ExecutionPlan, segment: Segment) -> list[tuple[str, str]]:
    """Return the results of a segment that are in place, in the order of its kernels, each with the old tensor."""
    written = [name for loop in segment.loops for name in sorted(loop.writes)]
    return [(name, plan.in_place[name]) for name in written if name in plan.in_place]
