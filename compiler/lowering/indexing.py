"""Gathering by index tensors, joining, padding, and writing a piece into a copy.

Positions outside a piece are never read: the index is clamped into range first and the result then replaced, so a
load is always in bounds.  Index tensors are checked where they are used; out of range stops the graph.
"""

from __future__ import annotations

import itertools

import torch

from ..graph.exact_operators import ONE_HOT
from ..loops.body import Scalar, ScalarBuilder
from ..symbolic.expr import Expr, Symbol, add, as_expr, bounds, remainder, scale
from ..symbolic.symbolic_sizes import Extent, same
from .registry import LoweringCall, check_fits, lowers, opmath
from .views import position, slice_start
from .writer import Index, LoopTensor, NoLowering, broadcast_index, variables

aten = torch.ops.aten
B = ScalarBuilder
INDEX_TYPES = (torch.int64, torch.int32)


def looked_up(value: Scalar, size: Extent, number: int) -> tuple[Symbol, Scalar]:
    """Return a variable that stands for an index read from memory."""
    return Symbol(f"at{number}", size), value


@lowers(ONE_HOT)
def lower_one_hot(call: LoweringCall) -> LoopTensor:
    """One where the last index is the class; a class out of range stops the graph."""
    count = call.extent("num_classes")

    def element(b: B, index: Index) -> Scalar:
        member = b.checked(call.tensor("self").at(b, index[:-1]), count)
        return b.cast(b.op("eq", member, b.index(index[-1], torch.int64)), torch.int64)

    return call.elements(element)


def _joined(call: LoweringCall, parts: list[LoopTensor], dim: int) -> LoopTensor:
    """Append one loop per part, each writing its own region of the result."""
    if all(0 in part.shape for part in parts):
        raise NoLowering("nothing to join")
    fake = call.results[0]
    shape, strides = call.read.sizes(fake.shape), call.read.sizes(fake.stride())
    buffer = call.writer.buffer(call.writer.fresh(call.name), shape, fake.dtype, strides)
    start: Extent = 0
    for part in parts:
        if 0 in part.shape:
            continue
        symbols = variables("i", part.shape)
        index = tuple(as_expr(symbol) for symbol in symbols)
        b = ScalarBuilder(call.writer.statement)
        value = b.cast(part.at(b, index), fake.dtype)
        place = tuple(add(each, as_expr(start)) if n == dim else each for n, each in enumerate(index))
        call.writer.loop(buffer, symbols, (), place, value, whole=False)
        start = start + part.shape[dim]
    return LoopTensor(buffer.name, shape, fake.dtype)


def _tensors(call: LoweringCall) -> list[LoopTensor]:
    values = call.arguments["tensors"]
    if not isinstance(values, list | tuple):
        raise NoLowering("no list of tensors")
    tensors = [value for value in values if isinstance(value, LoopTensor)]
    if len(tensors) != len(values):
        raise NoLowering("a list with something else than tensors")
    return tensors


@lowers(aten.cat.default)
def lower_cat(call: LoweringCall) -> LoopTensor:
    """Tensors one after another along a dimension."""
    parts = [part for part in _tensors(call) if part.shape != (0,)]  # cat ignores empty one-dimensional tensors
    if not parts or len(parts) > 16:
        raise NoLowering("nothing or very many tensors to join")
    return _joined(call, parts, call.dimension(len(call.shape)))


@lowers(aten.stack.default)
def lower_stack(call: LoweringCall) -> LoopTensor:
    """Tensors one after another along a new dimension."""
    parts = _tensors(call)
    if len(parts) > 16:
        raise NoLowering("very many tensors to join")
    dim = call.dimension(len(call.shape))
    shape: tuple[Extent, ...] = tuple(1 if n == dim else size for n, size in enumerate(call.shape))
    return _joined(call, [part.seen(shape, lambda i: i[:dim] + i[dim + 1 :]) for part in parts], dim)


