"""Views of a new or detached tensor that left a graph beside it were views of another tensor in autograd's eyes.

A later write that brings a gradient then reached the tensor and not its views.
"""

import pytest
import torch

import plumbline


def of_zeros(x):
    made = torch.zeros(3, 3)
    return made, made.t()


def of_numbers(x):
    made = torch.rand(3, 3)
    return made[0], made, made.view(-1)


def of_a_detached(x):
    detached = (x + 1).detach()
    return detached, detached.movedim(0, 1)


def of_a_detached_input(x):
    detached = x.detach()
    return detached.t(), detached


def of_two_detached(x):
    y = x * 2
    first, second = y.detach(), y.detach()
    return first, second, first.t(), second.t()


def of_a_hidden_one(x):
    hidden = (x + 1).detach()
    return hidden[0], hidden[0:1]


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize(
    "function", [of_zeros, of_numbers, of_a_detached, of_a_detached_input, of_two_detached, of_a_hidden_one]
)
def test_they_are_views_of_it(function, backend):
    def relations(call):
        torch.manual_seed(0)
        results = call(torch.ones(3, 3))
        return [[one._base is other for other in results] for one in results], [
            [one is other for other in results] for one in results
        ]

    def with_a_gradient(call):
        torch.manual_seed(0)
        results = call(torch.ones(3, 3))
        results[0].mul_(torch.full((), 2.0, requires_grad=True))
        return [result.requires_grad for result in results], [result.detach().sum().item() for result in results]

    compiled = plumbline.compile(function, backend=backend)
    for _ in range(2):
        assert relations(compiled) == relations(function)
        assert with_a_gradient(compiled) == with_a_gradient(function)
