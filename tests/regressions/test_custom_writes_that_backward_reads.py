"""The functional twin of a user's operator that writes was still declared as one that writes.

What it gives could not be kept for the backward, and the cut of the joint graph failed.
"""

import pytest
import torch

import plumbline
from plumbline.compiler.autograd.functional_twins import cloning_twin
from plumbline.compiler.graph.facts import op_facts


@torch.library.custom_op("written_for_backward::bump", mutates_args={"first", "second"})
def bump(first: torch.Tensor, x: torch.Tensor, second: torch.Tensor) -> torch.Tensor:
    first.add_(2)
    second.mul_(3)
    return x + 1


@bump.register_fake
def _(first, x, second):
    return torch.empty_like(x)


def test_its_twin_writes_nothing():
    twin = cloning_twin(torch.ops.written_for_backward.bump.default).operator
    assert op_facts(twin).mutates == ()
    assert op_facts(twin).aliases == ()


@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
def test_a_backward_reads_what_it_wrote(backend):
    def program(x):
        first, second = (x * 1).detach(), (x * 2).detach()
        other = bump(first, first * 1, second)
        return (x * first * second * other).sum()

    one, two = (torch.arange(3.0).requires_grad_() for _ in range(2))
    program(one).backward()
    plumbline.compile(program, backend=backend)(two).backward()
    assert torch.equal(one.grad, two.grad)
