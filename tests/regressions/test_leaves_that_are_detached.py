"""`x.detach_()` of a parameter or another leaf from outside was lost under aot_eager: it still required grad."""

from collections.abc import Callable

import pytest
import torch

import plumbline

MAKERS: dict[str, Callable[[], torch.Tensor]] = {
    "parameter": lambda: torch.nn.Parameter(torch.ones(3)),
    "leaf": lambda: torch.ones(3, requires_grad=True),
    "with history": lambda: torch.ones(3, requires_grad=True) * 2,
    "without gradient": lambda: torch.ones(3),
}


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("name", MAKERS)
def test_detached_as_in_eager(name: str, backend: str) -> None:
    def f(x: torch.Tensor) -> torch.Tensor:
        before = x * 2
        x.detach_()
        return before + torch.cat([x, x]).sum()

    x, y = MAKERS[name](), MAKERS[name]()
    expected, actual = f(x), plumbline.compile(f, backend=backend)(y)
    assert (y.requires_grad, y.is_leaf) == (x.requires_grad, x.is_leaf)
    assert actual.requires_grad == expected.requires_grad
    assert torch.equal(actual, expected)
