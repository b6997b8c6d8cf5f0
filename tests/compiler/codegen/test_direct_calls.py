"""The short way to an operator reaches that very operator, with the same result."""

from collections.abc import Callable

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from plumbline.compiler.codegen.direct_calls import _DIRECT, direct_call

aten = torch.ops.aten
X, Y = torch.arange(12.0).view(3, 4), torch.arange(24.0).view(2, 3, 4)
CALLS: dict[object, tuple[object, ...]] = {
    aten.addmm.default: (torch.ones(3), X, X.t()),
    aten.as_strided.default: (X, [2, 2], [4, 1], 1),
    aten.baddbmm.default: (torch.ones(2, 3, 3), Y, Y.mT),
    aten.bmm.default: (Y, Y.mT),
    aten.convolution.default: (Y, torch.ones(2, 3, 2), None, [1], [0], [1], False, [0], 1),
    aten.expand.default: (X, [2, 3, 4]),
    aten.mm.default: (X, X.t()),
    aten.permute.default: (Y, [2, 0, 1]),
    aten.select.int: (X, 1, 2),
    aten.squeeze.dim: (X[:1], 0),
    aten.t.default: (X,),
    aten.transpose.int: (Y, 0, 2),
    aten.unsqueeze.default: (X, 1),
    aten.view.default: (X, [4, 3]),
}


class Seen(TorchDispatchMode):
    """Keeps the operators that are called."""

    def __init__(self) -> None:
        super().__init__()
        self.operators: list[object] = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.operators.append(func)
        return func(*args, **(kwargs or {}))


def test_every_short_way_is_tried() -> None:
    assert set(CALLS) == set(_DIRECT)


@pytest.mark.parametrize("operator", _DIRECT, ids=str)
def test_the_operator_is_the_same(operator: Callable[..., torch.Tensor]) -> None:
    with torch.no_grad(), Seen() as seen:
        found = direct_call(operator)(*CALLS[operator])
    assert seen.operators == [operator]
    wanted = operator(*CALLS[operator])
    assert torch.equal(found, wanted)
    assert found.stride() == wanted.stride()


def test_others_are_called_as_they_are() -> None:
    assert direct_call(aten.relu.default) is aten.relu.default
