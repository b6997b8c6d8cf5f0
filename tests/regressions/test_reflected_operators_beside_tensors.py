"""`tensor + number` asked `__radd__` of a number of an own class, which tensors add without asking."""

import pytest
import torch

import plumbline


class Share(float):
    def __radd__(self, other):
        return "asked"

    __rmul__ = __rsub__ = __rtruediv__ = __radd__


class Count(int):
    def __radd__(self, other):
        return "asked"

    __rmul__ = __rsub__ = __rtruediv__ = __radd__


@pytest.mark.parametrize("number", [Share(3.0), Count(3)])
def test_the_tensor_answers(number):
    def step(x):
        y = x.clone()
        y += number
        y *= number
        return x + number, x * number, x - number, x / number, y

    x = torch.tensor([1.0, 2.0])
    for actual, expected in zip(plumbline.compile(step, backend="eager")(x), step(x), strict=True):
        assert torch.equal(actual, expected)
