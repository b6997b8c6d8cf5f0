"""How a loop is walked: addresses as flat offsets, fewer and better ordered variables, the vector variable.

`shape_kernel` is pure: it takes a loop and buffer layouts and says outer variables, inner variables, which of them
is walked in vector steps and how many lanes a step has.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ..loops.body import Access, Scalar, ScalarBuilder, is_uniform, rebuild
from ..loops.ir import Buffer, Loop, LoopStore
from ..symbolic.expr import (
    Expr,
    Symbol,
    as_expr,
    coefficient,
    constant,
    quotient,
    remainder,
    scale,
    substitute,
    symbols,
    total,
)
from ..symbolic.index_space import product
from ..symbolic.symbolic_sizes import Extent, divides, floor_quotient, hint_of, same
from .c_types import REGISTER


@dataclass(frozen=True, slots=True, eq=False)
class KernelShape:
    """A loop ready to be written: every access has one flat element offset.

    outer: variables around; inner: variables of each pass, the last innermost.  vector: the variable that advances
    by `lanes` (an inner one, or the last outer one when columns are reduced); None for scalar code.
    tile: the innermost variable where transposed reads are walked in squares of lanes by lanes; else None.
    """

    loop: Loop
    outer: tuple[Symbol, ...]
    inner: tuple[Symbol, ...]
    vector: Symbol | None
    lanes: int
    tile: Symbol | None = None

    @property
    def points(self) -> Extent:
        """How many points all loops visit."""
        return product(symbol.size for symbol in (*self.outer, *self.inner))

    @property
    def pass_points(self) -> Extent:
        """How many points one pass visits."""
        return product(symbol.size for symbol in self.inner)

    @property
    def columns(self) -> bool:
        """Whether lanes are different kept points, each with its own reduction."""
        return self.vector is not None and self.vector in self.outer


def shape_kernel(loop: Loop, buffers: Mapping[str, Buffer], vector_bytes: int, *, scalar: bool = False) -> KernelShape:
    """Choose how to walk a loop; vector_bytes is the width of a vector register; scalar: without vectors.

    Where the extent of the vector variable is dynamic, whoever calls the kernel sees to it that it is at least `lanes`.
    """
    loop = _merged(_flattened(loop, buffers))
    outer, inner = _ordered(loop)
    vector = _vector_variable(loop, outer, inner)
    lanes = _most_lanes(loop, inner, vector, vector_bytes)
    while vector is not None and isinstance(vector.size, int) and lanes > vector.size:
        lanes //= 2
    if vector is None or lanes < 4 or scalar:
        vector, lanes = None, 1
    if vector is not None and vector in outer:
        outer = (*(s for s in outer if s is not vector), vector)
    elif vector is not None:
        inner = (*(s for s in inner if s is not vector), vector)
    if vector is not None and not loop.reduced and not loop.reduces:
        tiled = _tiled(loop, outer, inner, vector, lanes)
        if tiled is not None:
            return tiled
    return KernelShape(loop, outer, inner, vector, lanes)


def _tiled(
    loop: Loop, outer: tuple[Symbol, ...], inner: tuple[Symbol, ...], vector: Symbol, lanes: int
) -> KernelShape | None:
    """Walk transposed reads in squares: a few rows inside each vector step, while their cache lines are near."""
    crossing = [
        symbol
        for symbol in outer
        if divides(lanes, symbol.size) and any(crosses(load.access, symbol, vector) for load in loop.loads())
    ]
    if not crossing:
        return None
    rows = crossing[-1]
    block, row = Symbol(f"{rows.name}_tile", floor_quotient(rows.size, lanes)), Symbol(f"{rows.name}_row", lanes)
    mapping = {rows: scale(as_expr(block), lanes) + as_expr(row)}
    kept = tuple(each for symbol in loop.kept for each in ((block, row) if symbol is rows else (symbol,)))
    loop = _with_accesses(loop, None, mapping, kept, loop.reduced)
    outer = tuple(block if symbol is rows else symbol for symbol in outer)
    return KernelShape(loop, outer, (*inner, row), vector, lanes, row)


def crosses(access: Access, rows: Symbol, vector: Symbol) -> bool:
    """Whether neighbouring rows, and not neighbouring lanes, are neighbours in memory."""
    down, across = coefficient(access.index[0], rows), coefficient(access.index[0], vector)
    return down is not None and same(down, 1) and across is not None and not same(across, 0) and not same(across, 1)


def _flattened(loop: Loop, buffers: Mapping[str, Buffer]) -> Loop:
    """Return the loop with one flat offset per access and variables of size one gone."""
    gone = {symbol: constant(0) for symbol in (*loop.kept, *loop.reduced) if same(symbol.size, 1)}

    def flat(access: Access) -> Access:
        strides = buffers[access.buffer].strides
        parts = [scale(substitute(part, gone), stride) for part, stride in zip(access.index, strides, strict=True)]
        return Access(access.buffer, (total(parts),), access.looked_up)

    return _with_accesses(
        loop,
        flat,
        gone,
        tuple(s for s in loop.kept if not same(s.size, 1)),
        tuple(s for s in loop.reduced if not same(s.size, 1)),
    )


def _with_accesses(
    loop: Loop,
    change: object,
    mapping: Mapping[Symbol, Expr],
    kept: tuple[Symbol, ...],
    reduced: tuple[Symbol, ...],
) -> Loop:
    builder = ScalarBuilder()

    def moved(access: Access) -> Access:
        return change(access) if callable(change) else access

    def replace(load: Scalar) -> Scalar:
        return builder.make("load", load.args, load.dtype, moved(load.access))

    values = rebuild([store.value for store in loop.stores], builder, mapping, replace)
    stores = [
        LoopStore(moved(Access(s.access.buffer, tuple(substitute(p, mapping) for p in s.access.index))), value, s.whole)
        for s, value in zip(loop.stores, values, strict=True)
    ]
    return Loop(loop.name, kept, reduced, tuple(stores), loop.origins)


def _accesses(loop: Loop) -> list[Access]:
    return [store.access for store in loop.stores] + [load.access for load in loop.loads()]


def _index_values(loop: Loop) -> list[Expr]:
    indexes = [part for access in _accesses(loop) for part in access.index]
    return indexes + [scalar.expression for scalar in loop.scalars() if scalar.name == "index"]


def _merged(loop: Loop) -> Loop:
    """Join two variables into one wherever every offset counts them as one."""
    for space in ("kept", "reduced"):
        again = True
        while again:
            again = False
            variables: tuple[Symbol, ...] = getattr(loop, space)
            for high in variables:
                low = _partner(loop, high, variables)
                if low is not None:
                    loop = _join_two(loop, high, low, space)
                    again = True
                    break
    return loop


def _partner(loop: Loop, high: Symbol, variables: Sequence[Symbol]) -> Symbol | None:
    """Return the variable that `high` continues: high's factor is always low's factor times low's size."""
    values = _index_values(loop)
    factors = [coefficient(value, high) for value in values]
    if any(factor is None for factor in factors):
        return None
    for low in variables:
        if low is high or same(low.size, 0):  # no quotient by nothing
            continue
        partners = [coefficient(value, low) for value in values]
        pairs = zip(factors, partners, strict=True)
        if all(first is not None and second is not None and same(first, second * low.size) for first, second in pairs):
            return low
    return None


