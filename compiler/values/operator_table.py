"""Python's operators as records: symbol, the function that evaluates it on real objects, the special methods."""

import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Binary:
    """A binary operator. function: `a + b`; assigning: `a += b`; name: `add`, of `__add__`, `__radd__`, `__iadd__`."""

    symbol: str
    function: Callable[[Any, Any], Any]
    assigning: Callable[[Any, Any], Any]
    name: str


@dataclass(frozen=True, slots=True)
class Comparison:
    """A comparison. method: the left operand's, `__lt__`; turned: the symbol that says the same from the right, `>`."""

    symbol: str
    function: Callable[[Any, Any], Any]
    method: str
    turned: str

    @property
    def reflected(self) -> str:
        """The right operand's method."""
        return COMPARISONS[self.turned].method

    @property
    def asks_equality(self) -> bool:
        """Whether it is `==` or `!=`, which have an answer for all objects."""
        return self.symbol in ("==", "!=")


@dataclass(frozen=True, slots=True)
class Unary:
    """A unary operator; method: `__neg__`."""

    symbol: str
    function: Callable[[Any], Any]
    method: str


BINARY = {
    record.symbol: record
    for record in (
        Binary("+", operator.add, operator.iadd, "add"),
        Binary("-", operator.sub, operator.isub, "sub"),
        Binary("*", operator.mul, operator.imul, "mul"),
        Binary("/", operator.truediv, operator.itruediv, "truediv"),
        Binary("//", operator.floordiv, operator.ifloordiv, "floordiv"),
        Binary("%", operator.mod, operator.imod, "mod"),
        Binary("**", operator.pow, operator.ipow, "pow"),
        Binary("@", operator.matmul, operator.imatmul, "matmul"),
        Binary("<<", operator.lshift, operator.ilshift, "lshift"),
        Binary(">>", operator.rshift, operator.irshift, "rshift"),
        Binary("&", operator.and_, operator.iand, "and"),
        Binary("|", operator.or_, operator.ior, "or"),
        Binary("^", operator.xor, operator.ixor, "xor"),
    )
}
COMPARISONS = {
    record.symbol: record
    for record in (
        Comparison("==", operator.eq, "__eq__", "=="),
        Comparison("!=", operator.ne, "__ne__", "!="),
        Comparison("<", operator.lt, "__lt__", ">"),
        Comparison("<=", operator.le, "__le__", ">="),
        Comparison(">", operator.gt, "__gt__", "<"),
        Comparison(">=", operator.ge, "__ge__", "<="),
    )
}
UNARY = {
    record.symbol: record
    for record in (
        Unary("-", operator.neg, "__neg__"),
        Unary("+", operator.pos, "__pos__"),
        Unary("~", operator.invert, "__invert__"),
    )
}
