"""Which calls can raise because of what their tensors hold."""

import pytest
import torch

from plumbline.compiler.base.torch_facts import OpOverload
from plumbline.compiler.graph.effects.data_failures import ever_fails_on_data, may_fail_on_data

aten = torch.ops.aten
WHOLE, FLOAT = torch.arange(3), torch.tensor([0.25, 0.5, 0.75])  # a name of a test is the same in every process


@pytest.mark.parametrize(
    ("operator", "arguments", "may_fail"),
    [
        (aten.remainder.Tensor, (WHOLE, WHOLE), True),
        (aten.remainder.Tensor, (FLOAT, FLOAT), False),
        (aten.remainder.Scalar, (WHOLE, 5), False),
        (aten.remainder.Scalar, (WHOLE, 0), True),
        (aten.remainder.Scalar, (WHOLE, -1), True),
        (aten.remainder.Scalar, (WHOLE.to(torch.int8), 256), True),
        (aten.remainder.Scalar_Tensor, (5, WHOLE), True),
        (aten.fmod.Scalar, (WHOLE, 5), False),
        (aten.div.Scalar_mode, (WHOLE, 3, "floor"), False),
        (aten.div.Tensor_mode, (WHOLE, WHOLE, "floor"), True),
        (aten.pow.Tensor_Tensor, (WHOLE, WHOLE), True),
        (aten.index.Tensor, (FLOAT, [WHOLE]), True),
        (aten.linspace.Tensor_Tensor, (FLOAT[0], WHOLE[0], 5), True),
        (aten.logspace.Scalar_Tensor, (1.0, WHOLE[0], 5), True),
        (aten.linspace.default, (0.0, 1.0, 5), False),
        (aten.relu.default, (FLOAT,), False),
    ],
    ids=str,
)
def test_what_can_raise_on_data(operator: OpOverload, arguments: tuple[object, ...], may_fail: bool) -> None:
    assert may_fail_on_data(operator, arguments) is may_fail
    assert ever_fails_on_data(operator) or not may_fail


@pytest.mark.parametrize("divisor", [3, 7, -2])
def test_numbers_that_are_called_safe_are(divisor: int) -> None:
    least = torch.tensor([torch.iinfo(torch.int64).min, 0, torch.iinfo(torch.int64).max])
    for operator in (aten.remainder.Scalar, aten.fmod.Scalar):
        operator(least, divisor)
    aten.div.Scalar_mode(least, divisor, rounding_mode="trunc")
