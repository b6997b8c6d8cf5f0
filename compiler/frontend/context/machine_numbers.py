"""Whole numbers that vary, in 64 bits: Python's have no limit, those of kernels and of generated code have.

A number that is computed from sizes and numbers of the program is compared with the limits when it enters the graph,
as is each part of it that a quotient or a float is made of; sums and products may wrap on the way to a number that
fits.  The comparison becomes a guard, unless no sizes and numbers in their ranges could make it fail.
"""

from collections.abc import Callable, Iterator, Mapping
from math import prod
from typing import Any

from ...base.symbol_facts import is_at_most, size_expression

LARGEST_NUMBER = 1 << 62  # of a number from outside that varies; others are part of the code
_LARGEST_SIZE = 1 << 31  # of a dimension, as far as one is multiplied by another
_LIMITS = (-(1 << 63), (1 << 63) - 1)
_NO_LARGER = frozenset({"FloorDiv", "CleanDiv", "Mod", "PythonMod"})  # than the first operand
_ONE_OF_THEM = frozenset({"Max", "Min"})


def fits_in_64_bits(symbol: Any, is_size: Callable[[str], bool], values: Callable[[], Mapping[str, float]]) -> bool:
    """Return whether a number fits now, guarded.

    symbol: torch's SymInt or SymFloat.  is_size: tells by its name whether a symbol is the size of a dimension.
    values: gives what the symbols are now, by name.
    """
    for part in _whole_parts(size_expression(symbol)):
        if _bound(part, is_size) > _LIMITS[1] and not (
            is_at_most(symbol, part, _LIMITS[1], values()) and is_at_most(symbol, -part, -_LIMITS[0], values())
        ):
            return False
    return True


def _whole_parts(expression: Any) -> Iterator[Any]:
    """Give the expression and every operand of a function in it, where it is a whole number that varies."""
    if expression.free_symbols and expression.is_integer:
        yield expression
    pending = [expression]
    while pending:
        part = pending.pop()
        pending += part.args
        if not (part.is_Add or part.is_Mul or part.is_Pow):
            yield from (operand for operand in part.args if operand.free_symbols and operand.is_integer)


def _bound(expression: Any, is_size: Callable[[str], bool]) -> float:
    """Return a number that the magnitude of an expression does not exceed, infinity where none is known."""
    name = type(expression).__name__
    if expression.is_number:
        return abs(int(expression)) if expression.is_Integer else float("inf")
    if expression.is_Symbol:
        return _LARGEST_SIZE if is_size(str(expression)) else LARGEST_NUMBER
    bounds = [_bound(part, is_size) for part in expression.args]
    if expression.is_Add:
        return sum(bounds)
    if expression.is_Mul:
        return prod(bounds)
    if name in ("Pow", "PowByNatural"):
        base, exponent = bounds[0], expression.args[1]
        return base ** int(exponent) if exponent.is_Integer and exponent >= 0 else float("inf")
    if name in _NO_LARGER:
        return bounds[0]
    return max(bounds) if name in _ONE_OF_THEM else float("inf")
