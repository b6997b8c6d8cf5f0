"""A Hessian of a compiled function was zero: its gradients did not lead back to what they depend on."""

import pytest
import torch

import plumbline
from plumbline.compiler.base.errors import Unsupported


def program(x, y):
    return (x * y).sin() + x.exp()


@pytest.fixture(params=["aot_eager", "inductor"])
def compiled(request):
    return plumbline.compile(program, backend=request.param)


def inputs():
    return torch.randn(3, requires_grad=True), torch.randn(3, requires_grad=True)


def test_a_hessian_is_refused(compiled):
    x, y = inputs()
    with pytest.raises(Unsupported, match="gradient of a compiled graph's gradient"):
        torch.autograd.functional.hessian(lambda x: compiled(x, y).sum(), x)


@pytest.mark.parametrize("which", [0, 1, "both", "intermediate", "tangent"])
def test_no_dependence_is_silent(which, compiled):
    x, y = inputs()
    between = x * 2
    value = compiled(between, y)
    tangent = torch.ones(3, requires_grad=True)
    (gradient,) = torch.autograd.grad(value, x, tangent, create_graph=True)
    asked = {0: [x], 1: [y], "both": [x, y], "intermediate": [between], "tangent": [tangent]}[which]
    with pytest.raises(Unsupported, match="gradient of a compiled graph's gradient"):
        torch.autograd.grad(gradient.sum(), asked, allow_unused=True)


def test_one_pass_with_create_graph_is_eagers(compiled):
    x, y = inputs()
    (gradient,) = torch.autograd.grad(compiled(x, y).sum(), x, create_graph=True)
    (expected,) = torch.autograd.grad(program(x, y).sum(), x)
    torch.testing.assert_close(gradient, expected)
    other = torch.randn(3, requires_grad=True)
    ((one,), (none,)) = (
        torch.autograd.grad((gradient.detach() * other).sum(), other),
        torch.autograd.grad((gradient * other).sum(), other, retain_graph=True)[:1],
    )
    torch.testing.assert_close(one, none)
