"""The passes of one kernel as C: what each computes per point, and the blocks of its long sums."""

from __future__ import annotations

from dataclasses import dataclass

from ..loops.body import Scalar, is_uniform
from ..loops.phases import Phase, roots_of
from ..symbolic.expr import coefficient, constant, substitute
from ..symbolic.symbolic_sizes import count_text
from .c_index import offset_text
from .c_reductions import ReductionWriter
from .c_stores import StoreWriter
from .c_types import REGISTER
from .c_values import ValueWriter
from .flat_loops import crosses
from .kernel_text import BLOCK, KernelText


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
        for symbol in inner[:-1]:
            self.text.open_loop(symbol)
        blocked = self._opens_blocks(phase, accumulators)
        self._read_squares()
        if inner:
            self.text.open_innermost(inner[-1], blocked=blocked)
        else:
            self.text.line("{")  # a scope of its own, as a loop would give
            self.text.depth += 1
        for reduction, accumulator in zip(phase.reductions, accumulators, strict=True):
            self.reductions.accumulate(reduction, accumulator, number, blocked=blocked)
        for store in phase.stores:
            self.stores.store(store, self.text.inner_lanes, number)
        self.text.close()
        if blocked:
            self._close_blocks(phase, accumulators)
        for _ in inner[:-1]:
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

    def _opens_blocks(self, phase: Phase, accumulators: list[str]) -> bool:
        long = [(r, a) for r, a in zip(phase.reductions, accumulators, strict=True) if self.reductions.is_long_sum(r)]
        if not long:
            return False
        symbol = self.text.shape.inner[-1]
        width = BLOCK * self.text.step_of(symbol)
        self.text.line(
            f"for (long long {symbol.name}_block = 0; {symbol.name}_block < {symbol.size};"
            f" {symbol.name}_block += {width}) {{"
        )
        self.text.depth += 1
        for reduction, accumulator in long:
            kind = self.text.library.type(REGISTER[reduction.dtype], self.text.inner_lanes)
            zero = self.text.library.constant(0, REGISTER[reduction.dtype], self.text.inner_lanes)
            self.text.line(f"{kind} {accumulator}_part = {zero};")
        return True

    def _close_blocks(self, phase: Phase, accumulators: list[str]) -> None:
        """Add each block's total; the rounding error of the addition is carried (Knuth's two-sum)."""
        for reduction, accumulator in zip(phase.reductions, accumulators, strict=True):
            if self.reductions.is_long_sum(reduction):
                kind = self.text.library.type(REGISTER[reduction.dtype], self.text.inner_lanes)
                self.text.line(
                    f"{kind} {accumulator}_s = {accumulator} + {accumulator}_part,"
                    f" {accumulator}_b = {accumulator}_s - {accumulator};"
                )
                self.text.line(
                    f"{accumulator}_lost += ({accumulator} - ({accumulator}_s - {accumulator}_b))"
                    f" + ({accumulator}_part - {accumulator}_b);"
                )
                self.text.line(f"{accumulator} = {accumulator}_s;")
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
