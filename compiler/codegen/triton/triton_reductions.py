"""The reductions of one kernel as Triton: tiles of accumulators, masked lanes, one tree at the end."""

from __future__ import annotations

import torch

from ...loops.body import Scalar
from ...loops.scalar_ops import identity
from .triton_library import COMBINE, extreme
from .triton_text import TritonText
from .triton_types import SMALL, VALUE, accumulator_type
from .triton_values import TritonValues

_LAST = 2**63 - 1  # a place behind all others


class TritonReductions:
    """Writes reductions into the text of a kernel."""

    def __init__(self, text: TritonText, values: TritonValues) -> None:
        self.text = text
        self.values = values

    def whole(self, reduction: Scalar) -> None:
        """Write a reduction of all points at once."""
        entered = self._entered(reduction)
        self._finish(reduction, entered)

    def declare(self, reduction: Scalar) -> None:
        """Write the accumulators of a reduction, before the loop over its points."""
        kind, name, tile = reduction.kind, self._accumulator(reduction), self.text.shape.tile
        start = _start(reduction)
        self.text.line(f"{name} = tl.full({tile}, {start}, {_counts_in(reduction)})")
        if kind.startswith("arg"):
            self.text.line(f"{name}_at = tl.full({tile}, {_LAST}, tl.int64)")

    def accumulate(self, reduction: Scalar) -> None:
        """Write how the points of one step enter the accumulators."""
        name = self._accumulator(reduction)
        entered = self._entered(reduction)
        if reduction.kind.startswith("arg"):
            called = f"{combine_of(reduction)}({name}, {name}_at, {entered[0]}, {entered[1]})"
            self.text.line(f"{name}, {name}_at = {called}")
        else:
            self.text.line(f"{name} = {combine_of(reduction)}({name}, {entered[0]})")

    def finish(self, reduction: Scalar) -> None:
        """Write what the accumulators give, after the loop."""
        name = self._accumulator(reduction)
        self._finish(reduction, [name, f"{name}_at"] if reduction.kind.startswith("arg") else [name])

    def _accumulator(self, reduction: Scalar) -> str:
        return f"acc{self.text.number[id(reduction)]}"

    def _entered(self, reduction: Scalar) -> list[str]:
        """Write the tile of a reduction's values, in which points beyond the end change nothing, and that of places."""
        name, kind = f"in{self.text.number[id(reduction)]}", _counts_in(reduction)
        value = self.values.value(reduction.args[0])
        source = reduction.args[0].dtype
        if reduction.dtype == torch.bool and source != torch.bool:
            value = f"({value} != 0)"
        shown = value if VALUE[source] == kind else f"{value}.to({kind})"
        self.text.line(f"{name} = {self._inside(shown, _start(reduction), kind)}")
        if not reduction.kind.startswith("arg"):
            return [name]
        place = f"{self.values.value(reduction.args[1])}.to(tl.int64)"
        self.text.line(f"{name}_at = {self._inside(place, str(_LAST), 'tl.int64')}")
        return [name, f"{name}_at"]

    def _inside(self, value: str, other: str, kind: str) -> str:
        tile = self.text.shape.tile
        spread = f"tl.broadcast_to({value}, {tile})"
        if "pr" not in self.text.shape.axes or not self.text.shape.is_ragged("pr"):
            return spread
        return f"tl.where(pr_in, {spread}, tl.full([1, 1], {other}, {kind}))"

    def _finish(self, reduction: Scalar, tiles: list[str]) -> None:
        name = f"t{self.text.number[id(reduction)]}"
        combine = combine_of(reduction)
        if reduction.kind.startswith("arg"):
            reduced = f"tl.reduce(({tiles[0]}, {tiles[1]}), 1, {combine}, keep_dims=True)"
            self.text.line(f"{name}_best, {name} = {reduced}")
        else:
            reduced = f"tl.reduce({tiles[0]}, 1, {combine}, keep_dims=True)"
            if reduction.dtype == torch.bool:
                reduced = f"({reduced} != 0)"
            elif reduction.dtype in SMALL:
                reduced = f"{reduced}.to({VALUE[reduction.dtype]})"
            self.text.line(f"{name} = {reduced}")
        self.text.names[id(reduction)] = name


def combine_of(reduction: Scalar) -> str:
    """Return the function that combines two values of a reduction."""
    kind = reduction.kind
    if reduction.dtype == torch.bool:
        kind = {"sum": "any", "max": "any", "prod": "all", "min": "all"}.get(kind, kind)
    if kind in ("max", "min"):
        return extreme(kind, is_float=reduction.dtype.is_floating_point)
    return COMBINE[kind]


def _counts_in(reduction: Scalar) -> str:
    """Return the type of the accumulators."""
    return accumulator_type(reduction.args[0].dtype if reduction.kind.startswith("arg") else reduction.dtype)


def _start(reduction: Scalar) -> str:
    """Return the value that changes nothing, as text; bools count as 0 and 1."""
    place = reduction.kind.startswith("arg")
    dtype = reduction.args[0].dtype if place else reduction.dtype
    start = identity(reduction.kind.removeprefix("arg"), dtype)
    if isinstance(start, float) and start in (float("inf"), float("-inf")):
        return f'float("{start}")'
    return str(int(start)) if not dtype.is_floating_point else repr(float(start))
