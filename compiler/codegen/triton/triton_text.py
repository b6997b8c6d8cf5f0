"""The text of one Triton kernel in the making: lines, names in scope, masks, offsets, numbers that it is given."""

from __future__ import annotations

from collections.abc import Mapping

from ...loops.body import Access, Scalar
from ...loops.ir import Buffer
from ...loops.ranges import ranges_of
from ...symbolic.expr import Atom, Expr, Quotient, Symbol, bounds, is_zero, symbols
from ...symbolic.symbolic_sizes import Extent, same, surely_at_least
from .triton_shape import TritonShape


class TritonText:
    """One kernel while it is written.

    names: of values, by id.  buffer_order: the buffers, in the order in which the kernel takes them.  sizes: the open
    sizes it is given, in order.  needs_flag: whether it reports faults; stops_at_zero: whether a
    division by zero is one.
    """

    def __init__(self, shape: TritonShape, buffers: Mapping[str, Buffer], *, stops_at_zero: bool) -> None:
        self.shape = shape
        self.buffers = buffers
        self.lines: list[str] = []
        self.depth = 1
        self.names: dict[int, str] = {}
        self.number = {id(scalar): number for number, scalar in enumerate(shape.loop.scalars())}
        self.buffer_order: list[str] = []
        self.sizes: list[Extent] = []
        self.stops_at_zero = stops_at_zero
        self.needs_flag = False
        self.axes_of = _axes_of(shape)
        self.ranges = ranges_of([store.value for store in shape.loop.stores])

    def line(self, text: str) -> None:
        """Append a line at the present depth."""
        self.lines.append("    " * self.depth + text)

    def pointer(self, buffer: str) -> str:
        """Return the parameter for a buffer, which is called by its place: equal kernels get equal text."""
        if buffer not in self.buffer_order:
            self.buffer_order.append(buffer)
        return f"p{self.buffer_order.index(buffer)}"

    def extent(self, value: Extent) -> str:
        """Return a size as text; an open one is a parameter of the kernel, computed by the host."""
        if isinstance(value, int):
            return str(value)
        for number, known in enumerate(self.sizes):
            if same(known, value):
                return f"n{number}"
        self.sizes.append(value)
        return f"n{len(self.sizes) - 1}"

    # -- offsets -------------------------------------------------------------------------------------------------------

    def index(self, value: Expr, names: Mapping[str, str]) -> str:
        """Return an index expression over tiles; what no tile takes part in is a tile of one element all the same."""
        parts = []
        for atom, factor in value.terms:
            shown = self._atom(atom, names)
            parts.append(shown if same(factor, 1) else f"{self.extent(factor)} * {shown}")
        if not is_zero(value.constant) or not parts:
            parts.append(self.extent(value.constant))
        tiled = any(symbol.name != "pz" for symbol in symbols(value))
        return " + ".join(parts if tiled else ["zero", *parts])

    def _atom(self, atom: Atom, names: Mapping[str, str]) -> str:
        if isinstance(atom, Symbol):
            return names.get(atom.name, atom.name)
        inner, divisor = self.index(atom.value, names), self.extent(atom.divisor)
        if surely_at_least(bounds(atom.value)[0], 0):  # Triton's own division rounds towards zero
            return f"(({inner}) {'//' if isinstance(atom, Quotient) else '%'} {divisor})"
        function = "floor_quotient" if isinstance(atom, Quotient) else "floor_remainder"
        return f"{function}({inner}, {divisor})"

    # -- masks ---------------------------------------------------------------------------------------------------------

    def mask(self, axes: frozenset[str], *further: str) -> str:
        """Return the conjunction of the masks of ragged variables and further ones; empty where there is none."""
        ragged = [f"{axis}_in" for axis in ("py", "px", "pr") if axis in axes and self.shape.is_ragged(axis)]
        return " & ".join([*ragged, *further])

    def masked_argument(self, axes: frozenset[str], *further: str) -> str:
        """Return the mask as the last argument of a store."""
        mask = self.mask(axes, *further)
        return f", mask={mask}" if mask else ""

    def report(self, code: int, bad: str, axes: frozenset[str]) -> None:
        """Write that a fault is reported where `bad` holds inside the loop."""
        self.needs_flag = True
        mask = self.mask(axes)
        self.line(f"report(flag, {code}, ({bad}){f' & {mask}' if mask else ''})")


def _axes_of(shape: TritonShape) -> dict[int, frozenset[str]]:
    """Return by which variables of the tile each value changes."""
    found: dict[int, frozenset[str]] = {}
    for scalar in shape.loop.scalars():
        axes = frozenset[str]().union(*(found[id(arg)] for arg in scalar.args))
        if scalar.name == "reduce":
            axes -= {"pr"}
        elif scalar.name == "scan":
            axes |= frozenset(shape.axes) & {"px", "pr"}
        elif scalar.name == "load":
            axes |= axes_of_access(scalar.access)
        elif scalar.name == "index":
            axes |= {symbol.name for symbol in symbols(scalar.expression)} & {"px", "py", "pr"}
        found[id(scalar)] = axes
    return found


def axes_of_access(access: Access) -> frozenset[str]:
    """Return the variables of the tile in an access's offset."""
    return frozenset(symbol.name for part in access.index for symbol in symbols(part)) & {"px", "py", "pr"}


def detail_extent(scalar: Scalar) -> Extent:
    """Return the size that a `checked` value must stay below."""
    if isinstance(scalar.detail, str | Access | Expr | float) or scalar.detail is None:
        raise TypeError(f"{scalar.detail!r} is not a size")
    return scalar.detail
