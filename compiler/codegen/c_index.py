"""Index expressions as C, over the loop variables of one kernel."""

from __future__ import annotations

from collections.abc import Mapping

from ..symbolic.expr import Atom, Expr, Quotient, Symbol, bounds, is_zero
from ..symbolic.symbolic_sizes import Extent, Size, count_text, same, surely_at_least


def offset_text(value: Expr, names: Mapping[str, str]) -> str:
    """Return an index expression as C over long long variables; divisions are of non-negative numbers or floored."""
    parts = []
    for atom, factor in value.terms:
        shown = _atom_text(atom, names)
        parts.append(shown if same(factor, 1) else f"{count_text(factor)}*{shown}")
    if not is_zero(value.constant) or not parts:
        parts.append(count_text(value.constant))
    return " + ".join(parts)


def _atom_text(atom: Atom, names: Mapping[str, str]) -> str:
    if isinstance(atom, Symbol):
        return names.get(atom.name, atom.name)
    inner = offset_text(atom.value, names)
    divisor = count_text(atom.divisor)
    sign, function = ("/", "floor_quotient") if isinstance(atom, Quotient) else ("%", "floor_remainder")
    if surely_at_least(bounds(atom.value)[0], 0):  # C's own division is floor division here
        return f"(({inner}) {sign} {divisor})"
    return f"{function}({inner}, {divisor})"


def unsigned_text(size: Extent) -> str:
    """Return a size as unsigned C."""
    return f"(unsigned long long){size}" if isinstance(size, Size) else f"{size}ULL"


def lane_variable(vector: Symbol) -> Expr:
    """Return the vector variable plus the lane, as one opaque variable of the same range."""
    return Expr(((Symbol(f"{vector.name}@lane", vector.size), 1),), 0)


def lane_names(vector: Symbol) -> dict[str, str]:
    """Return the C text of `lane_variable`."""
    return {f"{vector.name}@lane": f"({vector.name} + lane)"}
