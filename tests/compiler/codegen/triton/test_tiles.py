"""What the table of tiles chooses, and that a row's arithmetic does not depend on how many rows there are."""

from collections.abc import Callable

import pytest
import torch

from plumbline.compiler.codegen.triton.tiles import Tiling
from support.triton_kernels import kernels_of


def tiling_of(function: Callable[..., object], *inputs: torch.Tensor) -> Tiling:
    return kernels_of(function, *inputs)[0].tiling


def test_what_is_chosen() -> None:
    large = torch.empty(4096, 1024)
    assert tiling_of(lambda x: x + 1, large) == Tiling("pointwise", 1024, 1, 0, whole=True, warps=4)
    assert tiling_of(lambda x: x + 1, large.double()).x == 512
    assert tiling_of(lambda x: x + 1, large[:4]).x == 128, "few points are shared among many programs"
    assert tiling_of(lambda x: (x.t() + 1).contiguous(), large).kind == "tiles"
    assert tiling_of(lambda x: x.softmax(-1), large) == Tiling("row", 1, 1, 1024, whole=True, warps=4)
    assert tiling_of(lambda x: x.softmax(-1), torch.empty(4, 16_384)).warps == 16
    assert tiling_of(lambda x: x.softmax(-1), torch.empty(4, 16_385)) == Tiling("row", 1, 1, 2048, whole=False, warps=8)
    assert tiling_of(lambda x: x.sum(0), large).kind == "column"


def test_a_tensor_of_a_row_each_does_not_decide_how_a_large_one_is_read() -> None:
    """The gradient of a layer norm's weight reads two numbers per row, and two tensors down their columns."""

    def weight_gradient(x: torch.Tensor, y: torch.Tensor, mean: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
        return ((x - mean) * scale * y).sum(0)

    large, rows = torch.empty(512, 1024), torch.empty(512, 1)
    assert tiling_of(weight_gradient, large, large, rows, rows).kind == "column"


def test_where_neighbours_read_what_is_apart_each_thread_has_one_point() -> None:
    scattered = Tiling("pointwise", 256, 1, 0, whole=True, warps=8)
    assert tiling_of(lambda x: torch.nn.functional.max_pool2d(x, 3, 2, 1), torch.empty(4, 8, 30, 30)) == scattered
    assert tiling_of(lambda x: x[:, ::2] + 1, torch.empty(1000, 300)).x == 256
    assert tiling_of(lambda x: x[:, 1:1025:2] + 1, torch.empty(1000, 1030)).kind == "pieces"
    row, places = torch.empty(4096), torch.zeros(64, 1000, dtype=torch.int64)
    assert tiling_of(lambda x, i: x[i] + 1, row, places) == scattered


def test_a_small_tensor_of_wide_elements_does_not_halve_the_block() -> None:
    table, places = torch.empty(50, 2048), torch.zeros(4096, dtype=torch.int64)
    assert tiling_of(lambda x, i: x[i] * 2, table, places) == Tiling("pieces", 1024, 1, 0, whole=True, warps=4)


@pytest.mark.parametrize("length", [5, 130, 1000, 5000, 40_000])
def test_a_row_is_added_in_one_order_whatever_the_batch_is(length: int) -> None:
    chosen = {tiling_of(lambda x: x.softmax(-1), torch.empty(rows, length)) for rows in (1, 2, 7, 64)}
    assert len(chosen) == 1


def test_nor_where_no_tensor_has_an_element_per_point() -> None:
    def products(rows: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
        return (rows[:, None] * weights).sum(1)

    assert len({tiling_of(products, torch.empty(rows), torch.empty(40)) for rows in (8, 30, 64, 5000)}) == 1


def test_equal_kernels_of_different_names_have_one_text() -> None:
    def program(x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return x.softmax(-1).mm(y), y.softmax(-1)

    first, second = kernels_of(program, torch.empty(64, 64), torch.empty(64, 64))
    assert first.text == second.text
    assert first.buffers != second.buffers


def test_offsets_are_of_64_bits_where_32_do_not_hold_them() -> None:
    wide = ".to(tl.int64)"
    assert wide not in kernels_of(lambda x: x + 1, torch.empty(2**10))[0].text
    x = torch.empty(1).expand(2**31 - 100)
    assert wide in kernels_of(lambda x: x.sum(), x)[0].text, "the last block reaches beyond 31 bits"
