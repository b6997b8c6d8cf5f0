"""Symbolic sizes: whole numbers known only when a kernel runs, as polynomials in one normal form.

A `Size` stands where an int stands: as the extent of a loop, a stride, the factor of an index.  Arithmetic gives an
int again where everything open cancels.  A comparison is answered by proof where there is one (every symbol has a
least value); otherwise it is answered for the sizes of the call that is being compiled, and the answer is written
down: compiled code is used only where the assumptions hold (`assumptions`).  Nothing is ever guessed.

The normal form is that of polynomials over symbols and over functions of them, which C and Python both know by name:
`floor_quotient`, `floor_remainder`, `larger`, `smaller`, and those of `scaled_sizes`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from math import gcd

from ..base.errors import InternalError
from .scaled_sizes import FUNCTIONS, SCALED, float_of


@dataclass(frozen=True, slots=True)
class SizeSymbol:
    """A size by name; lowest: it is never less (None: unknown); hint: what it is in the call being compiled."""

    name: str
    lowest: int | None
    hint: int

    @property
    def key(self) -> str:
        """A text that two atoms share only if they are the same."""
        return f"{self.name}>{self.lowest}~{self.hint}"

    @property
    def text(self) -> str:
        """The symbol as Python and as C."""
        return self.name


@dataclass(frozen=True, slots=True, eq=False)
class SizeCall:
    """A function of sizes; function: a name in `FUNCTIONS`."""

    function: str
    first: Extent
    second: Extent
    key: str = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "key", f"{self.function}({key_of(self.first)},{key_of(self.second)})")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SizeCall) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)

    @property
    def text(self) -> str:
        """The call as Python and as C."""
        return f"{self.function}({self.first}, {self.second})"

    @property
    def hint(self) -> int:
        """What it is in the call that is being compiled."""
        return FUNCTIONS[self.function](hint_of(self.first), hint_of(self.second))


Atom = SizeSymbol | SizeCall
Monomial = tuple[Atom, ...]  # sorted by key; an atom may repeat; none: the constant


class Size:
    """A polynomial in dynamic sizes that is not just a number; immutable, and equal only if it is the same number."""

    __slots__ = ("_lowest", "key", "terms")
    terms: tuple[tuple[Monomial, int], ...]
    key: str
    _lowest: int | bool | None

    def __init__(self, terms: tuple[tuple[Monomial, int], ...]) -> None:
        self.terms = terms
        self.key = "+".join(f"{factor}*{'*'.join(atom.key for atom in monomial)}" for monomial, factor in terms)
        self._lowest = False  # not asked yet

    def __hash__(self) -> int:
        return hash(self.key)

    def __repr__(self) -> str:
        parts = []
        for monomial, factor in self.terms:
            names = [atom.text for atom in monomial]
            parts.append("*".join(names if factor == 1 and names else [str(factor), *names]))
        return parts[0] if len(parts) == 1 and "*" not in parts[0] else f"({' + '.join(parts)})"

    # -- arithmetic ------------------------------------------------------------------------------------------------

    def __add__(self, other: Extent) -> Extent:
        if not isinstance(other, int | Size):
            return NotImplemented
        terms = dict(self.terms)
        for monomial, factor in _terms(other):
            terms[monomial] = terms.get(monomial, 0) + factor
        return _made(terms)

    __radd__ = __add__

    def __neg__(self) -> Size:
        return Size(tuple((monomial, -factor) for monomial, factor in self.terms))

    def __sub__(self, other: Extent) -> Extent:
        return self + -other if isinstance(other, int | Size) else NotImplemented

    def __rsub__(self, other: Extent) -> Extent:
        return -self + other if isinstance(other, int | Size) else NotImplemented

    def __mul__(self, other: Extent) -> Extent:
        if not isinstance(other, int | Size):
            return NotImplemented
        terms: dict[Monomial, int] = {}
        for first, one in self.terms:
            for second, two in _terms(other):
                monomial = tuple(sorted((*first, *second), key=_key)) if first and second else first or second
                terms[monomial] = terms.get(monomial, 0) + one * two
        return _made(terms)

    __rmul__ = __mul__

    def __floordiv__(self, other: Extent) -> Extent:
        return floor_quotient(self, other) if isinstance(other, int | Size) else NotImplemented

    def __rfloordiv__(self, other: Extent) -> Extent:
        return floor_quotient(other, self) if isinstance(other, int | Size) else NotImplemented

    def __mod__(self, other: Extent) -> Extent:
        return floor_remainder(self, other) if isinstance(other, int | Size) else NotImplemented

    def __rmod__(self, other: Extent) -> Extent:
        return floor_remainder(other, self) if isinstance(other, int | Size) else NotImplemented

    def __abs__(self) -> Extent:
        return self if self >= 0 else -self

    # -- questions: answered by proof, else for this call and written down ------------------------------------------

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, int | Size):
            return NotImplemented
        gap = self - other
        if isinstance(gap, int):
            return gap == 0
        if surely_positive(gap) or surely_positive(-gap):
            return False
        return _decided(self, "==", other, self.hint == hint_of(other))

    def __lt__(self, other: Extent) -> bool:
        return _less(self, other) if isinstance(other, int | Size) else NotImplemented

    def __gt__(self, other: Extent) -> bool:
        return _less(other, self) if isinstance(other, int | Size) else NotImplemented

    def __le__(self, other: Extent) -> bool:
        return not _less(other, self) if isinstance(other, int | Size) else NotImplemented

    def __ge__(self, other: Extent) -> bool:
        return not _less(self, other) if isinstance(other, int | Size) else NotImplemented

    def __bool__(self) -> bool:
        return self != 0

    def __int__(self) -> int:
        """Fix the size to what it is in this call."""
        if not _decided(self, "==", self.hint, True):
            raise InternalError("a size is not what it is", hint="report the program")
        return self.hint

    __index__ = __int__

    @property
    def hint(self) -> int:
        """What the size is in the call that is being compiled; for choices that only cost time."""
        total = 0
        for monomial, factor in self.terms:
            for atom in monomial:
                factor *= atom.hint
            total += factor
        return total

    @property
    def lowest(self) -> int | None:
        """A number that the size is never less than, None where no proof is found."""
        if self._lowest is False:
            self._lowest = _lowest(self)
        return self._lowest


Extent = int | Size  # what counts elements: a number, or a dynamic size


def _key(atom: Atom) -> str:
    return atom.key


def _terms(value: Extent) -> tuple[tuple[Monomial, int], ...]:
    if isinstance(value, Size):
        return value.terms
    return (((), int(value)),) if value else ()


def _made(found: Mapping[Monomial, int]) -> Extent:
    nonzero = [(monomial, factor) for monomial, factor in found.items() if factor]
    if not nonzero:
        return 0
    if len(nonzero) == 1 and not nonzero[0][0]:
        return nonzero[0][1]
    nonzero.sort(key=lambda term: (-len(term[0]), [atom.key for atom in term[0]]))
    return Size(tuple(nonzero))


def symbol(name: str, hint: int, lowest: int | None = 2) -> Size:
    """Return the size called `name`, which is `hint` in this call and never less than `lowest`."""
    return Size(((((SizeSymbol(name, lowest, hint)),), 1),))


def key_of(value: Extent) -> str:
    """Return a text that is equal for equal polynomials only."""
    return value.key if isinstance(value, Size) else str(int(value))


def same(first: Extent, second: Extent) -> bool:
    """Return whether two sizes are equal whatever the dynamic sizes are; False says nothing. Assumes nothing."""
    if isinstance(first, Size) or isinstance(second, Size):
        return key_of(first) == key_of(second)
    return first == second


def hint_of(value: Extent) -> int:
    """Return what a size is in this call; only for choices that cost time, never for what is right."""
    return value.hint if isinstance(value, Size) else value


def fixed(value: Extent) -> int:
    """Return a size that is a number; raises InternalError for an open one."""
    if isinstance(value, Size):
        raise InternalError(f"{value} is symbolic where a number is needed", hint="report the program")
    return value


def lowest_of(value: Extent) -> int | None:
    """Return a number that value is never less than, None where none is known."""
    return value.lowest if isinstance(value, Size) else value


def surely_positive(value: Extent) -> bool:
    """Return whether value is proved to be greater than zero."""
    low = lowest_of(value)
    return low is not None and low > 0


def surely_less(first: Extent, second: Extent) -> bool:
    """Return whether first < second is proved; assumes nothing."""
    return surely_positive(second - first)


def surely_at_least(first: Extent, second: Extent) -> bool:
    """Return whether first >= second is proved; assumes nothing."""
    low = lowest_of(first - second)
    return low is not None and low >= 0


def _less(first: Extent, second: Extent) -> bool:
    if surely_less(first, second):
        return True
    if surely_at_least(first, second):
        return False
    return _decided(first, "<", second, hint_of(first) < hint_of(second))


def _lowest(value: Size) -> int | None:
    """Write each atom as its least value plus something not negative: without negative factors the rest is least."""
    terms: dict[Monomial, int] = {}
    for monomial, factor in value.terms:
        expanded: dict[Monomial, int] = {(): factor}
        for atom in monomial:
            low = _lowest_of_atom(atom)
            if low is None:
                return None
            wider: dict[Monomial, int] = {}
            for before, count in expanded.items():
                wider[before] = wider.get(before, 0) + count * low
                after = tuple(sorted((*before, atom), key=_key))
                wider[after] = wider.get(after, 0) + count
            expanded = wider
        for after, count in expanded.items():
            terms[after] = terms.get(after, 0) + count
    constant = terms.pop((), 0)
    return constant if all(count >= 0 for count in terms.values()) else _lowest_by_ceiling(value)


def _lowest_by_ceiling(value: Size) -> int | None:
    """Replace one subtracted function of sizes by something that it never exceeds, and ask again."""
    for monomial, factor in value.terms:
        if factor > 0 or len(monomial) != 1 or not isinstance(call := monomial[0], SizeCall):
            continue
        rest = value - Size(((monomial, factor),))
        if call.function == "floor_quotient" and isinstance(call.second, int):  # d * (a // d) <= a
            low = lowest_of(rest * call.second + call.first * factor)
            if low is not None:
                return -(-low // call.second)
        ceilings: list[Extent] = []
        if call.function == "smaller":
            ceilings = [call.first, call.second]
        elif call.function == "floor_remainder" and surely_positive(call.second):
            ceilings = [call.second - 1]
        known = [low for top in ceilings if (low := lowest_of(rest + top * factor)) is not None]
        if known:
            return max(known)
    return None


def _lowest_of_atom(atom: Atom) -> int | None:
    if isinstance(atom, SizeSymbol):
        return atom.lowest
    first, second = lowest_of(atom.first), lowest_of(atom.second)
    if atom.function in SCALED:
        return _lowest_of_scaled(atom, first)
    if atom.function == "floor_remainder":
        return 0 if surely_positive(atom.second) else None
    if atom.function == "floor_quotient":
        if first is None or first < 0 or not surely_positive(atom.second):
            return None
        return first // atom.second if isinstance(atom.second, int) else 0
    if atom.function == "larger":
        known = [low for low in (first, second) if low is not None]
        return max(known) if known else None
    return min(first, second) if first is not None and second is not None else None


def _lowest_of_scaled(atom: SizeCall, first: int | None) -> int | None:
    """A positive factor makes no larger number of a smaller size."""
    if first is None or not isinstance(atom.second, int):
        return None
    is_product = atom.function.endswith("_product")
    rises = float_of(atom.second) > 0 if is_product else atom.second > 0
    return SCALED[atom.function](first, atom.second) if rises else None


# -- division --------------------------------------------------------------------------------------------------------


_MOST_STEPS = 16  # of a polynomial division; longer ones are given up


def exact_quotient(value: Extent, divisor: Extent) -> Extent | None:
    """Return value / divisor where that is a polynomial with whole factors, else None."""
    if isinstance(value, int) and isinstance(divisor, int):
        return value // divisor if value % divisor == 0 else None
    if not isinstance(value, Size) and value == 0:
        return 0
    lead_value, lead_divisor = _terms(value)[0], _terms(divisor)[0]
    part = _monomial_quotient(lead_value, lead_divisor)
    if part is None:
        return None
    result: Extent = part
    rest = value - part * divisor
    for _ in range(_MOST_STEPS):
        if isinstance(rest, int) and rest == 0:
            return result
        step = _monomial_quotient(_terms(rest)[0], lead_divisor)
        if step is None:
            return None
        result, rest = result + step, rest - step * divisor
    return None


def _monomial_quotient(value: tuple[Monomial, int], divisor: tuple[Monomial, int]) -> Extent | None:
    left = list(value[0])
    keys = [atom.key for atom in left]
    for atom in divisor[0]:
        if atom.key not in keys:
            return None
        at = keys.index(atom.key)
        del left[at], keys[at]
    if value[1] % divisor[1]:
        return None
    return _made({tuple(left): value[1] // divisor[1]})


def divides(divisor: int, value: Extent) -> bool:
    """Return whether value is a multiple of divisor whatever the dynamic sizes are."""
    return exact_quotient(value, divisor) is not None


def common_factor(first: Extent, second: Extent) -> Extent:
    """Return a common divisor: of the number in front and of the symbols of all terms."""
    if isinstance(first, int) and isinstance(second, int):
        return gcd(first, second)
    terms = (*_terms(first), *_terms(second))
    number = 0
    shared = list(terms[0][0])
    for monomial, factor in terms:
        number = gcd(number, factor)
        left = [atom.key for atom in monomial]
        common = []
        for atom in shared:
            if atom.key in left:
                left.remove(atom.key)
                common.append(atom)
        shared = common
    return _made({tuple(shared): number})


def split(value: Extent, divisor: Extent) -> tuple[Extent, Extent]:
    """Return (q, r) with value == divisor * q + r, and every term that divisor divides in q."""
    if isinstance(value, int) and isinstance(divisor, int):
        return divmod(value, divisor)
    whole = exact_quotient(value, divisor)
    if whole is not None:
        return whole, 0
    high: Extent = 0
    for term in _terms(value):
        if not isinstance(divisor, int):
            part = exact_quotient(_made({term[0]: term[1]}), divisor)
        else:
            part = _made({term[0]: term[1] // divisor})
        high = high + (part if part is not None else 0)
    return high, value - divisor * high


def floor_quotient(value: Extent, divisor: Extent) -> Extent:
    """Return value // divisor; the divisor's sign is checked or assumed."""
    return _divided(value, divisor)[0]


