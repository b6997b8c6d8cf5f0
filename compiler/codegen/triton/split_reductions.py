"""Long reductions cut into parts that programs of their own reduce, and a second kernel that joins the parts in order.

One program per row leaves most of a GPU idle where rows are few and long.  A loop becomes up to three: partial results
of each part, their reduction, and what needs the result.  All are loops like others: no atomics, so the order of
additions is fixed; and how many parts there are depends on the length of the reduction alone, so that the same row
gives the same bits in every batch.  A length that has no divisor near the number of parts leaves a shorter last part,
which is a loop of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import torch

from ...loops.body import Access, Scalar, ScalarBuilder, rebuild, walk
from ...loops.ir import Buffer, Loop, LoopProgram, LoopStore
from ...loops.phases import Plan, plan_phases
from ...symbolic.expr import Expr, Symbol, as_expr, constant, scale
from ...symbolic.expr import substitute as substituted
from ...symbolic.index_space import product, row_major
from ..flat_loops import flattened, merged, ordered
from .tiles import parts_of_reduction, reads_columns


@dataclass(frozen=True, slots=True)
class Cut:
    """How one reduced variable is cut: into so many parts of a size, and a rest that is shorter."""

    variable: Symbol
    parts: int
    size: int
    rest: int

    @property
    def partials(self) -> int:
        """How many partial results there are."""
        return self.parts + (1 if self.rest else 0)


def with_split_reductions(program: LoopProgram) -> LoopProgram:
    """Return the program with its long reductions cut into parts; others, and those of dynamic length, stay."""
    buffers = dict(program.buffers)
    steps = [part for step in program.steps for part in (_split(step, buffers) if isinstance(step, Loop) else (step,))]
    return replace(program, buffers=buffers, steps=tuple(steps))


def _split(loop: Loop, buffers: dict[str, Buffer]) -> list[Loop]:
    """Return the loops that do what one does; buffers: those of the program, where partial results are added."""
    cut = cut_of(loop, buffers)
    if cut is None:
        return [loop]
    splitting = _Splitting(loop, cut, buffers)
    return [*splitting.partial_loops(), *(later for each in splitting.later_loops() for later in _split(each, buffers))]


def cut_of(loop: Loop, buffers: Mapping[str, Buffer]) -> Cut | None:
    """Return how a loop is cut; None where it is left whole."""
    length = product(symbol.size for symbol in loop.reduced)
    if not loop.reduces or loop.scans or not isinstance(length, int) or not length or loop.reads & loop.writes:
        return None
    if not plan_phases(loop).phases[0].reductions:
        return None
    flat = flattened(loop, buffers)
    joined = merged(flat)
    wanted = parts_of_reduction(length, columns=reads_columns(joined, *ordered(joined)))
    if wanted < 2:
        return None
    sizes = {symbol: symbol.size for symbol in ordered(flat)[1] if isinstance(symbol.size, int)}
    variable = next((symbol for symbol, size in sizes.items() if size >= 2 * wanted), None)
    if variable is None:
        variable = max(sizes, key=lambda symbol: sizes[symbol])
    whole = sizes[variable]
    wanted = min(wanted, whole // 2)
    if wanted < 2:
        return None
    parts = _divisor_near(whole, wanted) or wanted
    return Cut(variable, parts, whole // parts, whole % parts)


def _divisor_near(number: int, wanted: int) -> int | None:
    """Return the divisor of a number that is nearest to another one, between half and twice as large."""
    near = sorted(range(max(2, wanted // 2), 2 * wanted + 1), key=lambda each: abs(each - wanted))
    return next((each for each in near if number % each == 0), None)


class _Splitting:
    """One loop that is cut."""

    def __init__(self, loop: Loop, cut: Cut, buffers: dict[str, Buffer]) -> None:
        self.loop, self.cut, self.buffers = loop, cut, buffers
        self.plan: Plan = plan_phases(loop)
        self.first = self.plan.phases[0].reductions
        self.place = tuple(as_expr(symbol) for symbol in loop.kept)
        self.partial = [self._partial_buffers(reduction) for reduction in self.first]

    def _buffer(self, name: str, dtype: torch.dtype, count: int | None) -> Buffer:
        """Declare a tensor of one value per kept point, and for each of so many parts; returns it."""
        while name in self.buffers:
            name += "_"
        shape = (*(() if count is None else (count,)), *(symbol.size for symbol in self.loop.kept))
        buffer = self.buffers[name] = Buffer(name, dtype, shape, row_major(shape))
        return buffer

    def _partial_buffers(self, reduction: Scalar) -> tuple[Buffer, ...]:
        """Declare where the parts of a reduction are kept: of a place, the extreme of each part comes first."""
        name = f"{self.loop.name}_parts_{len(self.buffers)}"
        result = self._buffer(name, reduction.dtype, self.cut.partials)
        if not reduction.kind.startswith("arg"):
            return (result,)
        return self._buffer(f"{name}_best", reduction.args[0].dtype, self.cut.partials), result

    # -- the parts -----------------------------------------------------------------------------------------------------

    def partial_loops(self) -> Iterator[Loop]:
        """Yield the loop over all parts of one size, and the one over the rest."""
        old, cut = self.cut.variable, self.cut
        part, inside = Symbol(f"{old.name}p", cut.parts), Symbol(f"{old.name}q", cut.size)
        yield self._partial_loop("parts", (part,), as_expr(part), inside, scale(as_expr(part), cut.size))
        if cut.rest:
            inside = Symbol(f"{old.name}q", cut.rest)
            yield self._partial_loop("rest", (), constant(cut.parts), inside, constant(cut.parts * cut.size))

    def _partial_loop(self, name: str, further: tuple[Symbol, ...], part: Expr, inside: Symbol, start: Expr) -> Loop:
        mapping = {self.cut.variable: start + as_expr(inside)}
        builder, pieces = ScalarBuilder(), bool(self.cut.rest)
        stores: list[LoopStore] = []
        for reduction, kept in zip(self.first, self.partial, strict=True):
            args = rebuild(reduction.args, builder, mapping)
            values = [builder.make("reduce", tuple(args), reduction.dtype, reduction.kind, reduction.origin)]
            if len(kept) > 1:
                extreme = reduction.kind.removeprefix("arg")
                values.insert(0, builder.make("reduce", (args[0],), args[0].dtype, extreme, reduction.origin))
            for buffer, value in zip(kept, values, strict=True):
                stores.append(LoopStore(Access(buffer.name, (part, *self.place)), value, not pieces))
        for store in self.plan.phases[0].stores:
            (value,) = rebuild([store.value], builder, mapping)
            stores.append(LoopStore(_moved(store.access, mapping), value, store.whole and not pieces))
        reduced = tuple(inside if symbol == self.cut.variable else symbol for symbol in self.loop.reduced)
        loop = self.loop
        return Loop(f"{loop.name}_{name}", (*further, *loop.kept), reduced, tuple(stores), loop.origins)

    # -- what is done with them ----------------------------------------------------------------------------------------

    def later_loops(self) -> Iterator[Loop]:
        """Yield the loop that joins the parts, and one for what runs over the reduced points again."""
        loop, plan = self.loop, self.plan
        part = Symbol(f"{self.cut.variable.name}p", self.cut.partials)
        builder = ScalarBuilder()
        joined = {
            id(reduction): self._joined(builder, reduction, kept, as_expr(part))
            for reduction, kept in zip(self.first, self.partial, strict=True)
        }
        due = [store for level, store in plan.kept_stores if level <= 1]
        stores = _rewritten(due, builder, joined)
        later = [store for level, store in plan.kept_stores if level > 1]
        again = [store for phase in plan.phases[1:] for store in phase.stores]
        totals: dict[int, Buffer] = {}
        for reduction in self.first if later or again else ():
            buffer = self._buffer(f"{loop.name}_total_{len(self.buffers)}", reduction.dtype, None)
            totals[id(reduction)] = buffer
            stores.append(LoopStore(Access(buffer.name, self.place), joined[id(reduction)]))
        yield Loop(f"{loop.name}_join", loop.kept, (part,), tuple(stores), loop.origins)
        if not totals:
            return
        builder = ScalarBuilder()
        known = {key: builder.load(buffer.name, self.place, buffer.dtype) for key, buffer in totals.items()}
        rest = tuple(_rewritten([*later, *again], builder, known))
        if any(phase.reductions for phase in plan.phases[1:]):
            yield Loop(f"{loop.name}_again", loop.kept, loop.reduced, rest, loop.origins)
        else:
            yield Loop(f"{loop.name}_again", (*loop.kept, *loop.reduced), (), rest, loop.origins)

    def _joined(self, builder: ScalarBuilder, reduction: Scalar, kept: Sequence[Buffer], part: Expr) -> Scalar:
        """Return the reduction of the parts of one."""
        loads = [builder.load(buffer.name, (part, *self.place), buffer.dtype) for buffer in kept]
        place = loads[1] if len(loads) > 1 else None
        return builder.reduce(reduction.kind, loads[0], reduction.dtype, place)


def _moved(access: Access, mapping: Mapping[Symbol, Expr]) -> Access:
    return Access(access.buffer, tuple(substituted(part, mapping) for part in access.index), access.looked_up)


def _rewritten(stores: Sequence[LoopStore], builder: ScalarBuilder, known: Mapping[int, Scalar]) -> list[LoopStore]:
    """Return stores with other values in place of some; known: those, by the id of the old one."""
    made: dict[int, Scalar] = {}
    for scalar in walk(store.value for store in stores):
        args = tuple(made[id(arg)] for arg in scalar.args)
        same = known.get(id(scalar))
        made[id(scalar)] = same or builder.make(scalar.name, args, scalar.dtype, scalar.detail, scalar.origin)
    return [LoopStore(store.access, made[id(store.value)], store.whole) for store in stores]
