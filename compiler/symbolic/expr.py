"""Integer index expressions in one normal form: a constant plus coefficients times atoms.

An atom is a loop variable, a floor quotient or a remainder.  Every variable has a known half-open range
`0 <= v < size`, which is what lets quotients and remainders vanish: flattening and splitting an index again gives
the index back.  Two expressions that print alike are equal; many that differ only by such round trips are too.
Extents, factors and divisors may be dynamic sizes (`sizes`); what holds is then proved for all sizes, never assumed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache

from .symbolic_sizes import (
    Extent,
    Size,
    common_factor,
    exact_quotient,
    hint_of,
    key_of,
    lowest_of,
    same,
    split,
    surely_at_least,
    surely_less,
    surely_positive,
    value_at,
)


@dataclass(frozen=True, slots=True, eq=False)
class Symbol:
    """A loop variable (or an index read from memory) that runs over `0 <= value < size`."""

    name: str
    size: Extent

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Symbol) and self.name == other.name and same(self.size, other.size)

    def __hash__(self) -> int:
        return hash((self.name, self.size))


@dataclass(frozen=True, slots=True, eq=False)
class _Division:
    value: Expr
    divisor: Extent

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, _Division) or type(self) is not type(other):
            return False
        return same(self.divisor, other.divisor) and self.value == other.value

    def __hash__(self) -> int:
        return hash((type(self), self.value, self.divisor))


@dataclass(frozen=True, slots=True, eq=False)
class Quotient(_Division):
    """The floor quotient `value // divisor`, divisor > 0."""


@dataclass(frozen=True, slots=True, eq=False)
class Remainder(_Division):
    """The remainder `value % divisor` with Python's sign, divisor > 0."""


Atom = Symbol | Quotient | Remainder


def _order(atom: Atom) -> tuple[int, str]:
    if isinstance(atom, Symbol):
        return (0, atom.name)
    return (1, atom_text(atom))


class Expr:
    """`constant + sum(coefficient * atom)`, immutable; terms are sorted, no coefficient is zero."""

    __slots__ = ("_hash", "constant", "terms")
    terms: tuple[tuple[Atom, Extent], ...]
    constant: Extent

    def __init__(self, terms: tuple[tuple[Atom, Extent], ...], constant: Extent) -> None:
        object.__setattr__(self, "terms", terms)
        object.__setattr__(self, "constant", constant)
        object.__setattr__(self, "_hash", hash((terms, constant)))

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"Expr is immutable: {name} cannot be set")

    def __hash__(self) -> int:
        return int(self._hash)  # type: ignore[attr-defined]  # a slot filled by object.__setattr__

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, Expr) or len(self.terms) != len(other.terms) or hash(self) != hash(other):
            return False
        pairs = zip(self.terms, other.terms, strict=True)
        return same(self.constant, other.constant) and all(a == b and same(f, g) for (a, f), (b, g) in pairs)

    def __repr__(self) -> str:
        return text(self)

    def __add__(self, other: Expr | Extent) -> Expr:
        return add(self, as_expr(other))

    __radd__ = __add__

    def __sub__(self, other: Expr | Extent) -> Expr:
        return add(self, scale(as_expr(other), -1))

    def __mul__(self, factor: Extent) -> Expr:
        return scale(self, factor)

    __rmul__ = __mul__

    def __floordiv__(self, divisor: Extent) -> Expr:
        return quotient(self, divisor)

    def __mod__(self, divisor: Extent) -> Expr:
        return remainder(self, divisor)


def constant(value: Extent) -> Expr:
    """Return the expression that is `value`."""
    return Expr((), value)


ZERO = constant(0)


def as_expr(value: Expr | Symbol | Extent) -> Expr:
    """Return value as an expression; a variable of size one is the constant zero."""
    if isinstance(value, Expr):
        return value
    if isinstance(value, Symbol):
        return ZERO if same(value.size, 1) else Expr(((value, 1),), 0)
    return constant(value)


def is_zero(value: Extent) -> bool:
    """Return whether a factor is zero whatever the dynamic sizes are."""
    return isinstance(value, int) and value == 0


def _from_terms(terms: dict[Atom, Extent], offset: Extent) -> Expr:
    _join_digits(terms)
    nonzero = [(atom, factor) for atom, factor in terms.items() if not is_zero(factor)]
    if len(nonzero) > 1:
        nonzero.sort(key=lambda term: _order(term[0]))
    return Expr(tuple(nonzero), offset)


