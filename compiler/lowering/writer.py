"""LoopWriter: where lowerings put buffers and loops, and LoopTensor, how they name what they made.

A `LoopTensor` is a tensor of the graph as loops see it: a buffer and the map from an index into the tensor to an
index into the buffer.  Views are nothing but such maps; no loop is made for them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch

from ..loops.body import Access, Scalar, ScalarBuilder
from ..loops.ir import Buffer, Extern, Loop, LoopStore, Step
from ..symbolic.expr import ZERO, Expr, Symbol, as_expr
from ..symbolic.index_space import flat_position, row_major
from ..symbolic.symbolic_sizes import Extent, same

Index = tuple[Expr, ...]
Place = Callable[[Index], Index]
Element = Callable[[ScalarBuilder, Index], Scalar]


class NoLowering(Exception):
    """A call without loops; the reason is the text.  The caller emits an ATen call instead."""


def same_place(index: Index) -> Index:
    """Return the index itself: the tensor is the whole buffer."""
    return index


@dataclass(frozen=True, slots=True, eq=False)
class LoopTensor:
    """A tensor as loops see it; shape and dtype are the tensor's, place leads into the buffer."""

    buffer: str
    shape: tuple[Extent, ...]
    dtype: torch.dtype
    place: Place = same_place

    def at(self, builder: ScalarBuilder, index: Index) -> Scalar:
        """Return the element at an index [rank]."""
        return builder.load(self.buffer, self.place(index), self.dtype)

    def looked_up(self, builder: ScalarBuilder, index: Index, places: Sequence[tuple[Symbol, Scalar]]) -> Scalar:
        """Return the element at an index that contains variables whose values were read from memory."""
        used = tuple(sorted(places, key=lambda pair: pair[0].name))
        return builder.load(self.buffer, self.place(index), self.dtype, used)

    def seen(self, shape: Sequence[Extent], place: Place) -> LoopTensor:
        """Return a view: place maps an index into the new shape to an index into this tensor."""
        before = self.place
        return LoopTensor(self.buffer, tuple(shape), self.dtype, lambda index: before(place(index)))


def variables(prefix: str, sizes: Sequence[Extent]) -> tuple[Symbol, ...]:
    """Return loop variables `<prefix>0, <prefix>1, ...`."""
    return tuple(Symbol(f"{prefix}{n}", size) for n, size in enumerate(sizes))


def broadcast_index(index: Index, shape: Sequence[Extent]) -> Index:
    """Return the index into a tensor of `shape` for an index into what it broadcasts to."""
    tail = index[len(index) - len(shape) :]
    return tuple(ZERO if same(size, 1) else part for size, part in zip(shape, tail, strict=True))


def _unchanged(builder: ScalarBuilder, value: Scalar) -> Scalar:
    return value


@dataclass(frozen=True, slots=True, eq=False)
class Reduction:
    """The reduction of `element`, given for every point of a shape, over some of its dimensions.

    dims: non-negative, distinct.  kind: one of `scalar_ops.REDUCTIONS`.  accumulate: the dtype it runs in.
    finish: what is done with each result.  keepdim: whether reduced dimensions stay, with size 1.
    """

    shape: Sequence[Extent]
    dims: Sequence[int]
    kind: str
    accumulate: torch.dtype
    element: Element
    keepdim: bool = True
    finish: Callable[[ScalarBuilder, Scalar], Scalar] = _unchanged


@dataclass(frozen=True, slots=True, eq=False)
class Scan:
    """The results so far of `element`, given for every point of a shape, along one dimension.

    kind: one of `scalar_ops.SCANS`.  accumulate: the dtype it runs in, in which `element` is.
    """

    shape: Sequence[Extent]
    dim: int
    kind: str
    accumulate: torch.dtype
    element: Element


