"""A call that writes to the one element that it reads was done; kernels refuse it, as for more elements."""

import pytest
import torch

import plumbline

AT = torch.zeros(1, dtype=torch.int64)
CALLS = {
    "index_put_": lambda v: v.index_put_((AT,), v),
    "index_put_ into a view": lambda v: v.index_put_((AT,), v.view(-1)),
    "index_copy_": lambda v: v.index_copy_(0, AT, v),
    "index_add_": lambda v: v.index_add_(0, AT, v),
    "scatter_": lambda v: v.scatter_(0, AT, v),
    "scatter_add_": lambda v: v.scatter_add_(0, AT, v),
    "scatter_reduce_": lambda v: v.scatter_reduce_(0, AT, v, "sum"),
    "put_": lambda v: v.put_(AT, v),
    "index_select": lambda v: torch.index_select(v, 0, AT, out=v),
    "take": lambda v: torch.take(v, AT, out=v),
    "cat": lambda v: torch.cat([v], out=v),
    "sum": lambda v: torch.sum(v, 0, keepdim=True, out=v),
    "add_": lambda v: v.add_(v),
    "masked_scatter_": lambda v: v.masked_scatter_(v == 0, v),
}


def outcome(program, value):
    try:
        return program(value).tolist()
    except RuntimeError as error:
        return str(error)


@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
@pytest.mark.parametrize("name", CALLS)
def test_eager_decides(name, backend):
    def program(value):
        return CALLS[name](value + 1)

    expected = outcome(program, torch.ones(1))
    assert outcome(plumbline.compile(program, backend=backend), torch.ones(1)) == expected
