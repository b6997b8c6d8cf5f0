"""Bringing two loops onto the same points, so that they can share one body.

Any one-to-one map between the iteration spaces is right for a loop (its points may run in any order), as long as
reductions still gather the same points.  Candidates come from what the loops share: where one writes or reads an
element and the other reads the same element, their indexes must be equal, which is solved for the variables.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from ..loops.body import Access
from ..loops.ir import Loop
from ..symbolic.expr import ZERO, Expr, Symbol, as_expr, quotient, remainder, symbols
from ..symbolic.index_space import digits_of, flat_position, product, row_major, unravel
from ..symbolic.symbolic_sizes import Extent, same

Mapped = dict[Symbol, Expr]


def real(space: Sequence[Symbol]) -> tuple[Symbol, ...]:
    """Return the variables that take more than one value."""
    return tuple(symbol for symbol in space if not same(symbol.size, 1))


def volume(space: Sequence[Symbol]) -> Extent:
    """Return how many points a space has."""
    return product(symbol.size for symbol in space)


def shared_places(
    fixed: Loop, moving: Loop, shapes: Mapping[str, Sequence[Extent]]
) -> Iterator[tuple[Access, Access, Sequence[Extent]]]:
    """Yield pairs of accesses to one buffer, first in `fixed`, then in `moving`, most telling first."""
    fixed_stores = [store.access for store in fixed.stores]
    moving_stores = [store.access for store in moving.stores]
    fixed_loads = [load.access for load in fixed.loads()]
    moving_loads = [load.access for load in moving.loads()]
    pairs = [(fixed_stores, moving_loads), (fixed_loads, moving_stores), (fixed_loads, moving_loads)]
    for firsts, seconds in pairs:
        for first in firsts:
            for second in seconds:
                if first.buffer == second.buffer and not first.looked_up and not second.looked_up:
                    yield first, second, shapes[first.buffer]


def align(fixed: Loop, moving: Loop, shapes: Mapping[str, Sequence[Extent]]) -> Mapped | None:
    """Return moving's variables as expressions of fixed's, or None where no sound map is found."""
    for first, second, shape in shared_places(fixed, moving, shapes):
        mapping = _solve(first, second, shape, fixed, moving)
        if mapping is not None and is_sound(mapping, fixed, moving):
            return mapping
    return None


def _solve(first: Access, second: Access, shape: Sequence[Extent], fixed: Loop, moving: Loop) -> Mapped | None:
    """Solve `index in moving == index in fixed` for moving's variables."""
    mapping: Mapped = {}
    strides = row_major(shape)
    known = sorted({s for part in second.index for s in symbols(part)}, key=lambda s: s.name)
    whole = flat_position(second.index, strides)
    radix = _digits(whole, known, strides, shape)
    if radix is None:
        for part, value in zip(second.index, first.index, strict=True):
            if len(part.terms) == 1 and same(part.terms[0][1], 1) and isinstance(part.terms[0][0], Symbol):
                mapping.setdefault(part.terms[0][0], value - part.constant)
        if set(mapping) != set(known):
            return None
    else:
        flat = flat_position(first.index, strides)
        for symbol in known:
            mapping[symbol] = remainder(quotient(flat, radix[symbol]), symbol.size)
    used = {s for part in first.index for s in symbols(part)}
    return _rest(mapping, used, fixed, moving)


def _digits(
    whole: Expr, known: Sequence[Symbol], strides: Sequence[Extent], shape: Sequence[Extent]
) -> dict[Symbol, Extent] | None:
    del strides, shape
    return digits_of(whole, known)


def _rest(mapping: Mapped, used: set[Symbol], fixed: Loop, moving: Loop) -> Mapped | None:
    """Pair the variables that the shared element does not depend on, in order, as one flat count."""
    open_moving = [s for s in (*moving.kept, *moving.reduced) if not same(s.size, 1) and s not in mapping]
    for part in (fixed.kept, fixed.reduced), (fixed.kept,):
        open_fixed = [s for space in part for s in space if not same(s.size, 1) and s not in used]
        if same(volume(open_fixed), volume(open_moving)):
            flat = flat_position([as_expr(s) for s in open_fixed], row_major([s.size for s in open_fixed]))
            for symbol, value in zip(open_moving, unravel(flat, [s.size for s in open_moving]), strict=True):
                mapping[symbol] = value
            break
    else:
        return None
    for symbol in (*moving.kept, *moving.reduced):
        if same(symbol.size, 1):
            mapping[symbol] = ZERO
    return mapping


def is_one_to_one(mapping: Mapped, target: Sequence[Symbol], source: Sequence[Symbol]) -> bool:
    """Return whether source variables, given in target variables, take every source point exactly once."""
    if not same(volume(source), volume(target)):
        return False
    flat = flat_position([mapping.get(s, ZERO) for s in source], row_major([s.size for s in source]))
    return digits_of(flat, target) is not None


def is_sound(mapping: Mapped, fixed: Loop, moving: Loop) -> bool:
    """Return whether moving, its variables replaced, still visits its points once and reduces the same ones.

    A reduction over no dimensions is a reduction over one point: it may not take part in the passes over another
    loop's reduced points, which would count its one point again and again.
    """
    kept, reduced = real(moving.kept), real(moving.reduced)
    if moving.reduced or moving.reduces:
        return is_one_to_one(mapping, real(fixed.kept), kept) and is_one_to_one(mapping, real(fixed.reduced), reduced)
    return is_one_to_one(mapping, real((*fixed.kept, *fixed.reduced)), kept) or (
        is_one_to_one(mapping, real(fixed.kept), kept)
    )