def _join_digits(terms: dict[Atom, Extent]) -> None:
    """Apply `c*d*(e // d) + c*(e % d) == c*e`, by which a split index becomes whole again."""
    again = True
    while again:
        again = False
        for atom, factor in list(terms.items()):
            if not isinstance(atom, Remainder) or is_zero(factor):
                continue
            high = quotient(atom.value, atom.divisor)
            if len(high.terms) != 1 or not is_zero(high.constant) or not same(high.terms[0][1], 1):
                continue
            partner = high.terms[0][0]
            if is_zero(atom.value.constant) and same(terms.get(partner, 0), factor * atom.divisor):
                del terms[atom], terms[partner]
                for inner, inner_factor in atom.value.terms:
                    terms[inner] = terms.get(inner, 0) + factor * inner_factor
                again = True
                break


def add(first: Expr, second: Expr) -> Expr:
    """Return the sum."""
    if not second.terms and is_zero(second.constant):
        return first
    if not first.terms and is_zero(first.constant):
        return second
    terms = dict(first.terms)
    for atom, factor in second.terms:
        terms[atom] = terms.get(atom, 0) + factor
    return _from_terms(terms, first.constant + second.constant)


def total(parts: Iterable[Expr]) -> Expr:
    """Return the sum of all parts."""
    result = ZERO
    for part in parts:
        result = add(result, part)
    return result


def scale(value: Expr, factor: Extent) -> Expr:
    """Return `value * factor`."""
    if same(factor, 1):
        return value
    if is_zero(factor):
        return ZERO
    return Expr(tuple((atom, coefficient * factor) for atom, coefficient in value.terms), value.constant * factor)


_FAR = 1 << 62  # further than any element of any tensor


def bounds(value: Expr) -> tuple[Extent, Extent]:
    """Return inclusive bounds that value never leaves (not always the tightest)."""
    low = high = value.constant
    for atom, factor in value.terms:
        atom_low, atom_high = _atom_bounds(atom)
        if isinstance(factor, Size) and not surely_positive(factor):
            if not surely_positive(-factor):
                return -_FAR, _FAR
            rising = False
        else:
            rising = isinstance(factor, Size) or factor > 0
        low = low + factor * (atom_low if rising else atom_high)
        high = high + factor * (atom_high if rising else atom_low)
    return low, high


def _atom_bounds(atom: Atom) -> tuple[Extent, Extent]:
    if isinstance(atom, Symbol):
        if isinstance(atom.size, Size):  # where it is zero, the loop has no points and nobody asks
            return 0, atom.size - 1
        return 0, max(atom.size - 1, 0)
    low, high = bounds(atom.value)
    divisor = atom.divisor
    if isinstance(atom, Quotient):
        if isinstance(low, int) and isinstance(high, int) and isinstance(divisor, int):
            return low // divisor, high // divisor
        least = lowest_of(low)
        # high // divisor <= high for high >= 0; without a bound of its own the quotient keeps the value's
        exact = exact_quotient(high + 1, divisor)
        return 0 if least is not None and least >= 0 else -_FAR, high if exact is None else exact - 1
    return (low, high) if _within(low, high, divisor) else (0, divisor - 1)


def _within(low: Extent, high: Extent, end: Extent) -> bool:
    """Return whether 0 <= low and high < end, proved."""
    if isinstance(low, int) and isinstance(high, int) and isinstance(end, int):
        return low >= 0 and high < end
    return surely_at_least(low, 0) and surely_less(high, end)


def _split(value: Expr, divisor: Extent) -> tuple[Expr, Expr]:
    """Return (q, r) with value == divisor * q + r and every multiple of divisor in q."""
    high: list[tuple[Atom, Extent]] = []
    low: list[tuple[Atom, Extent]] = []
    for atom, factor in value.terms:
        part = exact_quotient(factor, divisor)
        if part is None:
            low.append((atom, factor))
        else:
            high.append((atom, part))
    whole, rest = split(value.constant, divisor)
    return _from_terms(dict(high), whole), Expr(tuple(low), rest)


def _group(value: Expr, divisor: Extent) -> tuple[Extent, Expr, Expr] | None:
    """Return (g, a, r) with value == g*a + r, 0 <= r < g and g > 1 dividing divisor; None where there is no such g."""
    common = [common_factor(factor, divisor) for _, factor in value.terms]
    factors = {key_of(shared): shared for shared in common if not same(shared, 1)}
    for shared in sorted(factors.values(), key=hint_of, reverse=True):
        if not surely_positive(shared):
            continue
        multiple, rest = _split(value, shared)
        low, high = bounds(rest)
        if _within(low, high, shared):
            return shared, multiple, rest
    return None


