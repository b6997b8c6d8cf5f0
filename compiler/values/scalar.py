"""Symbolic sizes: ints, floats and bools computed from dimensions that may vary.

A rule that knows nothing of them asks for `constant()`, which fixes the size to what it is now and guards that: the
answer is right, only less general.
"""

import math
import operator
from collections.abc import Callable, Hashable
from typing import Any

import torch

from ..base.symbol_facts import hint_value, rounded_symbol
from .constant import Constant, MethodOf, fold
from .operator_table import Binary, Comparison, Unary
from .type_attributes import require_attribute
from .value import Arguments, CaptureContext, Keywords, Rebuilder, Value

LARGEST_POWER = 1 << 62
SMALLEST_KEPT, LARGEST_KEPT = -5, 256  # ints of which CPython has one object each


def _is_small_power(base: Value, exponent: object) -> bool:
    """Return whether a power has a value now that is far from the largest of torch's whole numbers."""
    if not isinstance(base, SizeValue) or base.kind is not int or not isinstance(exponent, int) or exponent < 0:
        return True
    return exponent < 64 and abs(hint_value(base.symbol)) ** exponent < LARGEST_POWER


class SizeValue(Value):
    """A symbolic int, float or bool; symbol: torch's SymInt, SymFloat or SymBool."""

    equal_by_identity = True

    def __init__(self, symbol: Any, kind: type) -> None:
        self.symbol = symbol
        self.kind = kind

    def python_type(self) -> type:
        """Return int, float or bool."""
        return self.kind

    def describe(self) -> str:
        """Return the expression."""
        return f"size {self.symbol}"

    def is_constant(self) -> bool:
        """Return True: it can be fixed."""
        return True

    def operand(self) -> Any:
        """Return the symbol for further arithmetic, which keeps the order in which floats were rounded."""
        return rounded_symbol(self.symbol) if self.kind is float else self.symbol

    def binary(self, ctx: CaptureContext, record: Binary, other: Value, reflected: bool, inplace: bool) -> Value | None:
        """Calculate with torch's symbol and a number, where Python gives such a number for all that are guarded."""
        left, right = (other, self) if reflected else (self, other)
        operands = None if record.symbol in _FIXING else _operands(left, right)
        if operands is None or (record.symbol in "&|^" and float in (left.python_type(), right.python_type())):
            return None
        if record.symbol == "**" and not (isinstance(right, Constant) and _is_small_power(left, right.value)):
            return ctx.graph.computed_number(operator.pow, operands)  # torch's whole numbers end, Python's do not
        return calculate(ctx, record.function, *operands)

    def unary(self, ctx: CaptureContext, record: Unary) -> Value | None:
        """Calculate with torch's symbol; `~` fixes the number."""
        return None if record.symbol == "~" else calculate(ctx, record.function, self.operand())

    def compare(self, ctx: CaptureContext, record: Comparison, other: Value, reflected: bool) -> Value | None:
        """Compare torch's symbol with a number."""
        if bool in (self.kind, other.python_type()):
            return None  # 1 and True are equal; of torch's symbols no truth value is equal to a number
        operands = _operands(other, self) if reflected else _operands(self, other)
        return None if operands is None else calculate(ctx, record.function, *operands)

    def graph_argument(self, ctx: CaptureContext) -> tuple[object, object]:
        """Return the node that computes the number, and the symbol; a number that needs no node for both."""
        node = ctx.graph.size_argument(self)
        return node, self.symbol if not isinstance(node, int | float | bool) else node

    def constant(self) -> object:
        """Fix the value to what it is now."""
        return self.kind(self.symbol)

    def stand_in(self) -> object:
        """Return a number of the type."""
        return self.kind(1)

    def identity(self) -> object:
        """Return the value itself: numbers made by arithmetic share no identity."""
        return self

    def identity_beside(self, other: Value) -> object:
        """Return the number, fixed, beside another of its type: there is one object of each bool and small int."""
        if self is other or other.python_type() is not self.kind or self.kind is float:
            return self
        is_one_object = self.kind is bool or (self.symbol >= SMALLEST_KEPT and self.symbol <= LARGEST_KEPT)
        return self.kind(self.symbol) if is_one_object else self

    def hash_token(self, ctx: CaptureContext) -> Hashable:
        """Fix the value."""
        number: Hashable = self.kind(self.symbol)
        return number

    def truth(self, ctx: CaptureContext) -> bool:
        """Decide by the present sizes, guarded."""
        return bool(self.symbol != 0) if self.kind is not bool else bool(self.symbol)

    def get_attr(self, ctx: CaptureContext, name: str) -> Value:
        """Ask the type whether there is one, then fix the value; methods of numbers are rare."""
        raw = require_attribute(ctx, self, name)
        if name == "__class__" or not callable(raw):
            return Constant(self.constant()).get_attr(ctx, name)
        return MethodOf(self, name)

    def call_method(self, ctx: CaptureContext, name: str, args: Arguments, kwargs: Keywords) -> Value:
        """Fix the value and run the method now."""
        return Constant(self.constant()).call_method(ctx, name, args, kwargs)

    def rebuild(self, out: Rebuilder) -> str:
        """Compute the number from the sizes of the inputs."""
        return out.size(self)


