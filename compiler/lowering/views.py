"""Views: tensors that share memory; here only maps from index to index, so loops read straight through them.

The same call is kept as an ATen view for when a real tensor is asked for (outputs, externs): see `lower.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch

from ..base.torch_facts import OpOverload
from ..symbolic.expr import ZERO, add, as_expr, scale
from ..symbolic.index_space import reshape_index
from ..symbolic.symbolic_sizes import Extent, Size
from .registry import LoweringCall
from .writer import Index, LoopTensor, NoLowering, broadcast_index

aten = torch.ops.aten
View = Callable[[LoweringCall], LoopTensor | tuple[LoopTensor, ...]]
VIEWS: dict[OpOverload, View] = {}


def views(*operators: OpOverload) -> Callable[[View], View]:
    """Register the index map of view operators."""

    def register(rule: View) -> View:
        for operator in operators:
            VIEWS[operator] = rule
        return rule

    return register


@views(aten.view.default, aten._unsafe_view.default, aten.reshape.default)
def view_reshape(call: LoweringCall) -> LoopTensor:
    """Same elements in row-major order."""
    source, shape = call.tensor("self"), call.shape
    return source.seen(shape, lambda index: reshape_index(index, source.shape, shape))


@views(aten.alias.default, aten.detach.default, aten.lift_fresh.default)
def view_alias(call: LoweringCall) -> LoopTensor:
    """The same tensor."""
    return call.tensor("self")


def permuted(source: LoopTensor, order: Sequence[int]) -> LoopTensor:
    """Return the view whose dimension n is the source's dimension order[n]."""
    back = [order.index(n) for n in range(len(order))]
    return source.seen([source.shape[n] for n in order], lambda index: tuple(index[n] for n in back))


@views(aten.permute.default)
def view_permute(call: LoweringCall) -> LoopTensor:
    """Dimensions in another order."""
    source = call.tensor("self")
    return permuted(source, [dim % len(source.shape) for dim in call.integers("dims")])


@views(aten.transpose.int)
def view_transpose(call: LoweringCall) -> LoopTensor:
    """Two dimensions exchanged."""
    source = call.tensor("self")
    rank = len(source.shape)
    if not rank:
        return source
    order = list(range(rank))
    first, second = call.dimension(rank, "dim0"), call.dimension(rank, "dim1")
    order[first], order[second] = order[second], order[first]
    return permuted(source, order)


@views(aten.t.default)
def view_t(call: LoweringCall) -> LoopTensor:
    """Matrix transpose."""
    source = call.tensor("self")
    return permuted(source, list(range(len(source.shape)))[::-1])


@views(aten.expand.default)
def view_expand(call: LoweringCall) -> LoopTensor:
    """Size-one dimensions repeated."""
    source = call.tensor("self")
    return source.seen(call.shape, lambda index: broadcast_index(index, source.shape))


@views(aten.unsqueeze.default)
def view_unsqueeze(call: LoweringCall) -> LoopTensor:
    """A new dimension of size one."""
    source = call.tensor("self")
    dim = call.dimension(len(source.shape) + 1)
    return source.seen(call.shape, lambda index: index[:dim] + index[dim + 1 :])


@views(aten.squeeze.default, aten.squeeze.dim, aten.squeeze.dims)
def view_squeeze(call: LoweringCall) -> LoopTensor:
    """Dimensions of size one removed."""
    source = call.tensor("self")
    rank = len(source.shape)
    asked = (
        set(range(rank)) if "dim" not in call.arguments else {d % rank for d in call.integers("dim")} if rank else set()
    )
    gone = {n for n in asked if source.shape[n] == 1}

    def place(index: Index) -> Index:
        rest = iter(index)
        return tuple(ZERO if n in gone else next(rest) for n in range(rank))

    return source.seen(call.shape, place)


def sliced(source: LoopTensor, dim: int, start: Extent, step: int, length: Extent) -> LoopTensor:
    """Return the view of `length` elements from start in steps along one dimension."""
    shape = [*source.shape[:dim], length, *source.shape[dim + 1 :]]
    return source.seen(
        shape, lambda index: (*index[:dim], add(scale(index[dim], step), as_expr(start)), *index[dim + 1 :])
    )


def slice_start(call: LoweringCall, size: Extent) -> Extent:
    """Return the first element of a slice argument, clamped as Python clamps."""
    start = call.arguments.get("start")
    begin: Extent = start if isinstance(start, int | Size) else 0
    return min(max(begin + size if begin < 0 else begin, 0), size)


@views(aten.slice.Tensor)
def view_slice(call: LoweringCall) -> LoopTensor:
    """start:end:step along one dimension."""
    source = call.tensor("self")
    dim = call.dimension(len(source.shape))
    return sliced(source, dim, slice_start(call, source.shape[dim]), call.integer("step"), call.shape[dim])


def position(call: LoweringCall, size: Extent) -> Extent:
    """Return the index argument of a selection, counted from the start."""
    index = call.extent("index")
    return index + size if index < 0 else index


def selected(source: LoopTensor, dim: int, place: Extent) -> LoopTensor:
    """Return the view at one position of a dimension, which disappears."""
    shape = [*source.shape[:dim], *source.shape[dim + 1 :]]
    return source.seen(shape, lambda index: (*index[:dim], as_expr(place), *index[dim:]))


@views(aten.select.int)
def view_select(call: LoweringCall) -> LoopTensor:
    """One position of a dimension."""
    source = call.tensor("self")
    dim = call.dimension(len(source.shape))
    return selected(source, dim, position(call, source.shape[dim]))


def _pieces(call: LoweringCall, sizes: Sequence[Extent]) -> tuple[LoopTensor, ...]:
    source = call.tensor("self")
    dim = call.dimension(len(source.shape))
    starts: list[Extent] = [0]
    for size in sizes[:-1]:
        starts.append(starts[-1] + size)
    return tuple(sliced(source, dim, start, 1, size) for start, size in zip(starts, sizes, strict=True))


@views(aten.split.Tensor, aten.unsafe_split.Tensor)
def view_split(call: LoweringCall) -> tuple[LoopTensor, ...]:
    """Equal pieces, the last one shorter."""
    dim = call.integer("dim")
    return _pieces(call, [call.read.size(fake.shape[dim]) for fake in call.results])


@views(aten.split_with_sizes.default)
def view_split_with_sizes(call: LoweringCall) -> tuple[LoopTensor, ...]:
    """Pieces of given sizes."""
    return _pieces(call, call.extents("split_sizes"))


@views(aten.unbind.int)
def view_unbind(call: LoweringCall) -> tuple[LoopTensor, ...]:
    """Every position of a dimension."""
    source = call.tensor("self")
    if not source.shape:
        raise NoLowering("unbind of a scalar")
    dim = call.dimension(len(source.shape))
    return tuple(selected(source, dim, n) for n in range(len(call.results)))


@views(aten.diagonal.default)
def view_diagonal(call: LoweringCall) -> LoopTensor:
    """A diagonal as the last dimension."""
    source = call.tensor("self")
    rank = len(source.shape)
    first, second = call.dimension(rank, "dim1"), call.dimension(rank, "dim2")
    offset = call.integer("offset")
    down, right = max(-offset, 0), max(offset, 0)

    def place(index: Index) -> Index:
        rest = iter(index[:-1])
        chosen = {first: add(index[-1], as_expr(down)), second: add(index[-1], as_expr(right))}
        return tuple(chosen[n] if n in chosen else next(rest) for n in range(rank))

    return source.seen(call.shape, place)
