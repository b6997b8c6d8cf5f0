"""Masks of a backward whose operand was computed again in another way: `amax` after `exp` had NaN for a gradient.

The forward's vectors had 16 lanes, with one `exp`, those of the backward 8, with another; or the forward ran op by op.
No element of the operand was equal to the result then, and the gradient was divided by their number.
"""

import operator

import pytest
import torch

import plumbline
from plumbline.compiler.autograd.costs import decided_by

aten = torch.ops.aten


def raised(x):
    return torch.sinh(x) * 1.1 - torch.exp(x)


def largest(x):
    return torch.amax(raised(x), -1)


def largest_norm(x):
    return torch.linalg.vector_norm(raised(x), float("inf"), -1)


def own_mask(x):
    y = raised(x)
    return torch.where(y == y.amax(-1, keepdim=True), y, 0.0)


def clamped(x):
    y = raised(x)
    return torch.maximum(y, y.mean(-1, keepdim=True)) + torch.minimum(y, y.amax(-1, keepdim=True))


def of_a_part(x):
    first, second = raised(x).split([x.shape[-1] - 1, 1], -1)  # a view of several results, which is never kept itself
    return torch.maximum(first.amax(-1), second.amax(-1))


def ratio(x):
    return torch.copysign(2 - torch.sinh(x), torch.nan_to_num(x))


def gradients(function, x):
    (gradient,) = torch.autograd.grad(function(x).sum(), x)
    return gradient


@pytest.mark.parametrize(
    "function", [largest, largest_norm, own_mask, clamped, of_a_part, ratio], ids=lambda one: one.__name__
)
@pytest.mark.parametrize("shape", [(31,), (200, 300)], ids=str)
def test_a_mask_is_that_of_the_forward(function, shape):
    compiled = plumbline.compile(function, dynamic=False)
    for seed in range(3):
        x = torch.randn(shape, generator=torch.Generator().manual_seed(seed)).requires_grad_()
        torch.testing.assert_close(gradients(compiled, x), gradients(function, x), rtol=1e-5, atol=1e-5)


def test_a_forward_that_runs_op_by_op():
    def program(x, number):
        return torch.amax(raised(x)), torch.arange(round(number), x.shape[0] + round(number))  # no kernel for the size

    compiled = plumbline.compile(program)
    for seed in range(40):
        x = torch.randn(31, generator=torch.Generator().manual_seed(seed)).requires_grad_()
        results = [torch.autograd.grad(one(x, 0.3 + seed)[0], x)[0] for one in (compiled, program)]
        torch.testing.assert_close(*results)


def test_what_a_decision_rests_on():
    graph = torch.fx.Graph()
    x = graph.placeholder("x")
    x.meta["val"] = torch.empty(3, device="meta")

    def call(target, *args, dtype=torch.float32):
        node = graph.call_function(target, args)
        node.meta["val"] = torch.empty(3, device="meta", dtype=dtype)
        return node

    exp = call(aten.exp.default, x)
    moved = call(aten.add.Tensor, exp, 1.0)
    sine = call(aten.sin.default, moved)
    cosine = call(aten.cos.default, moved)
    call(aten.eq.Tensor, moved, call(aten.neg.default, moved), dtype=torch.bool)
    call(aten.ne.Tensor, sine, sine, dtype=torch.bool)  # asks for NaN, whose place is the same
    call(aten.eq.Scalar, call(aten.sqrt.default, x), float("-inf"), dtype=torch.bool)  # nor does this step
    call(aten._to_copy.default, cosine, dtype=torch.int64)  # by which something is indexed
    several = call(aten.var_mean.correction, call(aten.tanh.default, sine), [0])  # several floats, of which none steps
    several.meta["val"] = (x.meta["val"], x.meta["val"])
    parts = call(aten.log_sigmoid_forward.default, x)
    parts.meta["val"] = (x.meta["val"], x.meta["val"])
    call(aten.gt.Scalar, call(operator.getitem, parts, 0), 0.5, dtype=torch.bool)
    assert decided_by(graph.nodes) == {exp, cosine, parts}