def calculate(
    ctx: CaptureContext, function: Callable[..., Any], *operands: Any, plain: Callable[..., Any] | None = None
) -> Value:
    """Return a function of torch's symbols and numbers as a symbol, where Python gives such a number too.

    Whether it does can depend on the numbers. That is decided by those of now, and guarded; where it does not, or
    torch knows no such symbol, the numbers are fixed, and Python says what comes out. plain: the function on numbers,
    if it is another than on symbols.
    """
    possible = _DOMAINS.get(function)
    of_floats = any(isinstance(operand, torch.SymFloat) for operand in operands)
    if (possible is None or possible(*operands)) and not (of_floats and function in _FIXING_FLOATS):
        try:
            return ctx.known(function(*operands))
        except Exception:  # Python has the last word on the numbers themselves
            pass
    if of_floats:
        number = ctx.graph.computed_number(plain or function, operands)
        if number is not None:
            return number
    return fold(ctx, plain or function, *(fixed(operand) for operand in operands))


def fixed(number: Any) -> Any:
    """Return the number that a symbol is now, guarded; a number itself."""
    kinds: dict[type, type] = {torch.SymInt: int, torch.SymFloat: float, torch.SymBool: bool}
    return kinds.get(type(number), type(number))(number)


def is_moderate(number: Any) -> bool:
    """Return whether a whole number can be made of a number, guarded."""
    return not isinstance(number, torch.SymFloat) or (bool(number > -LARGE) and bool(number < LARGE))


def _divides(dividend: Any, divisor: Any) -> bool:
    del dividend
    return bool(divisor != 0)


def divides_wholly(dividend: Any, divisor: Any) -> bool:
    """Return whether a quotient or remainder is one of whole numbers: of floats, torch's symbols take `x % 1` for 0."""
    whole = all(isinstance(number, int | torch.SymInt) for number in (dividend, divisor))
    return whole and _divides(dividend, divisor)


def _raises(base: Any, exponent: Any) -> bool:
    """Return whether a power is a number of the kind that torch's symbol has, and does not overflow."""
    if isinstance(base, torch.SymInt) and type(exponent) is int and 0 <= exponent <= _HIGHEST_POWER:
        return True
    if isinstance(exponent, torch.SymInt):
        return type(base) is int and base > 0 and bool(exponent >= 0)
    if not isinstance(base, torch.SymInt | torch.SymFloat) or type(exponent) not in (int, float) or abs(exponent) > 2:
        return False
    return bool(base > 1 / LARGE) and bool(base < LARGE) if isinstance(base, torch.SymFloat) else bool(base > 0)


LARGE = 1e150  # products of smaller floats are finite
_HIGHEST_POWER = 8
_FIXING = ("@", "<<", ">>")
_FIXING_FLOATS = (abs, operator.abs)  # torch's symbols answer them by the number of now
# What Python gives for some numbers only, and raises or gives a number of another kind for others.
_DOMAINS: dict[Callable[..., Any], Callable[..., bool]] = {
    operator.truediv: _divides,
    operator.floordiv: divides_wholly,
    operator.mod: divides_wholly,
    operator.pow: _raises,
    torch.sym_sqrt: lambda number: bool(number >= 0),
    math.floor: is_moderate,
    math.ceil: is_moderate,
    math.trunc: is_moderate,
    round: is_moderate,
}


def _operands(*values: Value) -> list[Any] | None:
    """Return the numbers, symbolic ones as torch's symbols; None if one of the values is not a number."""
    operands: list[Any] = []
    for value in values:
        if isinstance(value, SizeValue):
            operands.append(value.operand())
        elif isinstance(value, Constant) and isinstance(value.value, int | float):
            operands.append(value.value)
        else:
            return None
    return operands