def _demand_elements(source: LoopTensor) -> None:
    """Leave what has no elements to eager, which refuses indices that are outside although it reads nothing."""
    if any(same(size, 0) for size in source.shape):
        raise NoLowering("rows without elements")


@lowers(aten.embedding.default)
def lower_embedding(call: LoweringCall) -> LoopTensor:
    """Rows of a matrix by number."""
    weight, indices = call.tensor("weight"), call.tensor("indices")
    if indices.dtype not in INDEX_TYPES:
        raise NoLowering("indices of another type")
    _demand_elements(weight)

    def element(b: B, index: Index) -> Scalar:
        row = looked_up(indices.at(b, index[: len(indices.shape)]), weight.shape[0], 0)
        return weight.looked_up(b, (as_expr_of(row[0]), index[-1]), [row])

    return call.elements(element)


def as_expr_of(symbol: Symbol) -> Expr:
    """Return a looked-up variable as an expression, kept even where its dimension has size one (it is checked)."""
    return Expr(((symbol, 1),), 0)


@lowers(aten.index_select.default)
def lower_index_select(call: LoweringCall) -> LoopTensor:
    """Positions of one dimension by number."""
    source, chosen = call.tensor("self"), call.tensor("index")
    if not source.shape or len(chosen.shape) != 1 or chosen.dtype not in INDEX_TYPES:
        raise NoLowering("index of another form")
    _demand_elements(source)
    dim = call.dimension(len(source.shape))

    def element(b: B, index: Index) -> Scalar:
        place = looked_up(chosen.at(b, (index[dim],)), source.shape[dim], 0)
        return source.looked_up(b, (*index[:dim], as_expr_of(place[0]), *index[dim + 1 :]), [place])

    return call.elements(element)


@lowers(aten.gather.default)
def lower_gather(call: LoweringCall) -> LoopTensor:
    """The element of each position whose place along one dimension is read from an index tensor."""
    source, chosen = call.tensor("self"), call.tensor("index")
    if not source.shape or chosen.dtype not in INDEX_TYPES or len(chosen.shape) != len(source.shape):
        raise NoLowering("index of another form")
    dim = call.dimension(len(source.shape))

    def element(b: B, index: Index) -> Scalar:
        place = looked_up(chosen.at(b, index), source.shape[dim], 0)
        return source.looked_up(b, (*index[:dim], as_expr_of(place[0]), *index[dim + 1 :]), [place])

    return call.elements(element)


@lowers(aten.index.Tensor)
def lower_index(call: LoweringCall) -> LoopTensor:
    """Advanced indexing by integer tensors; negative numbers count from the end."""
    source = call.tensor("self")
    indices = call.arguments["indices"]
    if not isinstance(indices, list | tuple):
        raise NoLowering("no list of indices")
    chosen = {n: value for n, value in enumerate(indices) if isinstance(value, LoopTensor)}
    if not chosen or any(value.dtype not in INDEX_TYPES for value in chosen.values()):
        raise NoLowering("masks select by ATen")
    places = sorted(chosen)
    together = all(second == first + 1 for first, second in itertools.pairwise(places))
    rank = max(len(value.shape) for value in chosen.values())
    first = places[0] if together else 0

    def element(b: B, index: Index) -> Scalar:
        picked, rest = index[first : first + rank], iter(index[:first] + index[first + rank :])
        chosen_places: list[tuple[Symbol, Scalar]] = []
        where: list[Expr] = []
        for n, size in enumerate(source.shape):
            if n not in chosen:
                where.append(next(rest))
                continue
            value = chosen[n].at(b, broadcast_index(picked, chosen[n].shape))
            zero, whole = b.constant(0, value.dtype), b.constant(size, value.dtype)
            value = b.op("where", b.op("lt", value, zero), b.op("add", value, whole), value)
            chosen_places.append(looked_up(value, size, n))
            where.append(as_expr_of(chosen_places[-1][0]))
        return source.looked_up(b, tuple(where), chosen_places)

    return call.elements(element)


