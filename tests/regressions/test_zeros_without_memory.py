"""Found by `fuzz transforms`: the Hessian of a product with a number ended the process.

Forward derivatives have zeros without memory (`aten._efficientzerotensor`), and a kernel read them.
"""

import pytest
import torch

import plumbline


def halved(first, second):
    return (second * -0.5).sum()


def second_derivatives(first, second):
    return torch.func.hessian(halved, argnums=1)(first, second)


def nested(first, second):
    summed = torch.func.grad(lambda *given: second_derivatives(*given).sum(), argnums=0)
    return torch.func.hessian(lambda *given: summed(*given).sum(), argnums=1)(first, second)


def forward_twice(first, second):
    return torch.func.jacfwd(torch.func.jacfwd(lambda value: value * 0.5))(second.flatten())


def of_zeros(first, second):
    zeros = torch._efficientzerotensor((2, 1))
    return (zeros.view(1, 2) * second) + 0


def divided(first, second):
    zeros = torch._efficientzerotensor((2, 1))
    return (zeros / second) + 0


PROGRAMS = [second_derivatives, nested, forward_twice, of_zeros, divided]


@pytest.mark.cc
@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_zeros_without_memory_are_zeros(program, dynamic: bool) -> None:
    first, second = torch.randn(2, 1, 1), torch.tensor([[2.0], [float("inf")]])
    compiled = plumbline.compile(program, dynamic=dynamic)
    torch.testing.assert_close(compiled(first, second), program(first, second), check_stride=True, rtol=0, atol=0)
