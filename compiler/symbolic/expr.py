"""Integer index expressions in one normal form: a constant plus coefficients times atoms.

An atom is a loop variable, a floor quotient or a remainder.  Every variable has a known half-open range
`0 <= v < size`, which is what lets quotients and remainders vanish: flattening and splitting an index again gives
the index back.  Two expressions that print alike are equal; many that differ only by such round trips are too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from math import gcd


@dataclass(frozen=True, slots=True)
class Symbol:
    """A loop variable (or an index read from memory) that runs over `0 <= value < size`."""

    name: str
    size: int


@dataclass(frozen=True, slots=True)
class Quotient:
    """The floor quotient `value // divisor`, divisor > 0."""

    value: Expr
    divisor: int


@dataclass(frozen=True, slots=True)
class Remainder:
    """The remainder `value % divisor` with Python's sign, divisor > 0."""

    value: Expr
    divisor: int


Atom = Symbol | Quotient | Remainder


def _order(atom: Atom) -> tuple[int, str]:
    if isinstance(atom, Symbol):
        return (0, atom.name)
    return (1, atom_text(atom))


class Expr:
    """`constant + sum(coefficient * atom)`, immutable; terms are sorted, no coefficient is zero."""

    __slots__ = ("_hash", "constant", "terms")
    terms: tuple[tuple[Atom, int], ...]
    constant: int

    def __init__(self, terms: tuple[tuple[Atom, int], ...], constant: int) -> None:
        object.__setattr__(self, "terms", terms)
        object.__setattr__(self, "constant", constant)
        object.__setattr__(self, "_hash", hash((terms, constant)))

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"Expr is immutable: {name} cannot be set")

    def __hash__(self) -> int:
        return int(self._hash)  # type: ignore[attr-defined]  # a slot filled by object.__setattr__

    def __eq__(self, other: object) -> bool:
        return self is other or (
            isinstance(other, Expr) and self.constant == other.constant and self.terms == other.terms
        )

    def __repr__(self) -> str:
        return text(self)

    def __add__(self, other: Expr | int) -> Expr:
        return add(self, as_expr(other))

    __radd__ = __add__

    def __sub__(self, other: Expr | int) -> Expr:
        return add(self, scale(as_expr(other), -1))

    def __mul__(self, factor: int) -> Expr:
        return scale(self, factor)

    __rmul__ = __mul__

    def __floordiv__(self, divisor: int) -> Expr:
        return quotient(self, divisor)

    def __mod__(self, divisor: int) -> Expr:
        return remainder(self, divisor)


def constant(value: int) -> Expr:
    """Return the expression that is `value`."""
    return Expr((), value)


ZERO = constant(0)


def as_expr(value: Expr | Symbol | int) -> Expr:
    """Return value as an expression; a variable of size one is the constant zero."""
    if isinstance(value, Expr):
        return value
    if isinstance(value, Symbol):
        return ZERO if value.size == 1 else Expr(((value, 1),), 0)
    return constant(value)


def _from_terms(terms: dict[Atom, int], offset: int) -> Expr:
    _join_digits(terms)
    kept = [(atom, factor) for atom, factor in terms.items() if factor]
    if len(kept) > 1:
        kept.sort(key=lambda term: _order(term[0]))
    return Expr(tuple(kept), offset)


def _join_digits(terms: dict[Atom, int]) -> None:
    """Apply `c*d*(e // d) + c*(e % d) == c*e`, by which a split index becomes whole again."""
    again = True
    while again:
        again = False
        for atom, factor in list(terms.items()):
            if not isinstance(atom, Remainder) or not factor:
                continue
            high = quotient(atom.value, atom.divisor)
            if len(high.terms) != 1 or high.constant or high.terms[0][1] != 1:
                continue
            partner = high.terms[0][0]
            if atom.value.constant == 0 and terms.get(partner, 0) == factor * atom.divisor:
                del terms[atom], terms[partner]
                for inner, inner_factor in atom.value.terms:
                    terms[inner] = terms.get(inner, 0) + factor * inner_factor
                again = True
                break


def add(first: Expr, second: Expr) -> Expr:
    """Return the sum."""
    if not second.terms and not second.constant:
        return first
    if not first.terms and not first.constant:
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


def scale(value: Expr, factor: int) -> Expr:
    """Return `value * factor`."""
    if factor == 1:
        return value
    if factor == 0:
        return ZERO
    return Expr(tuple((atom, coefficient * factor) for atom, coefficient in value.terms), value.constant * factor)


def bounds(value: Expr) -> tuple[int, int]:
    """Return inclusive bounds that value never leaves (not always the tightest)."""
    low = high = value.constant
    for atom, factor in value.terms:
        atom_low, atom_high = _atom_bounds(atom)
        low += factor * (atom_low if factor > 0 else atom_high)
        high += factor * (atom_high if factor > 0 else atom_low)
    return low, high