def floor_remainder(value: Extent, divisor: Extent) -> Extent:
    """Return value % divisor with Python's sign; divisor as above."""
    return _divided(value, divisor)[1]


def _divided(value: Extent, divisor: Extent) -> tuple[Extent, Extent]:
    if isinstance(value, int) and isinstance(divisor, int):
        return divmod(value, divisor)
    if not divisor > 0:
        if not divisor < 0:
            raise ZeroDivisionError(f"division by {divisor}, which is zero")
        quotient, remainder = _divided(-value, -divisor)
        return quotient, -remainder
    high, low = split(value, divisor)
    if isinstance(low, int) and isinstance(divisor, int):
        return high + low // divisor, low % divisor
    if surely_at_least(low, 0) and surely_less(low, divisor):
        return high, low
    quotient = Size((((SizeCall("floor_quotient", low, divisor),), 1),))
    remainder = Size((((SizeCall("floor_remainder", low, divisor),), 1),))
    return high + quotient, remainder


def larger(first: Extent, second: Extent) -> Extent:
    """Return the larger of two sizes without assuming which it is."""
    if isinstance(first, int) and isinstance(second, int):
        return max(first, second)
    if surely_at_least(first, second):
        return first
    if surely_at_least(second, first):
        return second
    return Size((((SizeCall("larger", first, second),), 1),))