class LoopWriter:
    """Collects the buffers and steps of a program under construction.

    scans: whether kernels can be written for loops in which each result needs the one before it.
    """

    def __init__(self, *, scans: bool = False) -> None:
        self.scans = scans
        self.buffers: dict[str, Buffer] = {}
        self.steps: list[Step] = []
        self.origins: tuple[str, ...] = ()
        self.statement = ""  # the user's line and the operator that is lowered
        self._taken: dict[str, int] = {}

    def fresh(self, base: str) -> str:
        """Return a name not yet used that starts with base."""
        count = self._taken.get(base, 0)
        self._taken[base] = count + 1
        return base if count == 0 else self.fresh(f"{base}_{count}")

    def buffer(
        self, name: str, shape: Sequence[Extent], dtype: torch.dtype, strides: Sequence[Extent] | None = None
    ) -> Buffer:
        """Declare a buffer; row-major unless strides are given."""
        buffer = Buffer(name, dtype, tuple(shape), tuple(row_major(shape) if strides is None else strides))
        self.buffers[name] = buffer
        return buffer

    def loop(
        self,
        buffer: Buffer,
        kept: Sequence[Symbol],
        reduced: Sequence[Symbol],
        index: Index,
        value: Scalar,
        *,
        whole: bool = True,
    ) -> None:
        """Append a loop that stores one value per kept point."""
        store = LoopStore(Access(buffer.name, index), value, whole)
        name = self.fresh(f"loop_{buffer.name}")
        self.steps.append(Loop(name, tuple(kept), tuple(reduced), (store,), self.origins))

    def compute(
        self,
        shape: Sequence[Extent],
        dtype: torch.dtype,
        element: Element,
        *,
        name: str = "part",
        strides: Sequence[Extent] | None = None,
    ) -> LoopTensor:
        """Append a loop that gives every element of a new tensor."""
        buffer = self.buffer(self.fresh(name), shape, dtype, strides)
        symbols = variables("i", shape)
        index = tuple(as_expr(symbol) for symbol in symbols)
        builder = ScalarBuilder(self.statement)
        self.loop(buffer, symbols, (), index, builder.cast(element(builder, index), dtype))
        return LoopTensor(buffer.name, tuple(shape), dtype)

    def reduce(
        self,
        reduction: Reduction,
        *,
        dtype: torch.dtype,
        name: str = "part",
        strides: Sequence[Extent] | None = None,
    ) -> LoopTensor:
        """Append a loop that gives every element of a new tensor by a reduction."""
        shape, folded = reduction.shape, set(reduction.dims)
        kept = tuple(Symbol(f"i{n}", size) for n, size in enumerate(shape) if n not in folded)
        reduced = tuple(Symbol(f"r{n}", size) for n, size in enumerate(shape) if n in folded)
        by_name = {symbol.name: symbol for symbol in (*kept, *reduced)}
        index = tuple(as_expr(by_name[f"{'r' if n in folded else 'i'}{n}"]) for n in range(len(shape)))
        builder = ScalarBuilder(self.statement)
        place = None
        if reduction.kind.startswith("arg"):
            places = [index[n] for n in sorted(folded)]
            flat = flat_position(places, row_major([shape[n] for n in sorted(folded)]))
            place = builder.index(flat, torch.int64)
        element = reduction.element(builder, index)
        result = builder.reduce(reduction.kind, element, reduction.accumulate, place)
        left = [n for n in range(len(shape)) if reduction.keepdim or n not in folded]
        sizes: list[Extent] = [1 if n in folded else shape[n] for n in left]
        target = tuple(ZERO if n in folded else index[n] for n in left)
        buffer = self.buffer(self.fresh(name), sizes, dtype, strides)
        self.loop(buffer, kept, reduced, target, builder.cast(reduction.finish(builder, result), dtype))
        return LoopTensor(buffer.name, tuple(sizes), dtype)

    def scan(
        self,
        scanned: Scan,
        *,
        dtype: torch.dtype,
        name: str = "part",
        strides: Sequence[Extent] | None = None,
    ) -> LoopTensor:
        """Append a loop that gives every element of a new tensor by the reduction of those before it and itself."""
        shape, dim = scanned.shape, scanned.dim
        symbols = tuple(Symbol(f"{'r' if n == dim else 'i'}{n}", size) for n, size in enumerate(shape))
        index = tuple(as_expr(symbol) for symbol in symbols)
        builder = ScalarBuilder(self.statement)
        result = builder.scan(scanned.kind, scanned.element(builder, index), scanned.accumulate)
        buffer = self.buffer(self.fresh(name), shape, dtype, strides)
        kept = (*symbols[:dim], *symbols[dim + 1 :])
        self.loop(buffer, kept, symbols[dim : dim + 1], index, builder.cast(result, dtype))
        return LoopTensor(buffer.name, tuple(shape), dtype)

    def extern(self, step: Extern) -> None:
        """Append an ATen call."""
        self.steps.append(step)
