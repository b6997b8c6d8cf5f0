"""A strided view holds the elements that looking each of them up gives."""

import torch

from plumbline.compiler.loops.strided_access import strided_view
from plumbline.compiler.symbolic.expr import Symbol, as_expr, remainder

ROW, COLUMN, BLOCK = Symbol("i", 3), Symbol("j", 4), Symbol("k", 2)
T = torch.arange(60).reshape(6, 10)[:, 1:]


def test_a_sum_of_variables_is_a_view() -> None:
    view = strided_view(T, (as_expr(ROW) + as_expr(BLOCK), as_expr(COLUMN) * 2 + 1), (ROW, COLUMN, BLOCK))
    assert view is not None
    expected = torch.tensor([[[int(T[i + k, 2 * j + 1]) for k in range(2)] for j in range(4)] for i in range(3)])
    assert torch.equal(view, expected)
    assert view.untyped_storage().data_ptr() == T.untyped_storage().data_ptr()


def test_a_variable_that_is_not_mentioned_has_size_one() -> None:
    view = strided_view(T, (as_expr(2), as_expr(COLUMN)), (ROW, COLUMN))
    assert view is not None
    assert torch.equal(view, T[2, :4].reshape(1, 4))


def test_what_may_leave_the_tensor_or_is_no_sum_is_looked_up() -> None:
    assert strided_view(T, (as_expr(ROW) + 4, as_expr(COLUMN)), (ROW, COLUMN)) is None
    assert strided_view(T, (as_expr(ROW) - 1, as_expr(COLUMN)), (ROW, COLUMN)) is None
    assert strided_view(T, (as_expr(2) - as_expr(ROW), as_expr(COLUMN)), (ROW, COLUMN)) is None
    assert strided_view(T, (remainder(as_expr(COLUMN), 3), as_expr(ROW)), (ROW, COLUMN)) is None
    assert strided_view(T, (as_expr(Symbol("empty", 0)), as_expr(COLUMN)), (Symbol("empty", 0), COLUMN)) is None
