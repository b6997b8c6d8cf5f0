"""The reductions of one kernel as C: accumulators, how values enter them, how lanes are joined at the end.

Long sums are taken in blocks whose totals are added with the rounding error carried along.
"""

from __future__ import annotations

from ..loops.body import Scalar
from ..loops.scalar_ops import identity
from ..symbolic.expr import Symbol
from ..symbolic.index_space import product
from ..symbolic.symbolic_sizes import Size, divides
from .c_types import REGISTER
from .c_values import ValueWriter

BLOCK = 64  # vector steps summed plainly before the total is carried over exactly


class ReductionWriter(ValueWriter):
    """Writes accumulators for one kernel."""

    def _is_long_sum(self, reduction: Scalar) -> bool:
        if reduction.kind != "sum" or not reduction.dtype.is_floating_point or not self.shape.inner:
            return False
        points = product(symbol.size for symbol in self.shape.inner)
        if isinstance(points, Size):  # blocks are right for few points too
            return True
        return points // max(self.step_of(self.shape.inner[-1]), 1) > BLOCK

    def _declare_accumulator(self, reduction: Scalar) -> str:
        name = f"acc{self.number[id(reduction)]}"
        kind = reduction.kind
        if kind.startswith("arg"):
            value = REGISTER[reduction.args[0].dtype]
            self.line(f"{self.library.type(value, 1)} {name} = 0; long long {name}_at = -1;")
            return name
        register = REGISTER[reduction.dtype]
        start = self.library.constant(identity(kind, reduction.dtype), register, self.inner_lanes)
        self.line(f"{self.library.type(register, self.inner_lanes)} {name} = {start};")
        if self._is_long_sum(reduction):
            zero = self.library.constant(0, register, self.inner_lanes)
            self.line(f"{self.library.type(register, self.inner_lanes)} {name}_lost = {zero};")
        return name

    def _accumulate(self, reduction: Scalar, accumulator: str, number: int, *, blocked: bool) -> None:
        value = self.value(reduction.args[0], self.inner_lanes, number)
        kind = reduction.kind
        if kind.startswith("arg"):
            self._accumulate_place(reduction, accumulator, value, self.value(reduction.args[1], 1, number))
            return
        register = REGISTER[reduction.dtype]
        vector = self.shape.vector
        if vector is not None and not self.shape.columns and not divides(self.shape.lanes, vector.size):
            value = self._masked(reduction, value, vector)
        target = f"{accumulator}_part" if blocked and self._is_long_sum(reduction) else accumulator
        self.line(f"{target} = {self.library.combine(kind, register, self.inner_lanes, target, value)};")

    def _masked(self, reduction: Scalar, value: str, vector: Symbol) -> str:
        """Give lanes that an overlapping last step counts again the identity of the reduction."""
        register, lanes = REGISTER[reduction.dtype], self.shape.lanes
        start = self._constant(identity(reduction.kind, reduction.dtype), register, lanes)
        return f"{self.library.select(register, lanes)}({self._new_lanes(vector)}, {value}, {start})"

    def _new_lanes(self, vector: Symbol) -> str:
        """Return the mask of lanes that the step before did not have."""
        lanes = self.shape.lanes
        mask = f"{vector.name}_new"
        if (id(vector), lanes) not in self.names:
            ints = self.library.type("i", lanes)
            steps = ", ".join(str(n) for n in range(lanes))
            splat = self.library.splat("i", lanes)
            self.line(
                f"{ints} {mask} = ({ints})(({ints}){{{steps}}} >= {splat}((int)({vector.name}_next - {vector.name})));"
            )
            self.names[id(vector), lanes] = mask
        return mask

    def _accumulate_place(self, reduction: Scalar, accumulator: str, value: str, place: str) -> None:
        """Keep the smallest place of the extreme; NaN is the extreme of all."""
        sign = ">" if reduction.kind == "argmax" else "<"
        better = f"{value} {sign} {accumulator}"
        equal = f"{value} == {accumulator}"
        if reduction.args[0].dtype.is_floating_point:
            better = f"({accumulator} == {accumulator} && ({better} || {value} != {value}))"
            equal = f"({equal} || ({value} != {value} && {accumulator} != {accumulator}))"
        self.line(f"if ({accumulator}_at < 0 || {better} || ({equal} && {place} < {accumulator}_at))")
        self.line(f"  {{ {accumulator} = {value}; {accumulator}_at = {place}; }}")

    def _finish(self, reduction: Scalar, accumulator: str) -> None:
        register, lanes = REGISTER[reduction.dtype], self.outer_lanes
        name = f"t{self.number[id(reduction)]}"
        kind = self.library.type(register, lanes)
        if reduction.kind.startswith("arg"):
            self.line(f"{kind} {name} = {accumulator}_at;")
        else:
            whole = accumulator
            if lanes != self.inner_lanes:
                if self._is_long_sum(reduction):
                    # lanes and their lost parts first; a lost part that is not a number means the sum overflowed
                    whole = self._with_lost(reduction, accumulator, self.inner_lanes)
                whole = f"{self.library.across(reduction.kind, register, self.inner_lanes)}({whole})"
            elif self._is_long_sum(reduction):
                whole = self._with_lost(reduction, accumulator, lanes)
            self.line(f"{kind} {name} = {whole};")
        self.names[id(reduction), lanes] = name

    def _with_lost(self, reduction: Scalar, accumulator: str, lanes: int) -> str:
        register = REGISTER[reduction.dtype]
        lost = f"{accumulator}_lost"
        known = f"{self.library.compare('eq', register, lanes)}({lost}, {lost})"
        return f"{self.library.select(register, lanes)}({known}, {accumulator} + {lost}, {accumulator})"
