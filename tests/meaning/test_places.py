"""Elements read where an index tensor or a computed place says: rows of a table, pieces, borders, shifted copies."""

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F  # noqa: N812  the field's name for it

from plumbline.compiler.graph.tracer import trace
from plumbline.compiler.native import compile_graph
from support.backend_levels import STRICT, as_tuple, run_levels, same_form

pytestmark = pytest.mark.cc


def assert_levels_equal(program: Callable[..., object], *inputs: torch.Tensor) -> None:
    wanted = as_tuple(program(*inputs))
    for level, outputs in run_levels(program, inputs).items():
        for found, want in zip(outputs, wanted, strict=True):
            assert isinstance(found, torch.Tensor)
            assert isinstance(want, torch.Tensor)
            assert same_form(found, want), level
            torch.testing.assert_close(found, want, rtol=0, atol=0, equal_nan=True, msg=lambda m, n=level: f"{n}: {m}")


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.int8, torch.bool], ids=str)
@pytest.mark.parametrize("width", [1, 3, 16, 37])
def test_rows_of_a_table(dtype: torch.dtype, width: int) -> None:
    table = (torch.randn(11, width) * 3).to(dtype)
    for shape, kind in (((2, 5), torch.int64), ((), torch.int64), ((0, 3), torch.int64), ((4,), torch.int32)):
        rows = torch.randint(0, 11, shape).to(kind)
        assert_levels_equal(lambda r, t: F.embedding(r, t), rows, table)
        assert_levels_equal(lambda r, t: F.embedding(r, t).flip(-1), rows, table.t().contiguous().t())


def test_a_row_used_by_every_pass() -> None:
    """The place is asked for once, before the first of the passes of a softmax."""
    rows, table = torch.randint(0, 11, (3, 4)), torch.randn(11, 36)
    found = compile_graph(trace(lambda r, t: F.embedding(r, t).softmax(-1), (rows, table)), (rows, table), STRICT)
    torch.testing.assert_close(found(rows, table)[0], F.embedding(rows, table).softmax(-1))


def test_a_row_chosen_by_a_reduction() -> None:
    table = torch.randn(11, 36)
    assert_levels_equal(lambda t: t[t.argmax(0)].neg(), table)


@pytest.mark.parametrize("bad", [-1, 11, 2**40])
def test_a_row_out_of_range_is_eagers_error(bad: int) -> None:
    table, rows = torch.randn(11, 36), torch.tensor([3, 0, 5])
    run = compile_graph(trace(lambda r, t: F.embedding(r, t).exp(), (rows, table)), (rows, table), STRICT)
    run(rows, table)
    rows[1] = bad
    with pytest.raises(IndexError):
        run(rows, table)


def _padded(x: torch.Tensor) -> torch.Tensor:
    return F.pad(x, (2, 3, 1, 1), value=0.5)


def _replaced(x: torch.Tensor) -> torch.Tensor:
    return torch.slice_scatter(x, x[:, 1:-2] * 2, 1, 1, -2)


def _every_second(x: torch.Tensor) -> torch.Tensor:
    return x[:, ::2].neg()


def _stencil(x: torch.Tensor) -> torch.Tensor:
    y = x.clone()
    y[1:-1, 1:-1] = x[:-2, 1:-1] + x[2:, 1:-1]
    return y


@pytest.mark.parametrize("program", [_padded, _replaced, _every_second, _stencil])
@pytest.mark.parametrize("width", [5, 15, 16, 17, 18, 19, 31, 32, 33, 34, 67])
def test_borders_of_every_width(program: Callable[..., torch.Tensor], width: int) -> None:
    """Vectors are read from inside the row, never beyond it, whatever is left of them at its ends."""
    assert_levels_equal(program, torch.randn(4, width))


@pytest.mark.parametrize("dtype", [torch.float64, torch.float16, torch.int64, torch.uint8, torch.bool], ids=str)
def test_borders_of_every_dtype(dtype: torch.dtype) -> None:
    image = (torch.randn(4, 40) * 3).to(dtype)
    assert_levels_equal(lambda x: F.pad(x, (2, 3, 1, 1)), image)
    assert_levels_equal(
        lambda x: torch.slice_scatter(x, ~x[:, 1:-2] if x.dtype == torch.bool else x[:, 3:], 1, 1, -2), image
    )
