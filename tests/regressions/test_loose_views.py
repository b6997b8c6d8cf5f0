"""`unsafe_split` gives views that autograd takes for tensors of their own: a write to one refused the backward."""

import pytest
import torch

import plumbline


def last_part(x):
    return (x * 2).unsafe_split(2)[-1]


def written(x):
    return (x * 2).unsafe_split(2)[-1].sub_(0.1)


def both(x):
    first, second = (x * 2).unsafe_split_with_sizes([1, 3])
    return first + 1, second


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
@pytest.mark.parametrize("function", [last_part, written, both], ids=lambda one: one.__name__)
def test_a_write_to_a_part_before_backward(function, backend):
    told = []
    for one in (function, plumbline.compile(function, backend=backend)):
        x = torch.arange(4.0).requires_grad_()
        result = one(x)
        last = result[-1] if isinstance(result, tuple) else result
        with torch.no_grad():
            last.add_(1)
        last.sum().backward()
        told.append((last.tolist(), x.grad.tolist(), last._base is None))
    assert told[0] == told[1]
