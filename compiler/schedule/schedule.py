"""schedule(program) -> program: drop what nobody reads, join loops into kernels, keep the order sound.

The passes are one list; each takes a program and returns one with the same outputs.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace

from ..base.bisecting.applications import Gate, place_of_code
from ..base.errors import UserError
from ..base.events import FusionRefused, PassDone, is_recording, record
from ..base.options import Options
from ..base.seam import planting
from ..loops.body import Access, Scalar, ScalarBuilder, rebuild, walk
from ..loops.ir import Extern, Loop, LoopProgram, LoopStore, Step, index_symbols
from ..loops.scalar_ops import SCALAR_OPS
from ..loops.verify import verify
from ..symbolic.expr import ZERO, Expr, Symbol, is_zero, substitute, symbols
from ..symbolic.symbolic_sizes import same
from .fusion import SWITCHED_OFF, FusionDecision, merge
from .image_layouts import channels_innermost
from .single_terms import single_terms

Pass = Callable[[LoopProgram], LoopProgram]


def drop_unread(program: LoopProgram) -> LoopProgram:
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
            kept = (
                step
                if len(stores) == len(step.stores)
                else Loop(step.name, step.kept, step.reduced, stores, step.origins)
            )
            steps.append(kept)
            needed |= kept.reads
    return _with_steps(program, steps[::-1])


def inline_numbers(program: LoopProgram) -> LoopProgram:
    """Put numbers and index values into the loops that read them: a filled tensor needs no memory."""
    free: dict[str, tuple[Loop, LoopStore]] = {}
    steps: list[Step] = []
    for step in program.steps:
        if isinstance(step, Loop):
            if step.reads & set(free):
                step = _with_inlined(step, free)
            for store in step.stores:
                plain = store.whole and not step.reduces and all(s.name != "load" for s in walk([store.value]))
                if plain and not step.reduced and _is_plain_index(store.access):
                    free[store.access.buffer] = (step, store)
        elif step.mutates:
            free = {}  # it may write through a view, under another name
        steps.append(step)
    return _with_steps(program, steps)


def _is_plain_index(access: Access) -> bool:
    """Whether each dimension is one variable of its own, or has size one."""
    return all(
        (not part.terms and is_zero(part.constant))
        or (
            len(part.terms) == 1
            and same(part.terms[0][1], 1)
            and isinstance(part.terms[0][0], Symbol)
            and is_zero(part.constant)
        )
        for part in access.index
    )


def inline_cheap(program: LoopProgram) -> LoopProgram:
    """Recompute cheap elements where they are read instead of keeping them: reading two tensors costs what one does.

    Only values without reductions or elementary functions, made from at most two tensors of their own size.
    """
    shown = set(program.output_names)
    for step in program.steps:
        if isinstance(step, Extern):
            shown |= step.reads
    free: dict[str, tuple[Loop, LoopStore]] = {}
    steps: list[Step] = []
    for step in program.steps:
        if isinstance(step, Extern):
            if step.mutates:
                free = {}
            steps.append(step)
            continue
        if step.reads & set(free):
            step = _with_inlined(step, free)
        store = step.stores[0]
        if len(step.stores) == 1 and store.access.buffer not in shown and _is_cheap(step, store):
            free[store.access.buffer] = (step, store)
        steps.append(step)
    return _with_steps(program, steps)


def _is_cheap(loop: Loop, store: LoopStore) -> bool:
    if loop.reduced or loop.reduces or not store.whole or not _is_plain_index(store.access):
        return False
    scalars = list(loop.scalars())
    own = {symbol for symbol in loop.kept if not same(symbol.size, 1)}
    full = {scalar.access.buffer for scalar in scalars if scalar.name == "load" and own <= index_symbols(scalar.access)}
    plain = all(not scalar.args for scalar in scalars if scalar.name == "load")
    costly = any(scalar.name in SCALAR_OPS and SCALAR_OPS[scalar.name].costly for scalar in scalars)
    costly = costly or any(scalar.name == "sqrt" for scalar in scalars)  # not worth a row, yet slower than a read
    return plain and not costly and len(full) <= 2 and len(scalars) <= MOST_RECOMPUTED


def _with_inlined(loop: Loop, free: Mapping[str, tuple[Loop, LoopStore]]) -> Loop:
    """Return the loop with the elements of free tensors computed in place of their loads."""
    builder = ScalarBuilder()

    def replace(load: Scalar) -> Scalar | None:
        number = free.get(load.access.buffer)
        if number is None:
            return None
        source, store = number
        gate = _GATE.get()
        what = f"computed {load.access.buffer} where {_written(loop)} reads it"
        if gate is not None and not gate.allows("inlining", what, place=_place(source)):
            return None
        mapping = dict.fromkeys(source.kept, ZERO)
        for part, value in zip(store.access.index, load.access.index, strict=True):
            for atom, _ in part.terms:
                if isinstance(atom, Symbol):
                    mapping[atom] = value
        places = dict(zip(load.access.looked_up, load.args, strict=True))

        def look_up(inner: Scalar) -> Scalar:
            used = [symbol for symbol in places if any(symbol in symbols(part) for part in inner.access.index)]
            pairs = tuple((symbol, places[symbol]) for symbol in used)
            return builder.load(inner.access.buffer, inner.access.index, inner.dtype, pairs)

        if places and not _checks_places(store.value, mapping, frozenset(places)):
            return None
        return rebuild([store.value], builder, mapping, look_up)[0]

    values = rebuild([store.value for store in loop.stores], builder, {}, replace)
    stores = tuple(LoopStore(s.access, value, s.whole) for s, value in zip(loop.stores, values, strict=True))
    return Loop(loop.name, loop.kept, loop.reduced, stores, loop.origins)


def _checks_places(value: Scalar, mapping: Mapping[Symbol, Expr], places: frozenset[Symbol]) -> bool:
    """Whether every looked-up place is still the index of some load, which checks it, and of no index value."""
    checked: set[Symbol] = set()
    for scalar in walk([value]):
        if scalar.name == "load":
            for part in scalar.access.index:
                checked |= symbols(substitute(part, mapping)) & places
        elif scalar.name == "index" and symbols(substitute(scalar.expression, mapping)) & places:
            return False
    return checked == places


def join_forward(program: LoopProgram) -> LoopProgram:
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


def _join_into(groups: list[Step], first: int, loop: Loop, program: LoopProgram) -> int | None:
    """Try the kernels from the one that must be over, or be joined, to the last; return the one joined."""
    if first < len(groups) and isinstance(groups[first], Extern):
        first += 1
    order: list[int] = [first, *range(len(groups) - 1, first, -1)] if first < len(groups) else []
    for position in order:
        other = groups[position]
        if not isinstance(other, Loop) or not (other.reads | other.writes) & loop.reads:
            continue
        joined = merge(other, loop, program.buffers)
        if isinstance(joined, Loop) and not _may_join(other, loop):
            joined = SWITCHED_OFF
        if isinstance(joined, Loop):
            groups[position] = joined
            return position
        _refused(other, loop, joined)
    return None


def join_backward(program: LoopProgram) -> LoopProgram:
    """Move a kernel down into its first reader where that is allowed: producers kept apart by a call in between."""
    groups = list(program.steps)
    position = len(groups) - 1
    while position >= 0:
        step = groups[position]
        reader = _first_reader(groups, position) if isinstance(step, Loop) else None
        if reader is not None and isinstance(step, Loop):
            other = groups[reader]
            joined = merge(step, other, program.buffers) if isinstance(other, Loop) else None
            if isinstance(joined, Loop) and _may_join(step, other):
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


def _may_join(first: Loop, second: Step) -> bool:
    """Return whether nobody has switched off this fusion, which the rules allow."""
    gate = _GATE.get()
    return gate is None or gate.allows(
        "fusion", f"joined {_written(second)} into the loop of {_written(first)}", rule="merge", place=_place(second)
    )


def _written(step: Step) -> str:
    names = sorted(step.writes)
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")


def _place(step: Step) -> str:
    """Return the user's `file:line` of a step, which stands before its text; empty where it has none."""
    return step.origins[-1].partition("  ")[0] if step.origins else ""