def smaller(first: Extent, second: Extent) -> Extent:
    """Return the smaller of two sizes without assuming which it is."""
    if isinstance(first, int) and isinstance(second, int):
        return min(first, second)
    if surely_at_least(first, second):
        return second
    if surely_at_least(second, first):
        return first
    return Size((((SizeCall("smaller", first, second),), 1),))


def scaled(function: str, size: Extent, second: Extent) -> Extent:
    """Return a whole number made from a size through a float; function: a name in `SCALED`, second: its argument."""
    if isinstance(size, int) and isinstance(second, int):
        return SCALED[function](size, second)
    return Size((((SizeCall(function, size, second),), 1),))


# -- what was assumed ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Assumption:
    """A comparison of sizes that nothing proves, and that holds in the call that is being compiled.

    relation: `==` or `<`, between two sizes as Python text over symbols' names.  holds: whether it is true there.
    """

    first: str
    relation: str
    second: str
    holds: bool

    @property
    def text(self) -> str:
        """The condition as Python text."""
        return f"{'' if self.holds else 'not '}{self.first} {self.relation} {self.second}"

    @property
    def is_equality(self) -> bool:
        """Whether it fixes one size to another."""
        return self.holds and self.relation == "=="


_ASSUMED: ContextVar[dict[Assumption, None] | None] = ContextVar("assumed", default=None)


