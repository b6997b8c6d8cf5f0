"""The reductions of one kernel as C: accumulators, how values enter them, how lanes are joined at the end.

Long sums are taken in blocks whose totals are added with the rounding error carried along.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..loops.body import Scalar
from ..loops.scalar_ops import identity
from ..symbolic.expr import Symbol
from ..symbolic.symbolic_sizes import Size, divides
from .c_types import REGISTER
from .c_values import ValueWriter
from .kernel_text import BLOCK, KernelText


@dataclass(frozen=True, slots=True, eq=False)
class ReductionWriter:
    """Writes accumulators into the text of a kernel."""

    text: KernelText
    values: ValueWriter

    def is_long_sum(self, reduction: Scalar) -> bool:
        """Return whether a sum is taken in blocks."""
        if reduction.kind != "sum" or not reduction.dtype.is_floating_point or not self.text.shape.inner:
            return False
        points = self.text.shape.pass_points
        if isinstance(points, Size):  # blocks are right for few points too
            return True
        return points // max(self.text.step_of(self.text.shape.inner[-1]), 1) > BLOCK

    def declare(self, reduction: Scalar) -> str:
        """Declare the accumulator of a reduction; returns its name."""
        with self.text.statements_of(reduction):
            return self._declare(reduction)

    def _declare(self, reduction: Scalar) -> str:
        name = f"acc{self.text.plan.number[id(reduction)]}"
        kind = reduction.kind
        if kind.startswith("arg"):
            value = REGISTER[reduction.args[0].dtype]
            self.text.line(f"{self.text.library.type(value, 1)} {name} = 0; long long {name}_at = -1;")
            return name
        register = REGISTER[reduction.dtype]
        start = self.text.library.constant(identity(kind, reduction.dtype), register, self.text.inner_lanes)
        self.text.line(f"{self.text.library.type(register, self.text.inner_lanes)} {name} = {start};")
        if self.is_long_sum(reduction):
            zero = self.text.library.constant(0, register, self.text.inner_lanes)
            self.text.line(f"{self.text.library.type(register, self.text.inner_lanes)} {name}_lost = {zero};")
        return name

    def accumulate(self, reduction: Scalar, accumulator: str, number: int, *, blocked: bool) -> None:
        """Let a value enter its accumulator."""
        with self.text.statements_of(reduction):
            self._accumulate(reduction, accumulator, number, blocked=blocked)

    def _accumulate(self, reduction: Scalar, accumulator: str, number: int, *, blocked: bool) -> None:
        value = self.values.value(reduction.args[0], self.text.inner_lanes, number)
        kind = reduction.kind
        if kind.startswith("arg"):
            self._accumulate_place(reduction, accumulator, value, self.values.value(reduction.args[1], 1, number))
            return
        register = REGISTER[reduction.dtype]
        vector = self.text.shape.vector
        if vector is not None and not self.text.shape.columns and not divides(self.text.shape.lanes, vector.size):
            value = self.masked(reduction, value, vector)
        target = f"{accumulator}_part" if blocked and self.is_long_sum(reduction) else accumulator
        self.text.line(f"{target} = {self.text.library.combine(kind, register, self.text.inner_lanes, target, value)};")

    def masked(self, reduction: Scalar, value: str, vector: Symbol) -> str:
        """Give lanes that an overlapping last step counts again the identity of the reduction."""
        register, lanes = REGISTER[reduction.dtype], self.text.shape.lanes
        start = self.text.constant(identity(reduction.kind, reduction.dtype), register, lanes)
        return f"{self.text.library.select(register, lanes)}({self.new_lanes(vector)}, {value}, {start})"

    def new_lanes(self, vector: Symbol) -> str:
        """Return the mask of lanes that the step before did not have."""
        lanes = self.text.shape.lanes
        mask = f"{vector.name}_new"
        if (id(vector), lanes) not in self.text.names:
            ints = self.text.library.type("i", lanes)
            steps = ", ".join(str(n) for n in range(lanes))
            splat = self.text.library.splat("i", lanes)
            self.text.line(
                f"{ints} {mask} = ({ints})(({ints}){{{steps}}} >= {splat}((int)({vector.name}_next - {vector.name})));"
            )
            self.text.names[id(vector), lanes] = mask
        return mask

    def _accumulate_place(self, reduction: Scalar, accumulator: str, value: str, place: str) -> None:
        """Keep the smallest place of the extreme; NaN is the extreme of all."""
        sign = ">" if reduction.kind == "argmax" else "<"
        better = f"{value} {sign} {accumulator}"
        equal = f"{value} == {accumulator}"
        if reduction.args[0].dtype.is_floating_point:
            better = f"({accumulator} == {accumulator} && ({better} || {value} != {value}))"
            equal = f"({equal} || ({value} != {value} && {accumulator} != {accumulator}))"
        self.text.line(f"if ({accumulator}_at < 0 || {better} || ({equal} && {place} < {accumulator}_at))")
        self.text.line(f"  {{ {accumulator} = {value}; {accumulator}_at = {place}; }}")

    def finish(self, reduction: Scalar, accumulator: str) -> None:
        """Name what a reduction gives, with its lanes joined."""
        with self.text.statements_of(reduction):
            self._finish(reduction, accumulator)

    def _finish(self, reduction: Scalar, accumulator: str) -> None:
        register, lanes = REGISTER[reduction.dtype], self.text.outer_lanes
        name = f"t{self.text.plan.number[id(reduction)]}"
        kind = self.text.library.type(register, lanes)
        if reduction.kind.startswith("arg"):
            self.text.line(f"{kind} {name} = {accumulator}_at;")
        else:
            whole = accumulator
            if lanes != self.text.inner_lanes:
                if self.is_long_sum(reduction):
                    # lanes and their lost parts first; a lost part that is not a number means the sum overflowed
                    whole = self.with_lost(reduction, accumulator, self.text.inner_lanes)
                whole = f"{self.text.library.across(reduction.kind, register, self.text.inner_lanes)}({whole})"
            elif self.is_long_sum(reduction):
                whole = self.with_lost(reduction, accumulator, lanes)
            self.text.line(f"{kind} {name} = {self.wrapped(reduction, whole, lanes)};")
        self.text.names[id(reduction), lanes] = name

    def wrapped(self, reduction: Scalar, whole: str, lanes: int) -> str:
        """Return what an accumulator gives: those of small integers count on in 32 bits, and readers take no memory."""
        wrap = self.text.library.wrap(reduction.dtype, lanes) if reduction.kind in ("sum", "prod") else None
        return f"{wrap}({whole})" if wrap else whole

    def with_lost(self, reduction: Scalar, accumulator: str, lanes: int) -> str:
        """Return a long sum with what rounding lost added again."""
        register = REGISTER[reduction.dtype]
        lost = f"{accumulator}_lost"
        known = f"{self.text.library.compare('eq', register, lanes)}({lost}, {lost})"
        return f"{self.text.library.select(register, lanes)}({known}, {accumulator} + {lost}, {accumulator})"
