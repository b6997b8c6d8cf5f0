"""Calls that move elements of the very tensor they write to gave an answer where eager raises, or another answer."""

from collections.abc import Callable

import pytest
import torch

import plumbline

INDEX = torch.tensor([1, 0, 1, 2])
FORMS: dict[str, Callable[[torch.Tensor], object]] = {
    "masked_scatter_": lambda x: x.masked_scatter_(x > 1, x),
    "put_": lambda x: x.put_(INDEX, x),
    "index_copy_": lambda x: x.index_copy_(0, INDEX, x),
    "index_add_": lambda x: x.index_add_(0, INDEX, x),
    "index_put_": lambda x: x.index_put_((INDEX,), x),
    "the index itself": lambda x: x.remainder_(4).index_put_((x,), INDEX),
    "scatter_": lambda x: x.scatter_(0, INDEX, x),
    "scatter_add_": lambda x: x.scatter_add_(0, INDEX, x),
    "scatter_reduce_": lambda x: x.scatter_reduce_(0, INDEX, x, "amax"),
    "take out": lambda x: torch.take(x, INDEX, out=x),
    "index_select out": lambda x: torch.index_select(x, 0, INDEX, out=x),
    # these are well defined
    "disjoint parts": lambda x: x[:2].index_add_(0, INDEX[:2], x[2:]),
    "elementwise": lambda x: x.mul_(x),
    "copy_": lambda x: x.copy_(x),
    "foreach": lambda x: torch._foreach_mul_([x], [x]),
}


def _outcome(f: Callable[[torch.Tensor], object]) -> object:
    x = torch.tensor([1, 2, 3, 4])
    try:
        f(x)
    except RuntimeError as error:
        return str(error)
    return x.tolist()


@pytest.mark.parametrize("backend", ["aot_eager", pytest.param("inductor", marks=pytest.mark.cc)])
@pytest.mark.parametrize("name", FORMS)
def test_as_in_eager(name: str, backend: str) -> None:
    assert _outcome(plumbline.compile(FORMS[name], backend=backend)) == _outcome(FORMS[name])
