"""How loops are walked: merged variables, the vector variable, lanes, columns and tiles."""

from collections.abc import Callable

import pytest
import torch

from plumbline.compiler.base.options import Options
from plumbline.compiler.codegen.kernel_shape import KernelShape, shape_kernel
from plumbline.compiler.graph.tracer import trace
from plumbline.compiler.loops.ir import Loop
from plumbline.compiler.lowering.lower import lower_graph
from plumbline.compiler.schedule.schedule import schedule


def shape_of(function: Callable[..., object], *inputs: torch.Tensor, vector_bytes: int = 64) -> KernelShape:
    program = schedule(lower_graph(trace(function, inputs)), Options())
    (loop,) = (step for step in program.steps if isinstance(step, Loop))
    return shape_kernel(loop, program.buffers, vector_bytes)


def sizes(shape: KernelShape) -> tuple[list[int], list[int]]:
    return [symbol.size for symbol in shape.outer], [symbol.size for symbol in shape.inner]


def test_contiguous_dimensions_become_one() -> None:
    shape = shape_of(lambda x: x.sin() + 1, torch.zeros(4, 5, 6))
    assert sizes(shape) == ([], [120])
    assert shape.lanes == 16


def test_rows_are_reduced_along_lanes() -> None:
    shape = shape_of(lambda x: x.softmax(-1), torch.zeros(4, 5, 64))
    assert sizes(shape) == ([20], [64])
    assert not shape.columns


def test_columns_are_reduced_lane_by_lane() -> None:
    shape = shape_of(lambda x: x.sum(0), torch.zeros(50, 64))
    assert sizes(shape) == ([64], [50])
    assert shape.columns


@pytest.mark.parametrize(
    ("dtype", "vector_bytes", "lanes"),
    [
        (torch.float32, 64, 16),
        (torch.float64, 64, 8),
        (torch.bfloat16, 64, 16),
        (torch.int8, 64, 16),
        (torch.int64, 32, 4),
        (torch.float32, 32, 8),
        (torch.float32, 16, 4),
        (torch.float64, 16, 1),
    ],
)
def test_lanes_fit_the_widest_value(dtype: torch.dtype, vector_bytes: int, lanes: int) -> None:
    assert shape_of(lambda x: x + x, torch.zeros(100, dtype=dtype), vector_bytes=vector_bytes).lanes == lanes


@pytest.mark.parametrize(("count", "lanes"), [(1, 1), (3, 1), (4, 4), (7, 4), (8, 8), (15, 8), (16, 16), (17, 16)])
def test_short_rows_take_fewer_lanes(count: int, lanes: int) -> None:
    assert shape_of(lambda x: x * 2, torch.zeros(count)).lanes == lanes


def test_a_64_bit_value_of_the_row_costs_no_lanes() -> None:
    positions = torch.zeros(8, 1, dtype=torch.int64)
    assert shape_of(lambda x, i: x.scatter(1, i, 1.0), torch.zeros(8, 64), positions).lanes == 16


def test_transposed_reads_walk_in_tiles() -> None:
    shape = shape_of(lambda x, y: (x.t() + y).contiguous(), torch.zeros(64, 32), torch.zeros(32, 64))
    assert sizes(shape) == ([32 // 16], [64, 16])


def test_places_are_counted_in_scalar_code() -> None:
    assert shape_of(lambda x: x.argmax(1), torch.zeros(8, 64)).lanes == 1


def test_lanes_run_along_what_most_elements_need() -> None:
    """Four tensors of one number per channel do not make an image walk its channels."""

    def program(x: torch.Tensor, a: torch.Tensor, b: torch.Tensor, c: torch.Tensor, d: torch.Tensor) -> torch.Tensor:
        return ((x * a.view(-1, 1, 1) + b.view(-1, 1, 1)) * c.view(-1, 1, 1)) + d.view(-1, 1, 1)

    numbers = [torch.zeros(32) for _ in range(4)]
    shape = shape_of(program, torch.zeros(2, 32, 4, 8), *numbers)
    assert sizes(shape) == ([2, 32], [32])
    assert shape.tile is None

    def sums(g: torch.Tensor, x: torch.Tensor, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return (g * (x - a.view(-1, 1, 1))).sum((0, 2, 3)) * a * b

    reduced = shape_of(sums, torch.zeros(2, 32, 4, 8), torch.zeros(2, 32, 4, 8), *numbers[:2])
    assert not reduced.columns


def test_a_row_that_all_lanes_share_narrows_none_of_them() -> None:
    shape = shape_of(torch.nn.functional.embedding, torch.zeros(4, dtype=torch.int64), torch.zeros(9, 64))
    assert (sizes(shape), shape.lanes) == (([4], [64]), 16)
