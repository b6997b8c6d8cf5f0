"""Gradients by a result of the graph itself, and by leaves where a view has a history that torch refuses to tell."""

import pytest
import torch

import plumbline

BACKENDS = ["eager", "aot_eager", pytest.param("inductor", marks=pytest.mark.cc)]


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("keyword", [False, True])
def test_penalty_on_a_gradient(keyword: bool, backend: str) -> None:
    """The engine was asked to walk from one result of a compiled graph to another: 'appears not to have been used'."""

    def f(real: torch.Tensor, fake: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        mixed = 0.3 * real + 0.7 * fake
        scores = (mixed @ weight).tanh().sum()
        if keyword:
            (gradient,) = torch.autograd.grad(outputs=scores, inputs=[mixed], create_graph=True)
        else:
            (gradient,) = torch.autograd.grad(scores, mixed, create_graph=True)
        return ((gradient.norm(dim=1) - 1) ** 2).mean() + scores

    outcomes = []
    for function in (f, plumbline.compile(f, backend=backend)):
        torch.manual_seed(0)
        real, start = torch.randn(4, 3), torch.randn(4, 3, requires_grad=True)
        weight = torch.randn(3, 2, requires_grad=True)
        loss = function(real, start * 2, weight)
        loss.backward()
        outcomes.append((loss.detach(), start.grad, weight.grad))
    for expected, actual in zip(*outcomes, strict=True):
        torch.testing.assert_close(actual, expected)


@pytest.mark.parametrize("backend", BACKENDS)
def test_view_whose_history_is_not_told(backend: str) -> None:
    """Looking for leaves raised an internal error."""

    def f(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        base = y.detach().clone()
        with torch.no_grad():
            view = base[:2]
        base.mul_(x)
        loss = (base * 2).sum()
        loss.backward()
        print(end="")
        return loss + view.shape[0]

    x = torch.ones(3, requires_grad=True)
    with plumbline.config.patch(strict=True):
        plumbline.compile(f, backend=backend)(x, torch.ones(3))
    assert x.grad is not None
    assert x.grad.tolist() == [2, 2, 2]
