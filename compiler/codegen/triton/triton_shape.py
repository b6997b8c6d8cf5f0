"""A loop over at most four variables of its own names: what a program's tile spans, and the offsets in them.

px: kept points along the tile; py: rows of a transposing tile; pz: what is left of the kept variables, one value per
program; pr: reduced points.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ...loops.body import Scalar, ScalarBuilder, walk
from ...loops.ir import Buffer, Loop, LoopStore
from ...loops.phases import Plan, plan_phases
from ...loops.scalar_ops import identity
from ...symbolic.expr import Atom, Expr, Quotient, Symbol, as_expr
from ...symbolic.index_space import product, unravel
from ...symbolic.symbolic_sizes import Extent, Size, divides, floor_quotient, same
from ..flat_loops import accesses_of, flattened, merged, ordered, with_accesses
from .tiles import DeviceFacts, Tiling, choose_tiling, crossing_variable

_MOST = 2**31 - 1


@dataclass(frozen=True, slots=True, eq=False)
class TritonShape:
    """A loop ready to be written: accesses have one offset in px, py, pz and pr.

    axes: the variables that exist, by name.  is_wide: whether offsets may leave 32 bits.
    """

    loop: Loop
    tiling: Tiling
    passes: Plan
    axes: dict[str, Symbol]
    is_wide: bool

    @property
    def rank(self) -> int:
        """How many dimensions tiles have."""
        return 1 if self.tiling.kind in ("pointwise", "pieces") else 2

    @property
    def tile(self) -> str:
        """The shape of a whole tile as text."""
        if self.rank == 1:
            return str([self.tiling.x])
        tiling = self.tiling
        return str([tiling.y, tiling.x] if tiling.kind == "tiles" else [tiling.x, tiling.r])

    def block(self, axis: str) -> int:
        """Return how many values of a variable a tile spans."""
        return {"px": self.tiling.x, "py": self.tiling.y, "pr": self.tiling.r}.get(axis, 1)

    def size(self, axis: str) -> Extent:
        """Return how many values a variable has in all."""
        return self.axes[axis].size if axis in self.axes else 1

    def is_ragged(self, axis: str) -> bool:
        """Whether a tile may reach beyond the variable's end."""
        return not divides(self.block(axis), self.size(axis))

    def blocks(self, axis: str) -> Extent:
        """Return into how many tiles a variable is cut."""
        size, block = self.size(axis), self.block(axis)
        return floor_quotient(size + block - 1, block)

    @property
    def programs(self) -> Extent:
        """How many programs there are."""
        return product(self.blocks(axis) for axis in ("px", "py", "pz"))


def shape_loop(loop: Loop, buffers: Mapping[str, Buffer], device: DeviceFacts) -> TritonShape:
    """Choose the tiling of a loop and write its offsets in the variables of the tile."""
    if any(same(symbol.size, 0) for symbol in loop.reduced):
        loop = _without_points(loop)
    loop = merged(flattened(loop, buffers))
    outer, inner = ordered(loop)
    kept, reduced = (outer, inner) if loop.reduced or loop.reduces else ((*outer, *inner), ())
    tiling = choose_tiling(loop, kept, reduced, buffers, device)
    mapping: dict[Symbol, Expr] = {}
    axes: dict[str, Symbol] = {}

    def flat(axis: str, variables: tuple[Symbol, ...]) -> None:
        axes[axis] = Symbol(axis, product(symbol.size for symbol in variables))
        digits = unravel(as_expr(axes[axis]), [symbol.size for symbol in variables])
        mapping.update(zip(variables, digits, strict=True))

    rows = crossing_variable(loop, kept) if tiling.kind == "tiles" else None
    if rows is not None:
        flat("py", (rows,))
        flat("pz", tuple(symbol for symbol in kept[:-1] if symbol is not rows))
        flat("px", kept[-1:])
    elif tiling.kind == "pieces":
        flat("pz", kept[:-1])
        flat("px", kept[-1:])
    else:
        flat("px", kept)
    if reduced:
        flat("pr", reduced)
    over = tuple(axes[axis] for axis in ("pz", "py", "px") if axis in axes)
    within = (axes["pr"],) if reduced else ()
    loop = with_accesses(loop, None, mapping, over, within)
    passes = plan_phases(loop)
    wide = any(_may_leave_32_bits(value, axes, tiling) for value in _expressions(loop, axes))
    return TritonShape(loop, tiling, passes, axes, wide)


def _without_points(loop: Loop) -> Loop:
    """Return a loop that reduces nothing as one that stores what is left: empty reductions, once per kept point."""
    inner = plan_phases(loop).inner
    builder, made = ScalarBuilder(), dict[int, Scalar]()
    stores = [store for store in loop.stores if id(store.value) not in inner]
    for scalar in walk(store.value for store in stores):
        if scalar.name == "reduce" and not scalar.kind.startswith("arg"):
            made[id(scalar)] = builder.constant(identity(scalar.kind, scalar.dtype), scalar.dtype)
        elif all(id(arg) in made for arg in scalar.args) and id(scalar) not in inner:
            args = tuple(made[id(arg)] for arg in scalar.args)
            made[id(scalar)] = builder.make(scalar.name, args, scalar.dtype, scalar.detail, scalar.origin)
    kept = tuple(LoopStore(store.access, made[id(store.value)], store.whole) for store in stores)
    return Loop(loop.name, loop.kept, (), kept, loop.origins)


def _expressions(loop: Loop, axes: Mapping[str, Symbol]) -> list[Expr]:
    offsets = [part for access in accesses_of(loop) for part in access.index]
    numbers = [scalar.expression for scalar in loop.scalars() if scalar.name == "index"]
    return [*offsets, *numbers, *map(as_expr, axes.values())]


def _may_leave_32_bits(value: Expr, axes: Mapping[str, Symbol], tiling: Tiling) -> bool:
    """Whether some part of an expression, masked lanes included, may be too large; open sizes always may."""
    found = _reach(value, max(tiling.x, tiling.y, tiling.r, 1))
    return found is None or found[1] > _MOST


def _reach(value: Expr, block: int) -> tuple[int, int] | None:
    """Return what an expression, and what any part of it, does not exceed in size; None with a dynamic size."""
    if isinstance(value.constant, Size):
        return None
    reach = most = abs(value.constant)
    for atom, factor in value.terms:
        inner = _atom_reach(atom, block)
        if inner is None or isinstance(factor, Size):
            return None
        reach += abs(factor) * inner[0]
        most = max(most, inner[1])
    return reach, max(most, reach)


def _atom_reach(atom: Atom, block: int) -> tuple[int, int] | None:
    if isinstance(atom, Symbol):
        return None if isinstance(atom.size, Size) else (atom.size + block,) * 2
    inner = _reach(atom.value, block)
    if inner is None or isinstance(atom.divisor, Size):
        return None
    own = inner[0] // atom.divisor + 1 if isinstance(atom, Quotient) else min(inner[0], atom.divisor)
    return own, max(inner[1], atom.divisor)