def index_type(*sizes: Extent) -> torch.dtype:
    """Return the narrower integer type that holds sums and differences of such indexes."""
    return torch.int32 if all(size < 2**29 for size in sizes) else torch.int64


def clamped(b: B, part: Expr, size: Extent, number: int) -> tuple[tuple[Symbol, Scalar], Scalar]:
    """Return an index kept inside 0..size-1 as a looked-up variable, and whether it was inside at first."""
    low, high = bounds(part)
    kind = index_type(size, abs(low), abs(high))
    value = b.index(part, kind)
    zero, last = b.constant(0, kind), b.constant(size - 1, kind)
    inside = b.op("bit_and", b.op("ge", value, zero), b.op("le", value, last))
    return looked_up(b.op("minimum", b.op("maximum", value, zero), last), size, number), inside


@lowers(aten.constant_pad_nd.default)
def lower_pad(call: LoweringCall) -> LoopTensor:
    """A border of one value."""
    source, amounts, fill = call.tensor("self"), call.extents("pad"), call.number("value")
    if 0 in source.shape:
        raise NoLowering("padding of nothing")
    if not call.dtype.is_floating_point and isinstance(fill, float) and fill.is_integer():
        fill = int(fill)  # 0.0 is what `pad` gives where nobody says
    check_fits(fill, call.dtype)
    rank = len(source.shape)
    before = {rank - 1 - n: amounts[2 * n] for n in range(len(amounts) // 2)}

    def element(b: B, index: Index) -> Scalar:
        where: list[Expr] = []
        looked_up: list[tuple[Symbol, Scalar]] = []
        valid: Scalar | None = None
        for n, part in enumerate(index):
            moved = part - before.get(n, 0)
            if n not in before or (same(before[n], 0) and same(call.shape[n], source.shape[n])):
                where.append(moved)
                continue
            place, inside = clamped(b, moved, source.shape[n], n)
            looked_up.append(place)
            where.append(as_expr_of(place[0]))
            valid = inside if valid is None else b.op("bit_and", valid, inside)
        value = source.looked_up(b, tuple(where), looked_up)
        if valid is None:
            return value
        return b.op("where", valid, value, b.cast(b.constant(fill, opmath(call.dtype)), call.dtype))

    return call.elements(element)


def _written(
    call: LoweringCall, base: LoopTensor | None, piece: LoopTensor, dim: int, start: Extent, step: int
) -> LoopTensor:
    """Return base (or zeros) with a piece, same rank, written at start:start+step*n:step of one dimension."""
    if 0 in piece.shape:
        raise NoLowering("an empty piece")

    def element(b: B, index: Index) -> Scalar:
        offset = index[dim] - start
        place, inside = clamped(b, offset // step, piece.shape[dim], 0)
        if step > 1:
            exact = b.op("eq", b.index(remainder(offset, step), torch.int32), b.constant(0, torch.int32))
            inside = b.op("bit_and", inside, exact)
        value = piece.looked_up(b, (*index[:dim], as_expr_of(place[0]), *index[dim + 1 :]), [place])
        zero = b.cast(b.constant(0, opmath(call.dtype)), call.dtype)
        rest = zero if base is None else base.at(b, index)
        return b.op("where", inside, b.cast(value, call.dtype), rest)

    return call.elements(element)


@lowers(aten.slice_scatter.default)
def lower_slice_scatter(call: LoweringCall) -> LoopTensor:
    """A copy with a slice replaced."""
    base = call.tensor("self")
    dim = call.dimension(len(base.shape))
    start = slice_start(call, base.shape[dim])
    return _written(call, base, call.tensor("src"), dim, start, call.integer("step"))


@lowers(aten.slice_backward.default)
def lower_slice_backward(call: LoweringCall) -> LoopTensor:
    """Zeros with a slice replaced by the gradient."""
    dim = call.dimension(len(call.shape))
    start = slice_start(call, call.shape[dim])
    return _written(call, None, call.tensor("grad_output"), dim, start, call.integer("step"))


def _lifted(piece: LoopTensor, dim: int) -> LoopTensor:
    shape = (*piece.shape[:dim], 1, *piece.shape[dim:])
    return piece.seen(shape, lambda index: index[:dim] + index[dim + 1 :])


@lowers(aten.select_scatter.default)
def lower_select_scatter(call: LoweringCall) -> LoopTensor:
    """A copy with one position of a dimension replaced."""
    base = call.tensor("self")
    dim = call.dimension(len(base.shape))
    return _written(call, base, _lifted(call.tensor("src"), dim), dim, position(call, base.shape[dim]), 1)


@lowers(aten.select_backward.default)
def lower_select_backward(call: LoweringCall) -> LoopTensor:
    """Zeros with one position of a dimension replaced by the gradient."""
    dim = call.dimension(len(call.shape))
    piece = _lifted(call.tensor("grad_output"), dim)
    return _written(call, None, piece, dim, position(call, call.shape[dim]), 1)


@lowers(aten.flip.default)
def lower_flip(call: LoweringCall) -> LoopTensor:
    """Some dimensions backwards."""
    source = call.tensor("self")
    turned = {dim % len(source.shape) for dim in call.integers("dims")} if source.shape else set()

    def element(b: B, index: Index) -> Scalar:
        return source.at(
            b, tuple(add(scale(p, -1), as_expr(source.shape[n] - 1)) if n in turned else p for n, p in enumerate(index))
        )

    return call.elements(element)


@lowers(aten.repeat.default)
def lower_repeat(call: LoweringCall) -> LoopTensor:
    """The tensor tiled."""
    source = call.tensor("self")
    if 0 in source.shape:
        raise NoLowering("repeat of nothing")

    def element(b: B, index: Index) -> Scalar:
        tail = index[len(index) - len(source.shape) :]
        return source.at(b, tuple(remainder(part, size) for part, size in zip(tail, source.shape, strict=True)))

    return call.elements(element)


def _triangle(call: LoweringCall, keep: str) -> LoopTensor:
    source, diagonal = call.tensor("self"), call.integer("diagonal")

    def element(b: B, index: Index) -> Scalar:
        kind = index_type(*call.shape, abs(diagonal))
        gap = b.op("sub", b.index(index[-1], kind), b.index(index[-2], kind))
        condition = b.op(keep, gap, b.constant(diagonal, kind))
        zero = b.cast(b.constant(0, opmath(call.dtype)), call.dtype)
        return b.op("where", condition, source.at(b, index), zero)

    return call.elements(element)


@lowers(aten.tril.default)
def lower_tril(call: LoweringCall) -> LoopTensor:
    """The lower triangle."""
    return _triangle(call, "le")


@lowers(aten.triu.default)
def lower_triu(call: LoweringCall) -> LoopTensor:
    """The upper triangle."""
    return _triangle(call, "ge")


@lowers(aten.scatter.value)
def lower_scatter_number(call: LoweringCall) -> LoopTensor:
    """A copy with one position per row set to a number (an index of size one along the dimension)."""
    base, chosen, number = call.tensor("self"), call.tensor("index"), call.number("value")
    if not base.shape or chosen.dtype not in INDEX_TYPES:
        raise NoLowering("index of another form")
    dim = call.dimension(len(base.shape))
    if chosen.shape != (*base.shape[:dim], 1, *base.shape[dim + 1 :]):
        raise NoLowering("several positions per row")
    check_fits(number, call.dtype)

    def element(b: B, index: Index) -> Scalar:
        kind = index_type(base.shape[dim])
        place = b.cast(b.checked(chosen.at(b, broadcast_index(index, chosen.shape)), base.shape[dim]), kind)
        filling = b.cast(b.constant(number, opmath(call.dtype)), call.dtype)
        return b.op("where", b.op("eq", b.index(index[dim], kind), place), filling, base.at(b, index))

    return call.elements(element)
