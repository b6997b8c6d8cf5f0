"""How a loop is walked: addresses as flat offsets, fewer and better ordered variables, the vector variable.

`shape_kernel` is pure: it takes a loop and buffer layouts and says outer variables, inner variables, which of them
is walked in vector steps and how many lanes a step has.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ..loops.body import is_uniform
from ..loops.ir import Buffer, Loop
from ..symbolic.expr import Symbol, as_expr, coefficient, scale
from ..symbolic.index_space import product
from ..symbolic.symbolic_sizes import Extent, divides, floor_quotient, hint_of, same
from .c_types import REGISTER
from .flat_loops import (
    accesses_of,
    crosses,
    depending_on,
    elements_of,
    flattened,
    is_one,
    merged,
    ordered,
    with_accesses,
)


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
    loop = merged(flattened(loop, buffers))
    outer, inner = ordered(loop)
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
    loop = with_accesses(loop, None, mapping, kept, loop.reduced)
    outer = tuple(block if symbol is rows else symbol for symbol in outer)
    return KernelShape(loop, outer, (*inner, row), vector, lanes, row)


def _vector_variable(loop: Loop, outer: Sequence[Symbol], inner: Sequence[Symbol]) -> Symbol | None:
    candidates = [space[-1] for space in (inner, outer if loop.reduced or loop.reduces else ()) if space]
    if not candidates:
        return None
    best = max(candidates, key=lambda symbol: _contiguity(loop, symbol))
    return best if hint_of(best.size) >= 4 else max(candidates, key=lambda symbol: hint_of(symbol.size))


def _contiguity(loop: Loop, symbol: Symbol) -> int:
    """Return how many elements are moved as vectors if lanes run along a variable, less those that must be gathered."""
    score = 0
    for access in accesses_of(loop):
        factor = coefficient(access.index[0], symbol)
        score += (0 if factor is not None and same(factor, 0) else 2 if is_one(factor) else -1) * elements_of(access)
    return score


def _most_lanes(loop: Loop, inner: Sequence[Symbol], vector: Symbol | None, vector_bytes: int) -> int:
    """Return how many elements of the widest value that stands in vector registers fit into one."""
    if vector is None or any(scalar.name == "reduce" and scalar.kind.startswith("arg") for scalar in loop.scalars()):
        return 1
    scalars = [scalar for scalar in loop.scalars() if scalar.name == "constant" or not is_uniform(scalar)]
    if (
        vector in inner
    ):  # values of kept points are scalars; constants and they are repeated where inner values use them
        inside = depending_on(loop, frozenset(inner))
        # a place that all lanes share is asked for once, and stands in no vector
        near = {id(arg) for scalar in scalars if id(scalar) in inside and scalar.name != "load" for arg in scalar.args}
        near |= {id(arg) for scalar in scalars if scalar.name == "reduce" for arg in (*scalar.args, scalar)}
        near |= {id(store.value) for store in loop.stores} if not loop.reduced else set()
        scalars = [scalar for scalar in scalars if id(scalar) in inside or id(scalar) in near]
    wide = any(REGISTER[scalar.dtype] in "dl" for scalar in scalars)
    return vector_bytes // (8 if wide else 4)
