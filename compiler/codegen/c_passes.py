"""The passes of one kernel as C: what each computes per point, and the blocks of its long sums."""

from __future__ import annotations

from dataclasses import dataclass

from ..loops.body import Scalar, is_uniform
from ..loops.phases import Phase, roots_of
from ..symbolic.expr import coefficient, constant, substitute
from ..symbolic.symbolic_sizes import Size, count_text
from .c_index import offset_text
from .c_reductions import ReductionWriter
from .c_stores import StoreWriter
from .c_types import REGISTER
from .c_values import ValueWriter
from .flat_loops import crosses
from .kernel_text import BLOCK, KernelText

_UNROLLED = 8  # steps of a short row without a jump between


@dataclass(frozen=True, slots=True, eq=False)
class PassWriter:
    """Writes passes into the text of a kernel."""

    text: KernelText
    values: ValueWriter
    reductions: ReductionWriter
    stores: StoreWriter

    def write(self) -> None:
        """Write the loops of all passes, kept variables outside."""
        self.values.declare_stashes()
        for symbol in self.text.shape.outer:
            self.text.open_loop(symbol)
        for number, phase in enumerate(self.text.plan.passes.phases):
            self.stores.store_due(number)
            self._write_pass(number, phase)
        self.stores.store_due(len(self.text.plan.passes.phases))
        for _ in self.text.shape.outer:
            self.text.close()

    def _write_pass(self, number: int, phase: Phase) -> None:
        if not phase.reductions and not phase.stores:
            return
        self._hoist(phase)
        accumulators = [self.reductions.declare(reduction) for reduction in phase.reductions]
        outer_names = dict(self.text.names)
        inner = self.text.shape.inner
        rows = self._short_rows()
        for symbol in inner[: -2 if rows else -1]:
            self.text.open_loop(symbol)
        blocked = self._opens_blocks(phase, accumulators, rows)
        self._read_squares()
        if blocked and rows:
            self._open_row(phase, accumulators, rows)
        elif inner:
            if rows:
                self.text.open_loop(inner[-2])
            self.text.open_innermost(inner[-1], blocked=blocked)
        else:
            self.text.line("{")  # a scope of its own, as a loop would give
            self.text.depth += 1
        for reduction, accumulator in zip(phase.reductions, accumulators, strict=True):
            self.reductions.accumulate(reduction, accumulator, number, blocked=blocked)
        for store in phase.stores:
            self.stores.store(store, self.text.inner_lanes, number)
        self.text.close()
        if blocked and rows:
            self._close_row(phase, accumulators)
        if blocked:
            self._close_blocks(phase, accumulators, "rows" if rows else "part")
        for _ in inner[: -2 if blocked and rows else -1]:
            self.text.close()
        self.text.names = outer_names
        for reduction, accumulator in zip(phase.reductions, accumulators, strict=True):
            self.reductions.finish(reduction, accumulator)

    def _read_squares(self) -> None:
        """Read what is transposed in memory as squares, row by row, and turn them in registers."""
        tile, vector, lanes = self.text.shape.tile, self.text.shape.vector, self.text.inner_lanes
        if tile is None or vector is None:
            return
        for load in self.text.shape.loop.loads():
            access = load.access
            if access.looked_up or not crosses(access, tile, vector):
                continue
            stride = coefficient(access.index[0], vector) or 0
            register = REGISTER[load.dtype]
            name = self.values.squares[id(load)] = f"q{self.text.plan.number[id(load)]}"
            start = offset_text(substitute(access.index[0], {tile: constant(0)}), {})
            self.text.line(f"{self.text.library.type(register, lanes)} {name}[{lanes}];")
            place = f"{self.text.pointer(access.buffer)} + {start} + {count_text(stride)}*k"
            read = f"{self.text.memory.load(load.dtype, lanes)}({place})"
            self.text.line(f"for (int k = 0; k < {lanes}; k++) {name}[k] = {read};")
            self.text.line(f"{self.text.library.transpose(register, lanes)}({name});")

    def _short_rows(self) -> int:
        """Return how many rows, innermost loops of a few steps, make one block of a long sum; 0: each has blocks."""
        inner, vector = self.text.shape.inner, self.text.shape.vector
        if len(inner) < 2 or isinstance(inner[-1].size, Size) or vector is inner[-2]:
            return 0
        steps = -(-inner[-1].size // self.text.step_of(inner[-1]))
        return BLOCK // steps if 0 < steps <= BLOCK // 2 else 0

    def _long_sums(self, phase: Phase, accumulators: list[str]) -> list[tuple[str, str, str]]:
        """Return of each long sum its accumulator, with the C type and zero of that."""
        library, lanes = self.text.library, self.text.inner_lanes
        pairs = zip(phase.reductions, accumulators, strict=True)
        long = [(REGISTER[r.dtype], accumulator) for r, accumulator in pairs if self.reductions.is_long_sum(r)]
        return [(name, library.type(kind, lanes), library.constant(0, kind, lanes)) for kind, name in long]

    def _opens_blocks(self, phase: Phase, accumulators: list[str], rows: int) -> bool:
        """Open the loop over blocks of the innermost variable, or of so many rows, where there are long sums."""
        long = self._long_sums(phase, accumulators)
        if not long:
            return False
        symbol = self.text.shape.inner[-2 if rows else -1]
        self.text.open_blocks(symbol, rows or BLOCK * self.text.step_of(symbol))
        for accumulator, kind, zero in long:
            self.text.line(f"{kind} {accumulator}_{'rows' if rows else 'part'} = {zero};")
        return True

    def _open_row(self, phase: Phase, accumulators: list[str], rows: int) -> None:
        """Open the loops over the rows of a block and over one row; sums of rows do not wait for each other."""
        *_, row, column = self.text.shape.inner
        self.text.open_part(row, rows)
        for accumulator, kind, zero in self._long_sums(phase, accumulators):
            self.text.line(f"{kind} {accumulator}_part = {zero};")
        self.text.line(f"#pragma GCC unroll {_UNROLLED}")
        self.text.open_loop(column)

    def _close_row(self, phase: Phase, accumulators: list[str]) -> None:
        for accumulator, _, _ in self._long_sums(phase, accumulators):
            self.text.line(f"{accumulator}_rows += {accumulator}_part;")
        self.text.close()

    def _close_blocks(self, phase: Phase, accumulators: list[str], total: str) -> None:
        """Add each block's total; the rounding error of the addition is carried (Knuth's two-sum)."""
        for name, kind, _ in self._long_sums(phase, accumulators):
            self.text.line(f"{kind} {name}_s = {name} + {name}_{total}, {name}_b = {name}_s - {name};")
            self.text.line(f"{name}_lost += ({name} - ({name}_s - {name}_b)) + ({name}_{total} - {name}_b);")
            self.text.line(f"{name} = {name}_s;")
        self.text.close()

    def _hoist(self, phase: Phase) -> None:
        """Compute values of kept points that the pass needs, and repeat them over lanes, before its loops."""
        border: dict[int, Scalar] = {}  # what lanes take
        rows: list[Scalar] = []
        seen: set[int] = set()
        stack = list(roots_of(phase))
        while stack:
            scalar = stack.pop()
            if id(scalar) in seen:
                continue
            seen.add(id(scalar))
            if id(scalar) not in self.text.plan.inner:
                if not is_uniform(scalar):
                    border[id(scalar)] = scalar
            else:
                if self.values.places.kept(scalar):
                    rows.append(scalar)
                stack.extend(self.values.places.inner_arguments(scalar))
        for scalar in border.values():
            self.values.value(scalar, self.text.outer_lanes, 0)
            if (id(scalar), self.text.inner_lanes) not in self.text.names:
                self.values.repeat(scalar)
        for scalar in rows:
            self.values.places.emit_kept(scalar)
