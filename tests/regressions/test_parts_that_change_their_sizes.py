"""`t_()` of one of several results changed the recorded sizes of the call that gave it: wrong values were written."""

from collections.abc import Callable

import pytest
import torch

import plumbline

FORMS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "indices of max": lambda x: x.max(-2)[1].t_(),
    "values of max": lambda x: x.max(-2)[0].t_(),
    "mean": lambda x: torch.var_mean(x.float(), -2)[1].t_(),
    "split": lambda x: (x * 2).split(1)[1].squeeze_(0),
    "sort": lambda x: x.sort(-1)[0].transpose_(0, 2),
}


@pytest.mark.parametrize("backend", ["aot_eager", pytest.param("inductor", marks=pytest.mark.cc)])
@pytest.mark.parametrize("name", FORMS)
def test_values_and_strides(name: str, backend: str) -> None:
    x = torch.arange(18).remainder(5).view(3, 3, 2)
    expected, actual = FORMS[name](x), plumbline.compile(FORMS[name], backend=backend)(x)
    assert torch.equal(actual, expected)
    assert actual.stride() == expected.stride()
