"""What is decided of a kernel before a line of it is written: its passes, its rows in memory, and what threads share.

`plan_kernel` is pure.  The writers of passes, columns, values, reductions and stores follow the plan.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ..loops.body import Scalar
from ..loops.ir import Buffer, Loop
from ..loops.phases import Phase, Plan, plan_phases, roots_of
from ..loops.scalar_ops import SCALAR_OPS
from ..symbolic.expr import Symbol
from ..symbolic.symbolic_sizes import Extent, Size, floor_quotient, hint_of, larger
from .c_types import REGISTER, WIDTH
from .flat_loops import depending_on
from .kernel_shape import KernelShape, shape_kernel

COLUMNS = 1024  # columns whose accumulators are in memory together
MOST_ROW_BYTES = 32 * 1024  # a stashed row should stay in the first-level cache
POINTS_PER_THREAD = 16_384  # fewer are not worth waking a thread: a region costs about as much as this many additions


@dataclass(frozen=True, slots=True, eq=False)
class Stashes:
    """Costly values that two passes need, each kept in a row of its own.

    rooms: the elements that such a row has room for, by id of the value.  points: how many it is to hold; where they
    are dynamic, the kernel serves calls with at most `most`.
    """

    points: Extent = 0
    most: int = MOST_ROW_BYTES
    rooms: dict[int, int] = field(default_factory=dict)

    @property
    def are_dynamic(self) -> bool:
        """Whether there are rows whose length is known only when the kernel runs."""
        return bool(self.rooms) and isinstance(self.points, Size)


@dataclass(frozen=True, slots=True, eq=False)
class KernelPlan:
    """A kernel as it is to be written.

    inner: ids of values that differ between points of the inner loops (for pointwise loops: the last variable).
    number: of each value, by its id.  buffer_order: the buffers, in the order in which the kernel takes them.
    chunks: the variable that counts groups of columns, where rows are read whole with a row of accumulators per group.
    shared: the variable whose loop threads share.
    """

    shape: KernelShape
    passes: Plan
    inner: frozenset[int]
    number: dict[int, int]
    buffer_order: tuple[str, ...]
    stashes: Stashes
    chunks: Symbol | None
    shared: Symbol | None


@dataclass(frozen=True, slots=True)
class LeftOut:
    """What a kernel does without.

    vectors: one element at a time.  rows: no rows of values; dynamic_rows: none of dynamic length.  threads: one only.
    """

    vectors: bool = False
    rows: bool = False
    dynamic_rows: bool = False
    threads: bool = False


NOTHING_LEFT_OUT = LeftOut()


def plan_kernel(
    loop: Loop,
    buffers: Mapping[str, Buffer],
    vector_bytes: int,
    threads: int,
    without: LeftOut = NOTHING_LEFT_OUT,
) -> KernelPlan:
    """Decide how a loop is written.

    vector_bytes: the width of a vector register.  threads: the most that may share the kernel, 0 for as many as torch
    uses.
    """
    shape = shape_kernel(loop, buffers, vector_bytes, scalar=without.vectors)
    loop = shape.loop
    passes = _passes(loop)
    inner = passes.inner if loop.reduced or loop.reduces else depending_on(loop, frozenset(shape.inner))
    # in order of use and not of names, so that equal kernels have equal texts
    named = [store.access.buffer for store in loop.stores] + [load.access.buffer for load in loop.loads()]
    chunks = _chunks(shape, passes)
    return KernelPlan(
        shape,
        passes,
        inner,
        {id(each): position for position, each in enumerate(loop.scalars())},
        tuple(dict.fromkeys(named)),
        Stashes() if without.rows else _stashes(shape, passes, inner, dynamic=not without.dynamic_rows),
        chunks,
        _shared(shape, chunks, 1 if without.threads else threads),
    )


def _passes(loop: Loop) -> Plan:
    """Return the passes of a loop; one without reduced variables is a single pass over its last variable."""
    plan = plan_phases(loop)
    if loop.reduced or loop.reduces:
        return plan
    return Plan((Phase((), loop.stores),), plan.level, plan.inner, ())


def _chunks(shape: KernelShape, passes: Plan) -> Symbol | None:
    """Return the variable that counts groups of columns: where there are many, reduced in one pass."""
    vector = shape.vector
    if vector is None or not shape.columns or not shape.inner or len(passes.phases) != 1:
        return None
    if hint_of(vector.size) <= 4 * shape.lanes:
        return None
    return Symbol("chunk", larger(floor_quotient(shape.outer[-1].size, COLUMNS), 1))


def _stashes(shape: KernelShape, passes: Plan, inner: frozenset[int], *, dynamic: bool) -> Stashes:
    """Choose the values that get a row of their own; dynamic: rows of dynamic length may be kept."""
    counts: dict[int, int] = {}
    scalars: dict[int, Scalar] = {}
    for phase in passes.phases:
        for each in values_of_pass(phase):
            counts[id(each)] = counts.get(id(each), 0) + 1
            scalars[id(each)] = each
    points = shape.pass_points * (shape.lanes if shape.columns else 1)
    if isinstance(points, Size) and not dynamic:
        return Stashes()
    limit, rooms = MOST_ROW_BYTES, {}
    for key, count in counts.items():
        op = SCALAR_OPS.get(scalars[key].name)
        if count < 2 or key not in inner or op is None or not op.costly:
            continue
        most = MOST_ROW_BYTES // WIDTH[REGISTER[scalars[key].dtype]]
        if isinstance(points, Size):
            limit = min(limit, most)
        elif points > most:
            continue
        rooms[key] = most if isinstance(points, Size) else points
    return Stashes(points, limit, rooms)


def values_of_pass(phase: Phase) -> list[Scalar]:
    """Return the values that a pass needs; what earlier passes reduced is not counted, nor what leads to it."""
    seen: dict[int, Scalar] = {}
    stack = list(roots_of(phase))
    while stack:
        scalar = stack.pop()
        if scalar.name == "reduce" or id(scalar) in seen:
            continue
        seen[id(scalar)] = scalar
        stack.extend(scalar.args)
    return list(seen.values())


def _shared(shape: KernelShape, chunks: Symbol | None, threads: int) -> Symbol | None:
    """Return the variable whose loop is shared out, or None where the kernel is too small or has no such loop."""
    if threads == 1 or (isinstance(shape.points, int) and shape.points < 2 * POINTS_PER_THREAD):
        return None  # where sizes are dynamic, each call decides
    if shape.outer:
        candidate = shape.outer[0]
    elif shape.inner and not shape.loop.reduced and not shape.loop.reduces:
        candidate = shape.inner[0]
    else:
        return None
    if not isinstance(candidate.size, Size) and candidate.size <= 1:
        return None
    if chunks is None or len(shape.outer) > 1:
        return candidate
    return chunks if hint_of(chunks.size) > 1 else None
