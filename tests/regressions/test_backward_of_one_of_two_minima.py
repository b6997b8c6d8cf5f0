"""Of two equal `min` calls whose results leave the graph, the gradient of one alone was an error (`fuzz graphs`):
the trace of its backward had one call where the forward kept what another call gave.
"""

import pytest
import torch

import plumbline


def twice(x):
    values, _ = torch.min(x, -2)
    return *torch.min(x, -2), torch.cosh(values)


def three_times(x):
    values, places = torch.max(x, 0)
    return torch.max(x, 0)[0] * 2, places + 1, torch.sort(x, 0)[0], torch.sort(x, 0)[1], values.sin()


@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
@pytest.mark.parametrize("program", [twice, three_times])
def test_each_result_alone(program, backend):
    compiled = plumbline.compile(program, backend=backend)
    x = torch.randn(5, 4, generator=torch.Generator().manual_seed(0), requires_grad=True)
    for place, result in enumerate(program(x)):
        if result.is_floating_point():
            (expected,) = torch.autograd.grad(result.sum(), x)
            with plumbline.config.patch(strict=True):
                (actual,) = torch.autograd.grad(compiled(x)[place].sum(), x)
            torch.testing.assert_close(actual, expected)
