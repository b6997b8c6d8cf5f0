"""Whatever the table of tiles says, kernels mean the same: small tiles make every kind of them, in small tensors."""

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F  # noqa: N812  the field's name for it
from hypothesis import given, settings
from hypothesis import strategies as st

from plumbline.compiler.base.options import Options
from plumbline.compiler.codegen.triton import tiles
from plumbline.compiler.codegen.triton.launch_table import write_launch_table
from plumbline.compiler.graph.tracer import trace
from plumbline.compiler.lowering.lower import lower_graph
from plumbline.compiler.native import compile_graph
from plumbline.compiler.runtime.triton_interpreter import why_unavailable
from plumbline.compiler.schedule.execution_plan import plan_execution
from plumbline.compiler.schedule.schedule import schedule

TRITON = Options(strict=True, kernel_language="triton")
Function = Callable[[torch.Tensor, torch.Tensor, torch.Tensor], object]
PROGRAMS: dict[str, Function] = {
    "row by row": lambda x, row, i: x * row[:, None, None] + 1,
    "column by column": lambda x, row, i: (x - x[0, 0]).abs() * x[:, :1],
    "rows looked up": lambda x, row, i: x[i] * 2 - x[:1],
    "elements looked up": lambda x, row, i: x.reshape(-1)[i[:, None] + torch.arange(x.shape[2])] + 1,
    "every other": lambda x, row, i: x[:, :, ::2] + 1,
    "transposed": lambda x, row, i: (x.transpose(0, 2) * 2).contiguous(),
    "turned": lambda x, row, i: x.flip(2).roll(1, 0) * row[:, None, None],
    "softmax": lambda x, row, i: x.softmax(-1),
    "softmax of columns": lambda x, row, i: x.softmax(0),
    "sums": lambda x, row, i: (x.sum(), x.sum(0), x.sum((0, 1)), x.sum(-1), x.argmax(-1), x.amax((1, 2))),
    "norm": lambda x, row, i: F.layer_norm(x, x.shape[-1:]) * row[:, None, None],
    "so far": lambda x, row, i: (x * 2).cumsum(-1) + 1,
    "pooled": lambda x, row, i: F.max_pool2d(F.pad(x, (2, 1, 1, 2))[None], 3, 2, 1),
    "joined": lambda x, row, i: torch.cat([x, x[:, :, :2] * 2], 2).relu(),
}


@st.composite
def tables(draw: st.DrawFn) -> dict[str, object]:
    """Draw entries of the table, powers of two as there."""

    def power(least: int, most: int) -> int:
        return 1 << draw(st.integers(least, most))

    points = power(4, 7)
    return {
        "POINTS": points,
        "FEWEST_POINTS": min(points, power(4, 6)),
        "SCATTERED_POINTS": power(5, 6),
        "TILE": (power(3, 4), power(3, 4)),
        "LEAST_TILED": 4,
        "LEAST_FILLED": draw(st.sampled_from([2, 4, 16])),
        "LONGEST_WHOLE_ROW": power(3, 6),
        "ROW_STEP": power(2, 4),
        "WHOLE_COLUMN": power(2, 4),
        "COLUMN_TILE": (power(2, 3), power(2, 4)),
        "MANY_VALUES": draw(st.sampled_from([2, 20])),
        "ROWS_OF_MANY": power(2, 3),
        "LONGEST_UNSPLIT_ROW": power(4, 9),
        "PART_OF_ROW": power(3, 5),
        "LONGEST_UNSPLIT_COLUMN": power(3, 6),
        "PART_OF_COLUMN": power(2, 4),
        "MOST_PARTS": power(1, 4),
        "MOST_PARTS_OF_COLUMN": power(1, 4),
    }


SHAPES = st.tuples(st.integers(1, 9), st.integers(1, 7), st.sampled_from([2, 3, 8, 15, 16, 31, 33, 48, 64]))


def inputs(shape: tuple[int, int, int]) -> tuple[torch.Tensor, ...]:
    generator = torch.Generator().manual_seed(sum(shape))
    places = torch.randint(shape[0], (5,), generator=generator)
    return torch.randn(shape, generator=generator), torch.randn(shape[0], generator=generator), places


@pytest.mark.skipif(bool(why_unavailable()), reason=f"kernels cannot be interpreted: {why_unavailable()}")
@settings(max_examples=60)
@given(st.sampled_from(sorted(PROGRAMS)), tables(), SHAPES)
def test_kernels_give_what_eager_gives(name: str, table: dict[str, object], shape: tuple[int, int, int]) -> None:
    given, function = inputs(shape), PROGRAMS[name]
    wanted = function(*given)
    exact = function(given[0].double(), given[1].double(), given[2])
    with pytest.MonkeyPatch.context() as patch:
        for entry, value in table.items():
            patch.setattr(tiles, entry, value)
        found = compile_graph(trace(function, given), given, TRITON)(*given)
    rows = zip(found, *((each if isinstance(each, tuple) else (each,)) for each in (wanted, exact)), strict=True)
    for a, b, true in rows:
        assert isinstance(a, torch.Tensor)
        assert a.shape == b.shape
        assert a.dtype == b.dtype
        if not b.dtype.is_floating_point:
            assert torch.equal(a, b)
            continue
        greatest = float(given[0].abs().sum()) if name == "sums" else 8 * float(true.abs().max())
        noise = 8 * torch.finfo(torch.float32).eps * greatest
        assert float((a.double() - true).abs().max()) <= noise


def test_small_tables_make_every_kind_of_tile() -> None:
    kinds = set()
    with pytest.MonkeyPatch.context() as patch:
        small = {"POINTS": 16, "FEWEST_POINTS": 16, "SCATTERED_POINTS": 32, "TILE": (8, 8), "LEAST_TILED": 4}
        for entry, value in small.items():
            patch.setattr(tiles, entry, value)
        for function in PROGRAMS.values():
            given = inputs((8, 4, 32))
            plan = plan_execution(schedule(lower_graph(trace(function, given), scans=True), Options()))
            kinds |= {kernel.tiling.kind for kernel in write_launch_table(plan, tiles.DeviceFacts()).kernels}
    assert kinds == {"pointwise", "pieces", "tiles", "row", "column"}
