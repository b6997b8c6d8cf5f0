"""A loop program with dynamic sizes, for given sizes: the same program with numbers in their places.

This is what dynamic sizes mean: a program is right if each of its instances is.
"""

from __future__ import annotations

from collections.abc import Mapping

from ..base.nested import map_nested
from ..symbolic.expr import Atom, Expr, Quotient, Symbol, as_expr, constant, quotient, remainder
from ..symbolic.symbolic_sizes import Extent, Size, value_at
from .body import Access, Detail, Scalar, ScalarBuilder, walk
from .ir import Buffer, Extern, Loop, LoopProgram, LoopStore, Step, SymbolicNumber


def at_sizes(program: LoopProgram, point: Mapping[str, float]) -> LoopProgram:
    """Return the program for dynamic sizes of these values; it has no dynamic sizes left."""
    instance = _Instance(point)
    buffers = {name: instance.buffer(buffer) for name, buffer in program.buffers.items()}
    steps = tuple(instance.step(step) for step in program.steps)
    outputs = tuple(instance.nested(output) for output in program.outputs)
    return LoopProgram(program.inputs, buffers, steps, outputs, program.constants, device=program.device)


class _Instance:
    """Puts numbers in the places of dynamic sizes."""

    def __init__(self, point: Mapping[str, float]) -> None:
        self.point = point
        self.counts = {name: number for name, number in point.items() if isinstance(number, int)}

    def number(self, value: Extent) -> int:
        return value_at(value, self.counts)

    def buffer(self, old: Buffer) -> Buffer:
        shape = tuple(self.number(size) for size in old.shape)
        return Buffer(old.name, old.dtype, shape, tuple(self.number(step) for step in old.strides), old.offset)

    def nested(self, value: object) -> object:
        return map_nested(value, self._leaf)

    def _leaf(self, value: object) -> object:
        if isinstance(value, SymbolicNumber):
            return value.at(self.point)
        return self.number(value) if isinstance(value, Size) else value

    def step(self, old: Step) -> Step:
        if isinstance(old, Loop):
            return self.loop(old)
        args = tuple(self.nested(arg) for arg in old.args)
        kwargs = {key: self.nested(value) for key, value in old.kwargs.items()}
        return Extern(
            old.name,
            old.target,
            args,
            kwargs,
            old.results,
            old.single,
            old.ordered,
            old.mutates,
            old.alias_of,
            old.origins,
            old.dtypes,
            old.why,
        )

    def variable(self, old: Symbol) -> Symbol:
        return Symbol(old.name, self.number(old.size))

    def index(self, old: Expr) -> Expr:
        result = constant(self.number(old.constant))
        for atom, factor in old.terms:
            result = result + self.atom(atom) * self.number(factor)
        return result

    def atom(self, old: Atom) -> Expr:
        if isinstance(old, Symbol):
            return as_expr(self.variable(old))
        divide = quotient if isinstance(old, Quotient) else remainder
        return divide(self.index(old.value), self.number(old.divisor))

    def access(self, old: Access) -> Access:
        index = tuple(self.index(part) for part in old.index)
        return Access(old.buffer, index, tuple(self.variable(each) for each in old.looked_up))

    def detail(self, old: Detail) -> Detail:
        if isinstance(old, Access):
            return self.looked_up_kept(old)
        if isinstance(old, Expr):
            return self.index(old)
        return self.number(old) if isinstance(old, Size) else old

    def looked_up_kept(self, old: Access) -> Access:
        """A looked-up variable stays in the index even where its dimension has one element: it is checked."""
        new = self.access(old)
        index = []
        for before, after in zip(old.index, new.index, strict=True):
            read = [symbol for symbol in old.looked_up if before == Expr(((symbol, 1),), 0)]
            index.append(Expr(((self.variable(read[0]), 1),), 0) if read else after)
        return Access(new.buffer, tuple(index), new.looked_up)

    def loop(self, old: Loop) -> Loop:
        builder = ScalarBuilder()
        scalars: dict[int, Scalar] = {}
        for scalar in walk(store.value for store in old.stores):
            args = tuple(scalars[id(arg)] for arg in scalar.args)
            scalars[id(scalar)] = builder.make(
                scalar.name, args, scalar.dtype, self.detail(scalar.detail), scalar.origin
            )
        stores = tuple(LoopStore(self.access(s.access), scalars[id(s.value)], s.whole) for s in old.stores)
        kept = tuple(self.variable(symbol) for symbol in old.kept)
        return Loop(old.name, kept, tuple(self.variable(symbol) for symbol in old.reduced), stores, old.origins)
