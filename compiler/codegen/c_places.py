"""Loads whose place was computed or read from memory, as C: a place of kept points once, others lane by lane.

Places that are an index kept inside its dimension (padding, windows, pieces of a tensor) are neighbours but for the
edges: whole vectors are read near them, and their elements then take their lanes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ..loops.body import Scalar, is_uniform
from ..symbolic.expr import Expr, Symbol, as_expr, coefficient, is_zero, substitute
from ..symbolic.symbolic_sizes import Size, same, surely_at_least
from .c_index import lane_names, lane_variable, offset_text, unsigned_text
from .c_types import REGISTER, STORED, WIDTH
from .flat_loops import is_one
from .kernel_text import KernelText

Value = Callable[[Scalar, int, int], str]
Placed = tuple[Symbol, Scalar]


@dataclass(frozen=True, slots=True, eq=False)
class PlaceWriter:
    """Writes looked-up places into the text of a kernel; value: emits a value of so many lanes in a pass."""

    text: KernelText
    value: Value

    def kept(self, load: Scalar) -> list[Placed]:
        """Return the looked-up variables of a value of the passes that belong to kept points, with their values."""
        inner = self.text.plan.inner
        if load.name != "load" or not load.access.looked_up or self.text.outer_lanes != 1 or id(load) not in inner:
            return []
        pairs = zip(load.access.looked_up, load.args, strict=True)
        return [(symbol, arg) for symbol, arg in pairs if id(arg) not in inner and surely_at_least(symbol.size, 1)]

    def inner_arguments(self, load: Scalar) -> tuple[Scalar, ...]:
        """Return the arguments of a value that lanes need."""
        kept = {id(arg) for _, arg in self.kept(load)}
        return tuple(arg for arg in load.args if id(arg) not in kept)

    def emit_kept(self, load: Scalar, number: int = 0) -> None:
        """Emit the places that belong to kept points, checked once; out of range sets *error and is element zero."""
        key = (id(load), 0)
        if key in self.text.names:
            return
        for symbol, arg in self.kept(load):
            place = self._place(load, symbol).name
            self.text.line(f"long long {place} = {self.value(arg, 1, number)};")
            if clamped_expression(arg, symbol) is None:
                self.text.line(
                    f"if ((unsigned long long){place} >= {unsigned_text(symbol.size)}) {{ *error = 1; {place} = 0; }}"
                )
        self.text.names[key] = ""

    def offset(self, load: Scalar) -> tuple[Expr, list[Placed]]:
        """Return the offset of a load in terms of emitted places, and the looked-up variables that are left in it."""
        kept = [symbol for symbol, _ in self.kept(load)]
        offset = substitute(load.access.index[0], {symbol: as_expr(self._place(load, symbol)) for symbol in kept})
        pairs = zip(load.access.looked_up, load.args, strict=True)
        return offset, [(symbol, arg) for symbol, arg in pairs if symbol not in kept]

    def _place(self, load: Scalar, symbol: Symbol) -> Symbol:
        return Symbol(f"t{self.text.plan.number[id(load)]}_{symbol.name}", symbol.size)

    def near(self, load: Scalar, lanes: int, offset: Expr, left: list[Placed], places: list[str]) -> str | None:
        """Emit a load of neighbours kept inside a dimension, and return its text; None where it is no such load."""
        vector = self.text.shape.vector
        if lanes == 1 or vector is None or len(left) != 1 or not is_zero(coefficient(offset, vector) or 0):
            return None
        ((symbol, arg),) = left
        index = clamped_expression(arg, symbol)
        step = None if index is None else coefficient(index, vector)
        if index is None or not is_one(coefficient(offset, symbol)) or coefficient(offset, vector) is None:
            return None
        if not isinstance(step, int) or step not in (1, 2) or isinstance(symbol.size, Size):
            return None
        if symbol.size < step * lanes:
            return None
        register, name, library = REGISTER[load.dtype], f"t{self.text.plan.number[id(load)]}", self.text.library
        start, last = Symbol(f"{name}_start", symbol.size), symbol.size - step * lanes
        self.text.line(f"long long {start.name} = {offset_text(index, {})};")
        self.text.line(f"{start.name} = {start.name} < 0 ? 0 : {start.name} > {last} ? {last} : {start.name};")
        moved = offset_text(substitute(offset, {symbol: as_expr(start)}), {})
        self.text.line(f"const {STORED[load.dtype]} *q{name} = {self.text.pointer(load.access.buffer)} + {moved};")
        kind, wanted = REGISTER[arg.dtype], "l" if WIDTH[register] == 8 else "i"
        lane = f"({places[0]} - {library.splat(kind, lanes)}({start.name}))"
        if kind != wanted:
            lane = f"{library.convert(kind, wanted, lanes)}({lane})"
        read = self.text.memory.load(load.dtype, lanes)
        vectors = ", ".join(f"{read}(q{name} + {number * lanes})" for number in range(step))
        return f"{library.permute(register, lanes, step)}({vectors}, {lane})"

    def gather(self, load: Scalar, lanes: int, offset: Expr, left: list[Placed], places: list[str]) -> None:
        """Emit a load whose place was read from memory; a place out of range sets *error and reads element zero."""
        register, vector = REGISTER[load.dtype], self.text.shape.vector
        name = f"t{self.text.plan.number[id(load)]}"
        self.text.line(f"{self.text.library.type(register, lanes)} {name};")
        names, inside = {}, []
        for (symbol, _), place in zip(left, places, strict=True):
            names[symbol.name] = f"{name}_{symbol.name}"
            inside.append(f"long long {name}_{symbol.name} = {place}{'[lane]' if lanes > 1 else ''};")
            inside.append(
                f"if ((unsigned long long){name}_{symbol.name} >= {unsigned_text(symbol.size)})"
                f" {{ *error = 1; {name}_{symbol.name} = 0; }}"
            )
        target = name
        if lanes > 1 and vector is not None:
            offset = substitute(offset, {vector: lane_variable(vector)})
            names |= lane_names(vector)
            target = f"{name}[lane]"
        place = f"{self.text.pointer(load.access.buffer)} + {offset_text(offset, names)}"
        read = f"{target} = {self.text.memory.load(load.dtype, 1)}({place});"
        empty = [unsigned_text(symbol.size) for symbol, _ in left if not surely_at_least(symbol.size, 1)]
        if empty:  # there is no element zero
            read = f"if ({' && '.join(f'{size} > 0' for size in empty)}) {read} else {target} = 0;"
        opening = f"for (int lane = 0; lane < {lanes}; lane++) " if lanes > 1 else ""
        self.text.line(f"{opening}{{ {' '.join(inside)} {read} }}")


def clamped_expression(value: Scalar, symbol: Symbol) -> Expr | None:
    """Return the index that a value is, kept inside 0..size-1 of a looked-up variable; None where it is another."""
    if value.name != "minimum" or value.args[0].name != "maximum":
        return None
    last, (index, zero) = value.args[1], value.args[0].args
    if index.name != "index" or not (is_uniform(zero) and is_uniform(last)) or isinstance(symbol.size, Size):
        return None
    if zero.name != "constant" or last.name != "constant" or zero.detail != 0:
        return None
    return index.expression if same(last.detail if isinstance(last.detail, int) else -1, symbol.size - 1) else None
