"""A place out of range was read as element zero; where a tensor has no elements, that took the process down."""

import pytest
import torch

import plumbline

LOOKUPS = {
    "a list": (lambda x: x[[0]], (torch.zeros(0),)),
    "rows": (lambda x, i: x[i] + 1, (torch.zeros(0, 3), torch.tensor([0, 0]))),
    "columns": (lambda x, i: x[:, i], (torch.zeros(3, 0), torch.tensor([0]))),
    "many": (lambda x, i: x[i] * 2, (torch.zeros(0), torch.zeros(70, dtype=torch.int64))),
    "gather": (lambda x, i: x.gather(0, i), (torch.zeros(0, 2), torch.zeros(1, 2, dtype=torch.int64))),
    "embedding": (lambda w, i: torch.nn.functional.embedding(i, w), (torch.zeros(0, 2), torch.tensor([0]))),
    "rows of nothing": (lambda w, i: torch.nn.functional.embedding(i, w), (torch.zeros(2, 0), torch.tensor([2]))),
    "chosen rows of nothing": (lambda x, i: x.index_select(0, i), (torch.zeros(2, 0), torch.tensor([-1]))),
}


@pytest.mark.cc
@pytest.mark.parametrize(("function", "args"), LOOKUPS.values(), ids=LOOKUPS.keys())
def test_the_error_is_that_of_eager(function, args):
    with pytest.raises((IndexError, RuntimeError)) as eagers:
        function(*args)
    with pytest.raises(eagers.type) as ours:
        plumbline.compile(function, backend="inductor")(*args)
    assert str(ours.value) == str(eagers.value)


@pytest.mark.cc
def test_sizes_that_vary_may_come_to_nothing():
    compiled = plumbline.compile(lambda x: x[[0]] + 1, backend="inductor")
    for size in (4, 5, 6, 1):
        assert compiled(torch.zeros(size)).item() == 1
    with pytest.raises(IndexError):
        compiled(torch.zeros(0))