def _atom_bounds(atom: Atom) -> tuple[int, int]:
    if isinstance(atom, Symbol):
        return 0, max(atom.size - 1, 0)
    low, high = bounds(atom.value)
    if isinstance(atom, Quotient):
        return low // atom.divisor, high // atom.divisor
    return (low, high) if low >= 0 and high < atom.divisor else (0, atom.divisor - 1)


def _split(value: Expr, divisor: int) -> tuple[Expr, Expr]:
    """Return (q, r) with value == divisor * q + r and every multiple of divisor in q."""
    high = [(atom, factor // divisor) for atom, factor in value.terms if factor % divisor == 0]
    low = [(atom, factor) for atom, factor in value.terms if factor % divisor]
    return (
        _from_terms(dict(high), value.constant // divisor),
        Expr(tuple(low), value.constant % divisor),
    )


def _group(value: Expr, divisor: int) -> tuple[int, Expr, Expr] | None:
    """Return (g, a, r) with value == g*a + r, 0 <= r < g and g > 1 dividing divisor; None where there is no such g."""
    for shared in sorted({gcd(factor, divisor) for _, factor in value.terms}, reverse=True):
        if shared == 1:
            continue
        multiple, rest = _split(value, shared)
        low, high = bounds(rest)
        if low >= 0 and high < shared:
            return shared, multiple, rest
    return None


@lru_cache(maxsize=4096)
def quotient(value: Expr, divisor: int) -> Expr:
    """Return `value // divisor`, floor division, divisor > 0."""
    if divisor == 1:
        return value
    high, low = _split(value, divisor)
    smallest, largest = bounds(low)
    if smallest >= 0 and largest < divisor:
        return high
    grouped = _group(low, divisor)
    if grouped is not None:  # floor((g*a + r) / (g*b)) == floor(a / b) where 0 <= r < g
        shared, multiple, _ = grouped
        return add(high, quotient(multiple, divisor // shared))
    if len(low.terms) == 1 and low.terms[0][1] == 1 and low.constant == 0:
        atom = low.terms[0][0]
        if isinstance(atom, Quotient):  # (x // a) // b == x // (a * b)
            return add(high, quotient(atom.value, atom.divisor * divisor))
        if isinstance(atom, Remainder) and atom.divisor % divisor == 0:  # (x % (b*k)) // b == (x // b) % k
            return add(high, remainder(quotient(atom.value, divisor), atom.divisor // divisor))
    return add(high, Expr(((Quotient(low, divisor), 1),), 0))


@lru_cache(maxsize=4096)
def remainder(value: Expr, divisor: int) -> Expr:
    """Return `value % divisor` with Python's sign, divisor > 0."""
    if divisor == 1:
        return ZERO
    _, low = _split(value, divisor)
    smallest, largest = bounds(low)
    if smallest >= 0 and largest < divisor:
        return low
    grouped = _group(low, divisor)
    if grouped is not None:  # (g*a + r) % (g*b) == g*(a % b) + r where 0 <= r < g
        shared, multiple, rest = grouped
        return add(scale(remainder(multiple, divisor // shared), shared), rest)
    if len(low.terms) == 1 and low.terms[0][1] == 1 and low.constant == 0:
        atom = low.terms[0][0]
        if isinstance(atom, Remainder) and atom.divisor % divisor == 0:  # (x % (b*k)) % b == x % b
            return remainder(atom.value, divisor)
    return Expr(((Remainder(low, divisor), 1),), 0)


def substitute(value: Expr, mapping: Mapping[Symbol, Expr]) -> Expr:
    """Replace variables by expressions, everywhere, and bring the result to normal form again."""
    if not value.terms:
        return value
    result = constant(value.constant)
    plain: dict[Atom, int] = {}
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
    found: set[Symbol] = set()
    for atom, _ in value.terms:
        if isinstance(atom, Symbol):
            found.add(atom)
        else:
            found |= symbols(atom.value)
    return frozenset(found)


def coefficient(value: Expr, variable: Symbol) -> int | None:
    """Return the factor of variable, or None where value is not linear in it."""
    result = 0
    for atom, factor in value.terms:
        if atom == variable:
            result = factor
        elif not isinstance(atom, Symbol) and variable in symbols(atom.value):
            return None
    return result


def evaluate(value: Expr, point: Mapping[str, int]) -> int:
    """Return the value at a point given by variable names."""
    result = value.constant
    for atom, factor in value.terms:
        if isinstance(atom, Symbol):
            result += factor * (0 if atom.size == 1 and atom.name not in point else point[atom.name])
        elif isinstance(atom, Quotient):
            result += factor * (evaluate(atom.value, point) // atom.divisor)
        else:
            result += factor * (evaluate(atom.value, point) % atom.divisor)
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
        parts.append(wrapped if factor == 1 else f"{factor}*{wrapped}")
    if value.constant or not parts:
        parts.append(str(value.constant))
    return " + ".join(parts).replace("+ -", "- ")
