"""How a loop is cut into programs and tiles on a GPU: the table of heuristics.

`choose_tiling` is pure, and this file is the whole table; docs/triton.md gives the measurements behind each row.  What
changes the order of an addition (the block of the reduced variable, the warps of a row) depends on the row's length and
never on the number of rows: the same row gives the same bits in every batch.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ...loops.ir import Buffer, Loop
from ...symbolic.expr import Expr, Symbol, coefficient, symbols
from ...symbolic.index_space import product
from ...symbolic.symbolic_sizes import Extent, hint_of, same
from ..flat_loops import accesses_of, crosses, depending_on, elements_of, is_one

POINTS = 1024  # points of a pointwise program: 8 per thread of 4 warps, so that a 2-byte load is 16 bytes wide
SCATTERED_POINTS = 256  # one per thread: with several each, a warp's reads of every other element are of many lines
FEWEST_POINTS = 128  # one point per thread of 4 warps; smaller programs cost more to start than they run
TILE = (64, 32)  # of transposed reads: both sides whole cache lines of 4-byte elements, 8 KB between them
LONGEST_WHOLE_ROW = 16_384  # 16 warps and 64 registers; twice as long spills registers at 4 warps
ROW_STEP = 2048  # points of a longer row read at once: 32 registers at 8 warps
WHOLE_COLUMN = 64  # a column no longer than this is held at once
COLUMN_TILE = (32, 64)  # contiguous columns by rows read at once; 48 registers
POINTS_PER_THREAD = 32  # more of a row held by one thread spills registers
MANY_VALUES = 20  # with more, a thread holds few points: BERT's dropout and norm, 24 values, spills at 8 points
FEW_POINTS_PER_THREAD = 4
LONGEST_WHOLE_ROW_OF_MANY = 4096
ROWS_OF_MANY = 16  # of a column read at once: batch norm backward with 16 tensors took 216 registers at 64
LONGEST_UNSPLIT_ROW = 65_536  # shorter ones are read by one program faster than more kernels are launched
PART_OF_ROW = LONGEST_WHOLE_ROW  # points of a row in each part, which is held whole
LONGEST_UNSPLIT_COLUMN = 1024  # 16 steps of rows; a column's program covers few columns, so there are few programs
PART_OF_COLUMN = 256
MOST_PARTS = 2048  # some for each multiprocessor of the largest devices; the kernel that joins them holds them at once
MOST_PARTS_OF_COLUMN = WHOLE_COLUMN  # the kernel that joins them holds them at once
LEAST_FILLED = 16  # of so many lanes one may be idle, where the row is then one number per program
LEAST_TILED = 16  # a side shorter than half a cache line is not worth a tile


@dataclass(frozen=True, slots=True)
class DeviceFacts:
    """What a kernel depends on besides the loop.

    multiprocessors: of the device (132 on an H100 or H200).  stops_at_zero: whether eager raises there for a whole
    number divided by zero, as it does on a CPU.
    """

    multiprocessors: int = 132
    stops_at_zero: bool = False


@dataclass(frozen=True, slots=True)
class Tiling:
    """The choice for one loop.

    kind: `pointwise`, `pieces` of rows, `tiles`, `row` or `column`.  x: points of kept variables in a program, a power
    of two; y: rows of a transposing tile, else 1; r: points of reduced variables read at once, 0 without any.  whole:
    whether r spans all of them, so that later passes need not read again.  warps: of 32 threads.
    """

    kind: str
    x: int
    y: int
    r: int
    whole: bool
    warps: int


def power_of_two(number: int) -> int:
    """Return the least power of two that is no less than a number, and at least one."""
    return 1 << max(number - 1, 0).bit_length()


def choose_tiling(
    loop: Loop,
    kept: tuple[Symbol, ...],
    reduced: tuple[Symbol, ...],
    buffers: Mapping[str, Buffer],
    device: DeviceFacts,
) -> Tiling:
    """Return how a flattened loop is cut; kept, reduced: its variables, the most contiguous of each last."""
    points = product(symbol.size for symbol in kept)
    if reduced or loop.reduces:
        return _reducing(loop, kept, reduced, hint_of(points))
    if crossing_variable(loop, kept) is not None:
        return Tiling("tiles", TILE[0], TILE[1], 0, whole=True, warps=4)
    count = hint_of(points)
    if kept and _is_scattered(loop, kept[-1]):
        kind = "pieces" if len(kept) > 1 and _fills(kept[-1].size, SCATTERED_POINTS) else "pointwise"
        return Tiling(kind, SCATTERED_POINTS, 1, 0, whole=True, warps=SCATTERED_POINTS // 32)
    whole = [access for access in accesses_of(loop) if 2 * elements_of(access) >= count] or accesses_of(loop)
    block = POINTS // 2 if max(buffers[access.buffer].dtype.itemsize for access in whole) == 8 else POINTS
    while block > FEWEST_POINTS and count < 2 * device.multiprocessors * block:
        block //= 2
    if len(kept) > 1 and _fills(kept[-1].size, block):
        return Tiling("pieces", block, 1, 0, whole=True, warps=4)
    return Tiling("pointwise", min(block, power_of_two(count)), 1, 0, whole=True, warps=4)


def _is_scattered(loop: Loop, across: Symbol) -> bool:
    """Whether neighbouring points read what is not side by side in memory: every other element, or looked-up places."""
    changing = depending_on(loop, frozenset({across}))
    for load in loop.loads():
        if any(id(arg) in changing for arg in load.args):
            return True
        step = coefficient(load.access.index[0], across)
        if step is not None and not same(step, 0) and not is_one(step):
            return True
    return False


def _fills(length: Extent, block: int) -> bool:
    """Whether blocks that never cross the end of a row waste few lanes: their row is one number per program then."""
    return isinstance(length, int) and 0 <= -length % block <= length // LEAST_FILLED


def crossing_variable(loop: Loop, kept: tuple[Symbol, ...]) -> Symbol | None:
    """Return the variable along which some load is contiguous that is not contiguous where the stores are."""
    if len(kept) < 2 or hint_of(kept[-1].size) < LEAST_TILED:
        return None
    across = kept[-1]
    if not all(is_one(coefficient(store.access.index[0], across)) for store in loop.stores):
        return None
    for symbol in reversed(kept[:-1]):
        plain = all(coefficient(access.index[0], symbol) is not None for access in accesses_of(loop))
        crossed = any(crosses(load.access, symbol, across) for load in loop.loads())
        if hint_of(symbol.size) >= LEAST_TILED and plain and crossed:
            return symbol
    return None


def _reducing(loop: Loop, kept: tuple[Symbol, ...], reduced: tuple[Symbol, ...], points: int) -> Tiling:
    length: Extent = product(symbol.size for symbol in reduced)
    many = sum(1 for _ in loop.scalars()) > MANY_VALUES
    if reads_columns(loop, kept, reduced):
        x = min(COLUMN_TILE[0], power_of_two(points))
        rows = ROWS_OF_MANY if many else COLUMN_TILE[1]
        if isinstance(length, int) and length <= min(rows, WHOLE_COLUMN):
            return Tiling("column", x, 1, power_of_two(length), whole=True, warps=4)
        return Tiling("column", x, 1, rows, whole=False, warps=4)
    longest, held = (
        (LONGEST_WHOLE_ROW_OF_MANY, FEW_POINTS_PER_THREAD) if many else (LONGEST_WHOLE_ROW, POINTS_PER_THREAD)
    )
    if isinstance(length, int) and length <= longest:
        block = power_of_two(length)
        x = max(1, POINTS // block)
        warps = min(16, max(4, x * block // (32 * held)))
        return Tiling("row", x, 1, block, whole=True, warps=warps)
    return Tiling("row", 1, 1, ROW_STEP, whole=False, warps=8)


def parts_of_reduction(length: int, *, columns: bool) -> int:
    """Return into how many parts a reduction of so many points is cut, one where it is not.

    From its length alone: the number of rows would change the order of a row's additions.
    """
    unsplit, part, most = (
        (LONGEST_UNSPLIT_COLUMN, PART_OF_COLUMN, MOST_PARTS_OF_COLUMN)
        if columns
        else (LONGEST_UNSPLIT_ROW, PART_OF_ROW, MOST_PARTS)
    )
    return 1 if length <= unsplit else min(most, power_of_two(-(-length // part)))


def reads_columns(loop: Loop, kept: tuple[Symbol, ...], reduced: tuple[Symbol, ...]) -> bool:
    """Whether neighbouring kept points, and not neighbouring reduced ones, are neighbours in most of what is read.

    The mean of each row is nothing beside the tensor that it is the mean of: where some loads have an element per
    point, they alone count.  How many rows there are does not.
    """
    if not kept or not reduced or hint_of(kept[-1].size) < 4:
        return False
    offsets = [load.access.index[0] for load in loop.loads()]
    ends = {kept[-1], reduced[-1]}
    counted = [offset for offset in offsets if ends <= symbols(offset)] or offsets
    across = sum(_steps_by_one(offset, reduced[-1]) for offset in counted)
    down = sum(_steps_by_one(offset, kept[-1]) for offset in counted)
    return down > across


def _steps_by_one(offset: Expr, symbol: Symbol) -> bool:
    factor = coefficient(offset, symbol)
    return factor is not None and same(factor, 1)