def _join_two(loop: Loop, high: Symbol, low: Symbol, space: str) -> Loop:
    joined = Symbol(f"{high.name}{low.name}", high.size * low.size)
    mapping = {high: quotient(as_expr(joined), low.size), low: remainder(as_expr(joined), low.size)}
    variables = tuple(joined if s is high else s for s in getattr(loop, space) if s is not low)
    kept = variables if space == "kept" else loop.kept
    reduced = variables if space == "reduced" else loop.reduced
    return _with_accesses(loop, None, mapping, kept, reduced)


def is_one(factor: Extent | None) -> bool:
    """Return whether a factor is one whatever the dynamic sizes are."""
    return factor is not None and same(factor, 1)


def _distance(access: Access, symbol: Symbol) -> int:
    """Return by about how many elements a variable steps; 0 where that is not one number."""
    return abs(hint_of(coefficient(access.index[0], symbol) or 0))


def _stride_score(loop: Loop, symbol: Symbol) -> tuple[int, int]:
    """Return (accesses where the variable steps by one element, minus the size of its greatest store stride)."""
    score = 0
    for store in loop.stores:
        score += 2 * is_one(coefficient(store.access.index[0], symbol))
    for load in loop.loads():
        score += is_one(coefficient(load.access.index[0], symbol))
    strides = [_distance(store.access, symbol) for store in loop.stores]
    return score, -max(strides, default=0)


