"""Sizes of example tensors as sizes of loops: a number stays a number, torch's symbol becomes a dynamic size."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import reduce
from operator import add, mul
from typing import Any

import torch

from ..base.symbol_facts import size_expression
from ..symbolic.scaled_sizes import bits_of
from ..symbolic.symbolic_sizes import (
    Extent,
    floor_quotient,
    floor_remainder,
    larger,
    scaled,
    smaller,
    surely_positive,
    symbol,
)
from .writer import NoLowering


class SizeReader:
    """Reads SymInts; hints: what each symbol is in the call that is being compiled, lowest: its least value."""

    def __init__(self, hints: Mapping[str, int], lowest: Mapping[str, int | None]) -> None:
        self._hints = hints
        self._lowest = lowest
        self._read: dict[str, Extent] = {}

    def size(self, value: object) -> Extent:
        """Return a size; raises NoLowering for an expression that loops do not know."""
        if isinstance(value, torch.SymInt):
            return self._expression(size_expression(value))
        if isinstance(value, int):
            return value
        raise NoLowering(f"{value!r} is not a size")

    def sizes(self, values: Iterable[object]) -> tuple[Extent, ...]:
        """Return sizes in order."""
        return tuple(map(self.size, values))

    def _expression(self, expression: Any) -> Extent:
        text = str(expression)
        extent = self._read.get(text)
        if extent is None:
            extent = self._read[text] = self._convert(expression, text)
        return extent

    def _convert(self, expression: Any, text: str) -> Extent:
        if expression.is_Integer:
            return int(expression)
        if expression.is_Symbol:
            if text not in self._hints:
                raise NoLowering(f"{text} is the size of no input")
            return symbol(text, self._hints[text], self._lowest.get(text))
        kind = type(expression).__name__
        if kind in _ROUNDED:
            return self._rounded(_ROUNDED[kind], expression.args[0], text)
        rule = _RULES.get(kind)
        if rule is None:
            raise NoLowering(f"a size is {text}")
        return rule([self._expression(part) for part in expression.args])

    def _rounded(self, rounding: str, inner: Any, text: str) -> Extent:
        """Return a float made from one size, by a factor or a divisor, as a whole number again."""
        kind = type(inner).__name__
        if kind == "Identity":  # it keeps apart what Python computes one after another
            return self._rounded(rounding, inner.args[0], text)
        if kind == "ToFloat":
            return self._expression(inner.args[0])
        if kind == "IntTrueDiv":
            size, divisor = map(self._expression, inner.args)
            if surely_positive(divisor):
                return scaled(f"{rounding}_quotient", size, divisor)
        if kind == "Mul" and len(inner.args) == 2:
            factor, size = inner.args
            if factor.is_Float and type(size).__name__ == "ToFloat":
                return scaled(f"{rounding}_product", self._expression(size.args[0]), bits_of(float(factor)))
        raise NoLowering(f"a size is {text}")


def _power(parts: list[Extent]) -> Extent:
    base, exponent = parts
    if not isinstance(exponent, int) or exponent < 0:
        raise NoLowering("a size is a power by a size")
    return reduce(mul, [base] * exponent, 1)


def _modular(parts: list[Extent]) -> Extent:
    return floor_remainder(floor_quotient(parts[0], parts[1]), parts[2])


_ROUNDED = {"TruncToInt": "truncated", "FloorToInt": "floored", "CeilToInt": "raised", "RoundToInt": "rounded"}
_RULES: dict[str, Callable[[list[Extent]], Extent]] = {
    "Add": lambda parts: reduce(add, parts),
    "Mul": lambda parts: reduce(mul, parts),
    "Pow": _power,
    "PowByNatural": _power,
    "FloorDiv": lambda parts: floor_quotient(*parts),
    "CleanDiv": lambda parts: floor_quotient(*parts),
    "Mod": lambda parts: floor_remainder(*parts),
    "PythonMod": lambda parts: floor_remainder(*parts),
    "ModularIndexing": _modular,
    "Max": lambda parts: reduce(larger, parts),
    "Min": lambda parts: reduce(smaller, parts),
}
