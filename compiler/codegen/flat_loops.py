"""A loop made ready for a language of flat memory: one offset per access, few variables, the contiguous ones last.

All of it is pure, and the writers of C and of Triton share it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..loops.body import Access, Scalar, ScalarBuilder, rebuild
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
from ..symbolic.symbolic_sizes import Extent, hint_of, same


def flattened(loop: Loop, buffers: Mapping[str, Buffer]) -> Loop:
    """Return the loop with one flat offset per access and variables of size one gone."""
    gone = {symbol: constant(0) for symbol in (*loop.kept, *loop.reduced) if same(symbol.size, 1)}

    def flat(access: Access) -> Access:
        strides = buffers[access.buffer].strides
        parts = [scale(substitute(part, gone), stride) for part, stride in zip(access.index, strides, strict=True)]
        return Access(access.buffer, (total(parts),), access.looked_up)

    return with_accesses(
        loop,
        flat,
        gone,
        tuple(s for s in loop.kept if not same(s.size, 1)),
        tuple(s for s in loop.reduced if not same(s.size, 1)),
    )


def with_accesses(
    loop: Loop,
    change: object,
    mapping: Mapping[Symbol, Expr],
    kept: tuple[Symbol, ...],
    reduced: tuple[Symbol, ...],
) -> Loop:
    """Return the loop over other variables: `mapping` says what the old ones are, `change` what becomes of accesses."""
    builder = ScalarBuilder()

    def moved(access: Access) -> Access:
        return change(access) if callable(change) else access

    def replace(load: Scalar) -> Scalar:
        return builder.make("load", load.args, load.dtype, moved(load.access), load.origin)

    values = rebuild([store.value for store in loop.stores], builder, mapping, replace)
    stores = [
        LoopStore(moved(Access(s.access.buffer, tuple(substitute(p, mapping) for p in s.access.index))), value, s.whole)
        for s, value in zip(loop.stores, values, strict=True)
    ]
    return Loop(loop.name, kept, reduced, tuple(stores), loop.origins)


def accesses_of(loop: Loop) -> list[Access]:
    """Return every place that a loop writes or reads."""
    return [store.access for store in loop.stores] + [load.access for load in loop.loads()]


def _index_values(loop: Loop) -> list[Expr]:
    indexes = [part for access in accesses_of(loop) for part in access.index]
    return indexes + [scalar.expression for scalar in loop.scalars() if scalar.name == "index"]


def merged(loop: Loop) -> Loop:
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
    return with_accesses(loop, None, mapping, kept, reduced)


def ordered(loop: Loop) -> tuple[tuple[Symbol, ...], tuple[Symbol, ...]]:
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


def _stride_score(loop: Loop, symbol: Symbol) -> tuple[int, int]:
    """Return (elements at which the variable steps by one, minus the size of its greatest store stride)."""
    score = 0
    for store in loop.stores:
        score += 2 * is_one(coefficient(store.access.index[0], symbol)) * elements_of(store.access)
    for load in loop.loads():
        score += is_one(coefficient(load.access.index[0], symbol)) * elements_of(load.access)
    strides = [_distance(store.access, symbol) for store in loop.stores]
    return score, -max(strides, default=0)


def _distance(access: Access, symbol: Symbol) -> int:
    """Return by about how many elements a variable steps; 0 where that is not one number."""
    return abs(hint_of(coefficient(access.index[0], symbol) or 0))


def elements_of(access: Access) -> int:
    """Return about how many elements a loop reads or writes at an access: one number per channel is soon read."""
    return hint_of(product(symbol.size for symbol in symbols(access.index[0]) if symbol not in access.looked_up))


def is_one(factor: Extent | None) -> bool:
    """Return whether a factor is one whatever the dynamic sizes are."""
    return factor is not None and same(factor, 1)


def crosses(access: Access, rows: Symbol, vector: Symbol) -> bool:
    """Whether neighbouring rows, and not neighbouring lanes, are neighbours in memory."""
    down, across = coefficient(access.index[0], rows), coefficient(access.index[0], vector)
    return down is not None and same(down, 1) and across is not None and not same(across, 0) and not same(across, 1)


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