def _ordered(loop: Loop) -> tuple[tuple[Symbol, ...], tuple[Symbol, ...]]:
    """Return outer and inner variables, each with the most contiguous one last."""
    kept = tuple(sorted(loop.kept, key=lambda s: _walk_order(loop, s)))
    reduced = tuple(sorted(loop.reduced, key=lambda s: _walk_order(loop, s)))
    if loop.reduced or loop.reduces:
        return kept, reduced
    return kept[:-1], kept[-1:]


def _walk_order(loop: Loop, symbol: Symbol) -> tuple[int, int]:
    """Order variables from the outermost: large strides first, unit strides last."""
    score, stride = _stride_score(loop, symbol)
    if stride == 0:
        loads = [_distance(load.access, symbol) for load in loop.loads()]
        stride = -max(loads, default=0)
    return (score, stride) if score else (0, stride)


def _vector_variable(loop: Loop, outer: Sequence[Symbol], inner: Sequence[Symbol]) -> Symbol | None:
    candidates = [space[-1] for space in (inner, outer if loop.reduced or loop.reduces else ()) if space]
    if not candidates:
        return None
    best = max(candidates, key=lambda symbol: _contiguity(loop, symbol))
    return best if hint_of(best.size) >= 4 else max(candidates, key=lambda symbol: hint_of(symbol.size))


def _contiguity(loop: Loop, symbol: Symbol) -> int:
    """Count accesses that become vector accesses, less those that must gather."""
    score = 0
    for access in _accesses(loop):
        factor = coefficient(access.index[0], symbol)
        score += 0 if factor is not None and same(factor, 0) else 2 if is_one(factor) else -1
    return score


def depending_on(loop: Loop, variables: frozenset[Symbol]) -> frozenset[int]:
    """Return ids of scalars that change with some of the variables; reductions do not (they end their variables)."""
    dependent: set[int] = set()
    for scalar in loop.scalars():
        if scalar.name == "reduce":
            continue
        depends = any(id(arg) in dependent for arg in scalar.args)
        if scalar.name == "load":
            depends = depends or any(symbols(part) & variables for part in scalar.access.index)
        elif scalar.name == "index":
            depends = bool(symbols(scalar.expression) & variables)
        if depends:
            dependent.add(id(scalar))
    return frozenset(dependent)


def _most_lanes(loop: Loop, inner: Sequence[Symbol], vector: Symbol | None, vector_bytes: int) -> int:
    """Return how many elements of the widest value that stands in vector registers fit into one."""
    if vector is None or any(scalar.name == "reduce" and scalar.kind.startswith("arg") for scalar in loop.scalars()):
        return 1
    scalars = [scalar for scalar in loop.scalars() if scalar.name == "constant" or not is_uniform(scalar)]
    if (
        vector in inner
    ):  # values of kept points are scalars; constants and they are repeated where inner values use them
        inside = depending_on(loop, frozenset(inner))
        near = {id(arg) for scalar in scalars if id(scalar) in inside for arg in scalar.args}
        near |= {id(arg) for scalar in scalars if scalar.name == "reduce" for arg in (*scalar.args, scalar)}
        near |= {id(store.value) for store in loop.stores} if not loop.reduced else set()
        scalars = [scalar for scalar in scalars if id(scalar) in inside or id(scalar) in near]
    wide = any(REGISTER[scalar.dtype] in "dl" for scalar in scalars)
    return vector_bytes // (8 if wide else 4)
