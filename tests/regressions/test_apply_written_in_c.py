"""From torch 2.15 on `torch.autograd.Function.apply` is a descriptor written in C, which has no `__func__`."""

import pytest
import torch

import plumbline
from plumbline.compiler.values.torch.autograd_functions import function_of

NATIVE = vars(torch._C._FunctionBase)["apply"]


class Doubles(torch.autograd.Function):
    apply = NATIVE

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * 2

    @staticmethod
    def backward(ctx, gradient):
        return gradient * 3


double = Doubles.apply


def test_the_function_of_a_class_method():
    def function(cls):
        return cls

    assert function_of(classmethod(function)) is function
    assert type(NATIVE).__name__ == "classmethod_descriptor"
    assert function_of(NATIVE) is NATIVE


@pytest.mark.parametrize("call", [lambda x: Doubles.apply(x) + 1, lambda x: double(x) + 1], ids=["class", "bound"])
@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_it_is_one_node(call, backend):
    x = torch.ones(2, requires_grad=True)
    result = plumbline.compile(call, backend=backend, fullgraph=True)(x)
    result.sum().backward()
    assert result.tolist() == [3, 3]
    assert x.grad.tolist() == [3, 3]