@lru_cache(maxsize=4096)
def quotient(value: Expr, divisor: Extent) -> Expr:
    """Return `value // divisor`, floor division, divisor > 0."""
    if same(divisor, 1):
        return value
    high, low = _split(value, divisor)
    if _within(*bounds(low), divisor):
        return high
    grouped = _group(low, divisor)
    if grouped is not None:  # floor((g*a + r) / (g*b)) == floor(a / b) where 0 <= r < g
        shared, multiple, _ = grouped
        return add(high, quotient(multiple, _over(divisor, shared)))
    if len(low.terms) == 1 and same(low.terms[0][1], 1) and is_zero(low.constant):
        atom = low.terms[0][0]
        if isinstance(atom, Quotient):  # (x // a) // b == x // (a * b)
            return add(high, quotient(atom.value, atom.divisor * divisor))
        if isinstance(atom, Remainder):  # (x % (b*k)) // b == (x // b) % k
            times = exact_quotient(atom.divisor, divisor)
            if times is not None:
                return add(high, remainder(quotient(atom.value, divisor), times))
    return add(high, Expr(((Quotient(low, divisor), 1),), 0))


@lru_cache(maxsize=4096)
def remainder(value: Expr, divisor: Extent) -> Expr:
    """Return `value % divisor` with Python's sign, divisor > 0."""
    if same(divisor, 1):
        return ZERO
    _, low = _split(value, divisor)
    if _within(*bounds(low), divisor):
        return low
    grouped = _group(low, divisor)
    if grouped is not None:  # (g*a + r) % (g*b) == g*(a % b) + r where 0 <= r < g
        shared, multiple, rest = grouped
        return add(scale(remainder(multiple, _over(divisor, shared)), shared), rest)
    if len(low.terms) == 1 and same(low.terms[0][1], 1) and is_zero(low.constant):
        atom = low.terms[0][0]
        if isinstance(atom, Remainder) and exact_quotient(atom.divisor, divisor) is not None:
            # (x % (b*k)) % b == x % b
            return remainder(atom.value, divisor)
    return Expr(((Remainder(low, divisor), 1),), 0)


def _over(divisor: Extent, shared: Extent) -> Extent:
    exact = exact_quotient(divisor, shared)
    assert exact is not None  # shared divides it by construction
    return exact


def substitute(value: Expr, mapping: Mapping[Symbol, Expr]) -> Expr:
    """Replace variables by expressions, everywhere, and bring the result to normal form again."""
    if not value.terms:
        return value
    result = constant(value.constant)
    plain: dict[Atom, Extent] = {}
    for atom, factor in value.terms:
        if isinstance(atom, Symbol):
            if atom in mapping:
                result = add(result, scale(mapping[atom], factor))
            else:
                plain[atom] = factor
        elif isinstance(atom, Quotient):
            result = add(result, scale(quotient(substitute(atom.value, mapping), atom.divisor), factor))
        else:
            result = add(result, scale(remainder(substitute(atom.value, mapping), atom.divisor), factor))
    return add(result, _from_terms(plain, 0)) if plain else result


def symbols(value: Expr) -> frozenset[Symbol]:
    """Return every variable that value depends on."""
    result: set[Symbol] = set()
    for atom, _ in value.terms:
        if isinstance(atom, Symbol):
            result.add(atom)
        else:
            result |= symbols(atom.value)
    return frozenset(result)


def coefficient(value: Expr, variable: Symbol) -> Extent | None:
    """Return the factor of variable, or None where value is not linear in it."""
    result: Extent = 0
    for atom, factor in value.terms:
        if atom == variable:
            result = factor
        elif not isinstance(atom, Symbol) and variable in symbols(atom.value):
            return None
    return result


def evaluate(value: Expr, point: Mapping[str, int]) -> int:
    """Return the value at a point given by the names of variables and of dynamic sizes."""
    result = value_at(value.constant, point)
    for atom, factor in value.terms:
        number = value_at(factor, point)
        if isinstance(atom, Symbol):
            result += number * (0 if same(atom.size, 1) and atom.name not in point else point[atom.name])
        elif isinstance(atom, Quotient):
            result += number * (evaluate(atom.value, point) // value_at(atom.divisor, point))
        else:
            result += number * (evaluate(atom.value, point) % value_at(atom.divisor, point))
    return result


def atom_text(atom: Atom) -> str:
    """Return the atom as Python text."""
    if isinstance(atom, Symbol):
        return atom.name
    sign = "//" if isinstance(atom, Quotient) else "%"
    return f"({text(atom.value)}) {sign} {atom.divisor}"


def text(value: Expr) -> str:
    """Return the expression as Python text that evaluates to it."""
    parts = []
    for atom, factor in value.terms:
        name = atom_text(atom)
        wrapped = name if isinstance(atom, Symbol) else f"({name})"
        parts.append(wrapped if same(factor, 1) else f"{factor}*{wrapped}")
    if not is_zero(value.constant) or not parts:
        parts.append(str(value.constant))
    return " + ".join(parts).replace("+ -", "- ")