@contextmanager
def assumptions() -> Iterator[dict[Assumption, None]]:
    """Collect, in order, what the block assumes of dynamic sizes."""
    collected: dict[Assumption, None] = {}
    token = _ASSUMED.set(collected)
    try:
        yield collected
    finally:
        _ASSUMED.reset(token)


def _decided(first: Extent, relation: str, second: Extent, answer: bool) -> bool:
    """Return the answer and write down that it is assumed."""
    assumption = Assumption(str(first), relation, str(second), answer)
    collected = _ASSUMED.get()
    if collected is None:
        text = f"{first} {relation} {second} is asked outside of a compilation"
        raise InternalError(text, hint="report the program")
    collected.setdefault(assumption)
    return answer


# -- use ---------------------------------------------------------------------------------------------------------------


def value_at(value: Extent, point: Mapping[str, int]) -> int:
    """Return what a size is where its symbols have these values."""
    total = 0
    for monomial, factor in _terms(value):
        for atom in monomial:
            if isinstance(atom, SizeSymbol):
                factor *= point[atom.name]
            else:
                factor *= FUNCTIONS[atom.function](value_at(atom.first, point), value_at(atom.second, point))
        total += factor
    return total


def size_names(value: Extent) -> frozenset[str]:
    """Return the names of the symbols that a size depends on."""
    names: set[str] = set()
    for monomial, _ in _terms(value):
        for atom in monomial:
            if isinstance(atom, SizeSymbol):
                names.add(atom.name)
            else:
                names |= size_names(atom.first) | size_names(atom.second)
    return frozenset(names)


def count_text(value: Extent) -> str:
    """Return a size as a C expression of type long long that binds tighter than any operator."""
    return f"{value}LL" if isinstance(value, int) else repr(value)
