"""A backward through an operation that has saved a tensor raises as in eager where that was detached in place since."""

import pytest
import torch

import plumbline


def saved_twice(x):
    made = x - 1
    result = torch.complex(made.float(), made.float()).abs()
    made.detach_()
    return result


def saved_by_a_product(x):
    made = x * 2
    result = made * made
    made.detach_()
    return result + made


def not_saved(x):
    made = x * 2
    result = made + 1
    made.detach_()
    return result * 3


def used_up_before(x):
    made = x * 2
    (made * made).sum().backward()
    made.detach_()
    return x * made


def outcome(program):
    leaf = torch.tensor([2.0, 3.0], requires_grad=True)
    result = program(leaf)
    try:
        result.sum().backward()
    except RuntimeError as error:
        return result.tolist(), str(error), None
    return result.tolist(), None, leaf.grad.tolist()


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
@pytest.mark.parametrize("program", [saved_twice, saved_by_a_product, not_saved, used_up_before])
def test_its_backward(program, backend):
    found, wanted = outcome(plumbline.compile(program, backend=backend)), outcome(program)
    assert found[1:] == wanted[1:]
    assert found[0] == pytest.approx(wanted[0])
