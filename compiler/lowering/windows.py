"""Pooling and resizing of images by whole factors: each element from the few elements of a window.

Windows are written out, element by element, in the order in which eager's kernels walk them.  For a maximum, places in
the border are moved to the nearest place inside, which the window has anyway.
"""

from __future__ import annotations

import torch

from ..loops.body import Access, Scalar, ScalarBuilder
from ..loops.ir import Loop, LoopStore
from ..symbolic.expr import Expr, Symbol, as_expr, remainder, scale
from ..symbolic.symbolic_sizes import Extent, Size, same
from .indexing import as_expr_of, clamped, index_type, looked_up
from .registry import LoweringCall, lowers, opmath
from .writer import Index, LoopTensor, NoLowering, variables

aten = torch.ops.aten
B = ScalarBuilder
MOST_IN_WINDOW = 25  # more are left to ATen: each is written out


def _pair(call: LoweringCall, name: str, default: tuple[int, ...] = ()) -> tuple[int, int]:
    values = call.integers(name) or default
    if len(values) not in (1, 2):
        raise NoLowering(f"{name} is not one or two integers")
    return values[0], values[-1]


def _image(call: LoweringCall, source: LoopTensor) -> tuple[int, int]:
    """Return height and width; raises NoLowering for what is no image, has no elements or dynamic sizes."""
    if len(source.shape) not in (3, 4) or not source.dtype.is_floating_point:
        raise NoLowering("windows of something else than an image of floats")
    height, width = source.shape[-2:]
    if isinstance(height, Size) or isinstance(width, Size) or any(same(size, 0) for size in source.shape):
        raise NoLowering("windows of an image of dynamic size, or of nothing")
    del call
    return height, width


class _Window:
    """One pooling window: where its elements are."""

    def __init__(self, call: LoweringCall) -> None:
        self.source = call.tensor("self")
        self.sizes = _image(call, self.source)
        self.kernel = _pair(call, "kernel_size")
        self.stride = _pair(call, "stride", self.kernel)
        self.padding = _pair(call, "padding")
        self.dilation = _pair(call, "dilation") if "dilation" in call.arguments else (1, 1)
        self.output = call.shape[-2:]
        if self.kernel[0] * self.kernel[1] > MOST_IN_WINDOW or self.dilation != (1, 1):
            raise NoLowering("a window of many elements, or with gaps")

    def place(self, index: Index, axis: int, number: int) -> Expr:
        """Return where element `number` of the window along an axis is, the border counted as negative."""
        return scale(index[axis - 2], self.stride[axis]) + (number - self.padding[axis])

    def reaches_out(self, axis: int) -> bool:
        """Return whether some window has places outside the image."""
        last = self.output[axis]
        if isinstance(last, Size):
            return True
        end = (last - 1) * self.stride[axis] - self.padding[axis] + self.kernel[axis]
        return self.padding[axis] > 0 or end > self.sizes[axis]


def _extreme_element(b: B, window: _Window, index: Index, number: tuple[int, int]) -> tuple[Scalar, Scalar]:
    """Return the window's element, and its flat place in the image."""
    source, where, places, parts = window.source, list(index[:-2]), [], []
    kind = index_type(window.sizes[0] * window.sizes[1])
    for axis in (0, 1):
        place = window.place(index, axis, number[axis])
        if window.reaches_out(axis):
            at, _ = clamped(b, place, window.sizes[axis], axis)
            places.append(at)
            where.append(as_expr_of(at[0]))
            parts.append(b.cast(at[1], kind))
        else:
            where.append(place)
            parts.append(b.index(place, kind))
    flat = b.op("add", b.op("mul", parts[0], b.constant(window.sizes[1], kind)), parts[1])
    return source.looked_up(b, tuple(where), places), flat


@lowers(aten.max_pool2d_with_indices.default)
def lower_max_pool(call: LoweringCall) -> tuple[LoopTensor, ...]:
    """The greatest of each window and its first flat place; NaN wins, the last one."""
    window = _Window(call)
    if any(2 * padding > size for padding, size in zip(window.padding, window.kernel, strict=True)):
        raise NoLowering("a border wider than half a window")
    shape, dtype = call.shape, window.source.dtype
    symbols = variables("i", shape)
    index: Index = tuple(as_expr(symbol) for symbol in symbols)
    b = ScalarBuilder(call.writer.statement)
    best: Scalar | None = None
    best_place: Scalar | None = None
    for row in range(window.kernel[0]):
        for column in range(window.kernel[1]):
            element, place = _extreme_element(b, window, index, (row, column))
            element = b.cast(element, opmath(dtype))
            if best is None or best_place is None:
                best, best_place = element, place
                continue
            wins = b.op("bit_or", b.op("gt", element, best), b.op("ne", element, element))
            best, best_place = b.op("maximum", element, best), b.op("where", wins, place, best_place)
    if best is None or best_place is None:
        raise NoLowering("a window of nothing")
    results, stores = [], []
    for fake, value in zip(call.results, (best, best_place), strict=True):
        strides = call.read.sizes(fake.stride())
        buffer = call.writer.buffer(call.writer.fresh(call.name), shape, fake.dtype, strides)
        stores.append(LoopStore(Access(buffer.name, index), b.cast(value, fake.dtype)))
        results.append(LoopTensor(buffer.name, shape, fake.dtype))
    name = call.writer.fresh(f"loop_{results[0].buffer}")
    call.writer.steps.append(Loop(name, symbols, (), tuple(stores), call.writer.origins))
    return tuple(results)


