"""The stores of one kernel as C: whole vectors where elements are neighbours, else lane by lane."""

from __future__ import annotations

from dataclasses import dataclass

from ..loops.ir import LoopStore
from ..symbolic.expr import coefficient, substitute
from .c_index import lane_names, lane_variable, offset_text
from .c_types import REGISTER
from .c_values import ValueWriter
from .flat_loops import is_one
from .kernel_text import KernelText


@dataclass(frozen=True, slots=True, eq=False)
class StoreWriter:
    """Writes stores into the text of a kernel."""

    text: KernelText
    values: ValueWriter

    def store_due(self, level: int) -> None:
        """Write the stores of kept points that are possible from a level on."""
        for due, store in self.text.plan.passes.kept_stores:
            if due == level:
                self.store(store, self.text.outer_lanes, level)

    def store(self, store: LoopStore, lanes: int, number: int) -> None:
        """Write one store of that many lanes, in the pass of a number."""
        with self.text.statements_of(store.value):
            self._store(store, lanes, number)

    def _store(self, store: LoopStore, lanes: int, number: int) -> None:
        value = self.values.value(store.value, lanes, number)
        dtype = self.text.buffers[store.access.buffer].dtype
        offset, pointer = store.access.index[0], self.text.pointer(store.access.buffer)
        vector = self.text.shape.vector
        factor = coefficient(offset, vector) if vector is not None and lanes > 1 else 0
        if lanes == 1 or is_one(factor):
            self.text.line(f"{self.text.memory.store(dtype, lanes)}({pointer} + {offset_text(offset, {})}, {value});")
            return
        if vector is None:
            raise ValueError("vector store without a vector variable")
        written = f"w{self.text.plan.number[id(store.value)]}_{len(self.text.lines)}"
        self.text.line(f"{self.text.library.type(REGISTER[dtype], lanes)} {written} = {value};")
        moved = substitute(offset, {vector: lane_variable(vector)})
        scalar = self.text.memory.store(dtype, 1)
        self.text.line(
            f"for (int lane = 0; lane < {lanes}; lane++)"
            f" {scalar}({pointer} + {offset_text(moved, lane_names(vector))}, {written}[lane]);"
        )
