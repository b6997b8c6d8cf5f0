"""Spaces of loop variables and the one-to-one maps between them.

A space is a tuple of variables; its points are counted in row-major order.  A map is given by one expression per
target variable.  Whether it reaches every point exactly once is decided on the flat position: it must be a mixed
radix number whose digits are the source variables.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from .expr import ZERO, Expr, Symbol, as_expr, is_zero, quotient, remainder, scale, total
from .symbolic_sizes import Extent, same


def product(sizes: Iterable[Extent]) -> Extent:
    """Return the product of sizes."""
    result: Extent = 1
    for size in sizes:
        result = result * size
    return result


def row_major(sizes: Sequence[Extent]) -> tuple[Extent, ...]:
    """Return the strides, in elements, of a row-major array of these sizes; of no use where one is zero."""
    strides: list[Extent] = [1] * len(sizes)
    for position in range(len(sizes) - 2, -1, -1):
        size = sizes[position + 1]
        strides[position] = strides[position + 1] * (max(size, 1) if isinstance(size, int) else size)
    return tuple(strides)


def flat_position(index: Sequence[Expr], strides: Sequence[Extent]) -> Expr:
    """Return the element offset of an index under strides."""
    return total(scale(part, stride) for part, stride in zip(index, strides, strict=True))


def digits_of(flat: Expr, source: Sequence[Symbol]) -> dict[Symbol, Extent] | None:
    """Return each source variable's radix in flat, or None unless flat counts every source point exactly once."""
    if not is_zero(flat.constant):
        return None
    radix: dict[Symbol, Extent] = {}
    for atom, factor in flat.terms:
        if not isinstance(atom, Symbol):
            return None
        radix[atom] = factor
    symbols = {symbol for symbol in source if not same(symbol.size, 1)}
    if set(radix) != symbols:
        return None
    expected: Extent = 1
    left = dict(radix)
    while left:
        digit = next((symbol for symbol, factor in left.items() if same(factor, expected)), None)
        if digit is None:
            return None
        del left[digit]
        expected = expected * digit.size
    return radix


def invert(index: Sequence[Expr], target: Sequence[Symbol], source: Sequence[Symbol]) -> dict[Symbol, Expr] | None:
    """Return source variables in terms of target variables, where `target == index(source)` is one to one.

    None where the map is not one to one, or is not seen to be.
    """
    if not same(product(symbol.size for symbol in target), product(symbol.size for symbol in source)):
        return None
    strides = row_major([symbol.size for symbol in target])
    radix = digits_of(flat_position(index, strides), source)
    if radix is None:
        return None
    flat = flat_position([as_expr(symbol) for symbol in target], strides)
    return {symbol: _digit(flat, radix.get(symbol, 1), symbol.size) for symbol in source}


def reshape_index(index: Sequence[Expr], old: Sequence[Extent], new: Sequence[Extent]) -> tuple[Expr, ...]:
    """Return the index into an array of sizes `old` for an index into its row-major reshape to sizes `new`.

    index: [len(new)].  Result: [len(old)].
    """
    flat = flat_position(index, row_major(new))
    return unravel(flat, old)


def unravel(flat: Expr, sizes: Sequence[Extent]) -> tuple[Expr, ...]:
    """Return the row-major index of a flat position in an array of these sizes."""
    return tuple(_digit(flat, stride, size) for size, stride in zip(sizes, row_major(sizes), strict=True))


def _digit(flat: Expr, stride: Extent, size: Extent) -> Expr:
    """Return the part of a flat position that belongs to one dimension; zero where there is no other place, or none."""
    return ZERO if same(size, 1) or same(size, 0) else remainder(quotient(flat, stride), size)
