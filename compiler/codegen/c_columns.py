"""Reductions of many columns as C: rows are read whole, with a row of accumulators per group of columns."""

from __future__ import annotations

from dataclasses import dataclass

from ..loops.body import Scalar
from ..loops.phases import Phase
from ..loops.scalar_ops import identity
from ..symbolic.expr import Symbol
from ..symbolic.symbolic_sizes import Size, divides, hint_of
from .c_reductions import ReductionWriter
from .c_stores import StoreWriter
from .c_types import ELEMENT, REGISTER, number_text
from .c_values import PLAIN, ValueWriter
from .kernel_plan import COLUMNS
from .kernel_text import BLOCK, KernelText


@dataclass(frozen=True, slots=True, eq=False)
class ColumnWriter:
    """Writes the loops of a reduction over rows into the text of a kernel."""

    text: KernelText
    values: ValueWriter
    reductions: ReductionWriter
    stores: StoreWriter

    def write(self) -> None:
        """Write the loops: groups of columns outside, rows inside, columns innermost."""
        vector, lanes = self.text.shape.vector, self.text.shape.lanes
        if vector is None or self.text.plan.chunks is None:
            raise ValueError("columns without a vector variable")
        (phase,) = self.text.plan.passes.phases
        for symbol in self.text.shape.outer[:-1]:
            self.text.open_loop(symbol)
        chunks = self.text.plan.chunks.size
        # the last chunk takes the rest, so none is narrower than a vector
        width = 2 * COLUMNS if isinstance(vector.size, Size) else vector.size - hint_of(chunks - 1) * COLUMNS
        first, last = ("begin", "end") if self.text.plan.shared is self.text.plan.chunks else ("0", str(chunks))
        self.text.line(f"for (long long chunk = {first}; chunk < {last}; chunk++) {{")
        self.text.depth += 1
        end = f"chunk == {chunks - 1} ? {vector.size} : ({COLUMNS}LL*chunk + {COLUMNS})"
        self.text.line(f"const long long column0 = {COLUMNS}LL*chunk, column1 = {end};")
        long = [reduction for reduction in phase.reductions if self.reductions.is_long_sum(reduction)]
        for reduction in phase.reductions:
            self._declare_row(f"acc{self.text.plan.number[id(reduction)]}", reduction, width)
        for reduction in long:
            self._declare_row(f"acc{self.text.plan.number[id(reduction)]}_lost", reduction, width)
        for symbol in self.text.shape.inner[:-1]:
            self.text.open_loop(symbol)
        rows = self.text.shape.inner[-1]
        if long:
            self.text.line(
                f"for (long long {rows.name}_block = 0; {rows.name}_block < {rows.size};"
                f" {rows.name}_block += {BLOCK}) {{"
            )
            self.text.depth += 1
            for reduction in long:
                self._declare_row(f"acc{self.text.plan.number[id(reduction)]}_part", reduction, width)
        self.text.open_innermost(rows, blocked=bool(long))
        self._open_columns(vector, lanes)
        outer_names = dict(self.text.names)
        for reduction in phase.reductions:
            self._accumulate_row(reduction, vector, part=reduction in long)
        for store in phase.stores:
            self.stores.store(store, lanes, 0)
        self.text.close()
        self.text.close()
        self.text.names = outer_names
        if long:
            self._carry_rows(long, vector, lanes)
            self.text.close()
        for _ in self.text.shape.inner[:-1]:
            self.text.close()
        self._finish_rows(phase, long, vector, lanes)
        self.text.close()
        for _ in self.text.shape.outer[:-1]:
            self.text.close()

    def _declare_row(self, name: str, reduction: Scalar, width: int) -> None:
        register = REGISTER[reduction.dtype]
        start = number_text(
            0 if name.endswith(("_lost", "_part")) else identity(reduction.kind, reduction.dtype), register
        )
        self.text.line(f"{ELEMENT[register]} {name}[{width}] __attribute__((aligned(64)));")
        self.text.line(f"for (int k = 0; k < {width}; k++) {name}[k] = {start};")

    def _open_columns(self, vector: Symbol, lanes: int) -> None:
        name = vector.name
        last = f"column1 - {lanes}"
        self.text.line(f"for (long long {name}_next = column0; {name}_next < column1; {name}_next += {lanes}) {{")
        self.text.depth += 1
        self.text.line(f"const long long {name} = {name}_next > {last} ? {last} : {name}_next;")

    def _row_place(self, name: str, vector: Symbol) -> str:
        return f"({name} + {vector.name} - column0)"

    def _accumulate_row(self, reduction: Scalar, vector: Symbol, *, part: bool) -> None:
        register, lanes = REGISTER[reduction.dtype], self.text.shape.lanes
        value = self.values.value(reduction.args[0], lanes, 0)
        if not divides(lanes, vector.size):  # an overlapping last step must not count its columns twice
            value = self.reductions.masked(reduction, value, vector)
        row = self._row_place(f"acc{self.text.plan.number[id(reduction)]}{'_part' if part else ''}", vector)
        plain = PLAIN[register]
        before = f"{self.text.memory.load(plain, lanes)}({row})"
        joined = self.text.library.combine(reduction.kind, register, lanes, before, value)
        self.text.line(f"{self.text.memory.store(plain, lanes)}({row}, {joined});")

    def _carry_rows(self, long: list[Scalar], vector: Symbol, lanes: int) -> None:
        self._open_columns(vector, lanes)
        for reduction in long:
            register = REGISTER[reduction.dtype]
            name, plain = f"acc{self.text.plan.number[id(reduction)]}", PLAIN[register]
            kind, load, store = (
                self.text.library.type(register, lanes),
                self.text.memory.load(plain, lanes),
                self.text.memory.store(plain, lanes),
            )
            whole, part, lost = (self._row_place(f"{name}{ending}", vector) for ending in ("", "_part", "_lost"))
            new = None if divides(lanes, vector.size) else self.reductions.new_lanes(vector)
            zero = self.text.constant(0, register, lanes)
            columns = (
                f"{load}({part})"
                if new is None
                else f"{self.text.library.select(register, lanes)}({new}, {load}({part}), {zero})"
            )
            self.text.line(f"{kind} {name}_a = {load}({whole}), {name}_p = {columns};")
            self.text.line(f"{kind} {name}_s = {name}_a + {name}_p, {name}_b = {name}_s - {name}_a;")
            self.text.line(
                f"{store}({lost}, {load}({lost}) + (({name}_a - ({name}_s - {name}_b)) + ({name}_p - {name}_b)));"
            )
            self.text.line(f"{store}({whole}, {name}_s);")
        self.text.close()
        self.text.names = {key: name for key, name in self.text.names.items() if key[0] != id(vector)}

    def _finish_rows(self, phase: Phase, long: list[Scalar], vector: Symbol, lanes: int) -> None:
        self._open_columns(vector, lanes)
        outer_names = dict(self.text.names)
        for reduction in phase.reductions:
            register = REGISTER[reduction.dtype]
            accumulator, name = f"acc{self.text.plan.number[id(reduction)]}", f"t{self.text.plan.number[id(reduction)]}"
            kind, load = self.text.library.type(register, lanes), self.text.memory.load(PLAIN[register], lanes)
            whole = self.reductions.wrapped(reduction, f"{load}({self._row_place(accumulator, vector)})", lanes)
            self.text.line(f"{kind} {name} = {whole};")
            if reduction in long:
                self.text.line(f"{kind} {name}_lost = {load}({self._row_place(f'{accumulator}_lost', vector)});")
                self.text.line(f"{name} = {self.reductions.with_lost(reduction, name, lanes)};")
            self.text.names[id(reduction), lanes] = name
        self.stores.store_due(0)
        self.stores.store_due(1)
        self.text.close()
        self.text.names = outer_names
