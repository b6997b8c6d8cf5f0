"""Found by `fuzz graphs`: `0.1 // t` of a half tensor, and `t == s` beside a 0-d float32 tensor, were not eager's.

Eager gives every operand the dtype of the result first; only the second one of a product or a quotient stays exact
where it is one number.
"""

import operator

import pytest
import torch

import plumbline

OPERATORS = {
    "add": torch.add,
    "sub": torch.sub,
    "mul": torch.mul,
    "div": torch.div,
    "fmod": lambda a, b: torch.fmod(torch.as_tensor(a), b),
    "remainder": torch.remainder,
    "floor_divide": torch.floor_divide,
    "floor": lambda a, b: torch.div(a, b, rounding_mode="floor"),
    "trunc": lambda a, b: torch.div(a, b, rounding_mode="trunc"),
    "eq": operator.eq,
    "lt": operator.lt,
    "ge": operator.ge,
    "maximum": lambda a, b: torch.maximum(torch.as_tensor(a), torch.as_tensor(b)),
}
NUMBERS = (0.1, 0.3, -0.7, 3.3)


def operands_beside(t: torch.Tensor, number: float) -> list[object]:
    whole = torch.arange(2030, 2030 + t.numel())
    zero_dimensional = [torch.tensor(number), torch.tensor(number, dtype=torch.float64), torch.tensor(2049)]
    return [number, whole, *zero_dimensional, torch.tensor([number]).to(t.dtype)]


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
@pytest.mark.parametrize("name", OPERATORS)
def test_as_eager_rounds_them(name: str, dtype: torch.dtype) -> None:
    apply = OPERATORS[name]
    t = torch.cat([torch.arange(-40, 41) * 0.1, torch.arange(-8, 9) / 2, torch.tensor([1e30, -0.0])]).to(dtype)

    def program(t, operands):
        return [apply(t, other) for other in operands] + [apply(other, t) for other in operands]

    compiled = plumbline.compile(program, backend="inductor")
    for number in NUMBERS:
        operands = operands_beside(t, number)
        with plumbline.config.patch(strict=True):
            actual = compiled(t, operands)
        for place, (one, expected) in enumerate(zip(actual, program(t, operands), strict=True)):
            assert one.dtype == expected.dtype
            assert torch.equal(one.nan_to_num(7.0), expected.nan_to_num(7.0)), (number, place)
