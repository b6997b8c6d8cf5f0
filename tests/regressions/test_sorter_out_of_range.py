"""Found by `sweep operators`: a row whose order lies outside of it was no error where nobody read the result."""

import pytest
import torch

import plumbline

ROW = torch.arange(4.0)


@pytest.mark.parametrize("value", [torch.tensor([1.5]), 1.5], ids=["tensor", "number"])
@pytest.mark.parametrize("out", [False, True])
def test_the_order_of_a_row_is_looked_at_where_nothing_reads_the_result(value, out):
    def program(order):
        named = {"out": torch.empty(1 if isinstance(value, torch.Tensor) else (), dtype=torch.int64)} if out else {}
        torch.searchsorted(ROW, value, sorter=order, **named)
        return order + 1

    compiled = plumbline.compile(program, backend="aot_eager")
    assert torch.equal(compiled(torch.arange(4)), torch.arange(1, 5))
    for each in (program, compiled):
        with pytest.raises(RuntimeError, match="sorter index out of range"):
            each(torch.full((4,), 1_000_003))