@lowers(aten.avg_pool2d.default)
def lower_average_pool(call: LoweringCall) -> LoopTensor:
    """The sum of each window, in order, divided by how many elements it has."""
    window = _Window(call)
    if window.reaches_out(0) or window.reaches_out(1):
        raise NoLowering("an average over a border")
    count, inside = call.arguments.get("divisor_override"), opmath(window.source.dtype)
    divisor = count if isinstance(count, int) and count else window.kernel[0] * window.kernel[1]

    def element(b: B, index: Index) -> Scalar:
        places = [
            (window.place(index, 0, row), window.place(index, 1, column))
            for row in range(window.kernel[0])
            for column in range(window.kernel[1])
        ]
        total = _total(b, [b.cast(window.source.at(b, (*index[:-2], *place)), inside) for place in places])
        return b.op("div", total, b.constant(divisor, inside))

    return call.elements(element)


def _total(b: B, values: list[Scalar]) -> Scalar:
    total = b.constant(0, values[0].dtype)
    for value in values:
        total = b.op("add", total, value)
    return total


def _factors(call: LoweringCall, small: tuple[Extent, ...], large: tuple[Extent, ...]) -> tuple[int, int]:
    """Return by which whole factors an image grows; raises NoLowering for others."""
    factors = []
    for axis, name in ((-2, "scales_h"), (-1, "scales_w")):
        before, after, asked = small[axis], large[axis], call.arguments.get(name)
        if isinstance(before, Size) or isinstance(after, Size) or before == 0 or after % before:
            raise NoLowering("resizing by a dynamic factor or one that is not whole")
        factor = after // before
        if asked is not None and asked != factor:
            raise NoLowering("resizing with a factor of its own")
        # eager multiplies by the reciprocal, in floats
        step = torch.tensor(1.0 / factor if asked is not None else before / after, dtype=torch.float32)
        there = (torch.arange(after, dtype=torch.float32) * step).floor().long().clamp(max=before - 1)
        if factor > 2 and not torch.equal(there, torch.arange(after) // factor):
            raise NoLowering("resizing whose places eager rounds")
        factors.append(factor)
    return factors[0], factors[1]


@lowers(aten.upsample_nearest2d.default)
def lower_nearest(call: LoweringCall) -> LoopTensor:
    """Each element repeated by whole factors."""
    source = call.tensor("self")
    _image(call, source)
    factors = _factors(call, source.shape, call.shape)
    return call.elements(
        lambda b, i: source.at(b, (*i[:-2], i[-2] // factors[0], i[-1] // factors[1])),
    )


@lowers(aten.upsample_nearest2d_backward.default)
def lower_nearest_backward(call: LoweringCall) -> LoopTensor:
    """The sum of the gradients of an element's repetitions."""
    grad = call.tensor("grad_output")
    _image(call, grad)
    high, wide = _factors(call, call.shape, grad.shape)
    if high * wide > MOST_IN_WINDOW or grad.dtype not in (torch.float32, torch.float64):
        raise NoLowering("many repetitions, or half precision, which eager rounds at each step")

    def element(b: B, index: Index) -> Scalar:
        first, beside = scale(index[-2], high), scale(index[-1], wide)
        places = [(first + row, beside + column) for row in range(high) for column in range(wide)]
        return _total(b, [grad.at(b, (*index[:-2], *place)) for place in places])

    return call.elements(element)


def _between(b: B, place: Index, axis: int, factor: int, size: int) -> tuple[list[tuple[Symbol, Scalar]], list[Scalar]]:
    """Return the two places along an axis between which an element lies, kept inside, and the weight of each.

    In units of half an element of the result, position o lies at 2 o + 1 - factor of 2 factor.
    """
    at, kind = scale(place[axis - 2], 2) + (1 - factor), torch.int32
    first = clamped(b, at // (2 * factor), size, 2 * axis)[0]
    # beside the first, not beside where it would be: eager multiplies the second by zero there, which may be infinite
    beside = b.op("add", first[1], b.constant(1, first[1].dtype))
    beside = b.op("minimum", beside, b.constant(size - 1, beside.dtype))
    looked_up_pair = [first, looked_up(beside, size, 2 * axis + 1)]
    rest = b.cast(b.index(remainder(at, 2 * factor), kind), torch.float32)
    rest = b.op("div", rest, b.constant(2 * factor, torch.float32))
    before = b.op("lt", b.index(at, kind), b.constant(0, kind))  # the first element itself, and none before it
    rest = b.op("where", before, b.constant(0, torch.float32), rest)
    return looked_up_pair, [b.op("sub", b.constant(1, torch.float32), rest), rest]


@lowers(aten.upsample_bilinear2d.default)
def lower_bilinear(call: LoweringCall) -> LoopTensor:
    """The weighted mean of four neighbours, for factors whose places and weights are exact floats."""
    source = call.tensor("self")
    sizes = _image(call, source)
    factors = _factors(call, source.shape, call.shape)
    if call.arguments["align_corners"] or not set(factors) <= {2, 4} or source.dtype != torch.float32:
        raise NoLowering("bilinear resizing with aligned corners, of half precision, or by other factors than 2 and 4")

    def element(b: B, index: Index) -> Scalar:
        (rows, high), (columns, wide) = (_between(b, index, axis, factors[axis], sizes[axis]) for axis in (0, 1))

        def mean(values: list[Scalar], weights: list[Scalar]) -> Scalar:
            return b.op("fma", values[1], weights[1], b.op("mul", values[0], weights[0]))

        def at(row: tuple[Symbol, Scalar], column: tuple[Symbol, Scalar]) -> Scalar:
            where = (*index[:-2], as_expr_of(row[0]), as_expr_of(column[0]))
            return source.looked_up(b, where, [row, column])

        return mean([mean([at(row, column) for column in columns], wide) for row in rows], high)

    return call.elements(element)