def _refused(first: Loop, second: Loop, decision: FusionDecision) -> None:
    if is_recording():
        record(FusionRefused(first.name, second.name, decision.rule, decision.why))


def _with_steps(program: LoopProgram, steps: list[Step]) -> LoopProgram:
    return replace(program, steps=tuple(steps))


PASSES: tuple[Pass, ...] = (
    inline_numbers,  # first: what is filled with a number leaves no tensor behind
    inline_cheap,  # before joining: what two kernels would share is computed in both
    drop_unread,  # before joining: dead loops must not hold others together
    join_forward,  # producers and consumers, and loops that read the same tensors
    join_backward,  # after joining forward: what is left alone may go down to its only reader
    drop_unread,  # joined readers no longer need the tensor in memory
    single_terms,  # after that: what a sum is of stands beside it, and nobody else reads the sum
    channels_innermost,  # last: what is left in memory lies as it is read fastest
)
MOST_RECOMPUTED = 12  # values per element that are computed again rather than kept
UNFUSED: tuple[Pass, ...] = (drop_unread,)
_GATE: ContextVar[Gate | None] = ContextVar("gate", default=None)  # passes take a program and give one: no place for it
_REPLACED: ContextVar[dict[str, Pass]] = ContextVar("replaced_passes", default={})  # noqa: B039  never mutated, only replaced


@contextmanager
def replace_pass(name: str, function: Pass) -> Iterator[None]:
    """Put another scheduling pass in force inside the block: how tests plant a fault.

    name: one of `inline_numbers`, `inline_cheap`, `drop_unread`, `join_forward`, `join_backward`,
    `single_terms`, `channels_innermost`.
    Raises UserError for another name.
    """
    known = sorted({each.__name__ for each in PASSES})
    if name not in known:
        raise UserError(f"no pass is named {name!r}", hint=f"one of: {', '.join(known)}")
    token = _REPLACED.set({**_REPLACED.get(), name: function})
    try:
        with planting():
            yield
    finally:
        _REPLACED.reset(token)


def schedule(program: LoopProgram, options: Options, gate: Gate | None = None) -> LoopProgram:
    """Return the program as kernels in order; every pass is checked where options ask for it, and recorded.

    gate: asked for each pass, and by passes for each fusion and each value that is computed where it is read.
    """
    for name, run in passes_in_force(options):
        what = f"{name} on the loops of {gate.graph}" if gate is not None else ""
        if gate is not None and not gate.allows("loop-pass", what, rule=name, where=place_of_code(run)):
            continue
        start = time.perf_counter()
        before, program = program, _run_pass(run, program, gate)
        seconds = time.perf_counter() - start
        if options.verify:
            verify(program, name, before)
        record(PassDone("schedule", name, len(before.steps), len(program.steps), seconds))
    return program


def _run_pass(run: Pass, program: LoopProgram, gate: Gate | None) -> LoopProgram:
    if gate is None:
        return run(program)
    token = _GATE.set(gate)
    try:
        return run(program)
    finally:
        _GATE.reset(token)


def passes_in_force(options: Options) -> tuple[tuple[str, Pass], ...]:
    """Return the passes in order, planted ones in their places, each with the name of the place."""
    chosen = PASSES if options.fuse else UNFUSED
    return tuple((each.__name__, _REPLACED.get().get(each.__name__, each)) for each in chosen)
