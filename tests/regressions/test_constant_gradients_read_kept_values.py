"""A gradient that is the same for every value of a tangent still reads what forward kept, alone and after another."""

import pytest
import torch

import plumbline


def _two_results(x, whole):
    return torch.cos(x), torch.copysign(whole, torch.nan_to_num(x))


def _broken_between(x, whole):
    cosine, signed = torch.cos(x), torch.copysign(whole, torch.nan_to_num(x))
    print(end="")
    return cosine * 1, signed


@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
@pytest.mark.parametrize("program", [_two_results, _broken_between])
@pytest.mark.parametrize("order", [(1,), (1, 0), (0, 1)])
def test_backward_of_one_result_after_the_other(program, backend, order):
    gradients = []
    for call in (program, plumbline.compile(program, backend=backend)):
        x = torch.tensor(0.7, requires_grad=True)
        results = call(x, torch.tensor(-3, dtype=torch.int8))
        for place in order:
            results[place].backward()
        gradients.append(x.grad)
    torch.testing.assert_close(gradients[1], gradients[0])
