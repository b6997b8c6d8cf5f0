"""Results of a graph that other results were computed from: their gradients are whole, or the backward says no."""

import pytest
import torch
from torch import nn

import plumbline
from plumbline.compiler.autograd.histories.history_reach import InnerResult, inner_results
from plumbline.compiler.base.errors import Unsupported

BACKENDS = ["aot_eager", "inductor"]


def test_inner_results_are_those_that_others_lead_through():
    x = torch.ones(3, requires_grad=True)
    first = x.sin()
    second, beside = first.exp(), x.cos()
    third = second + beside
    found = inner_results([first, second, beside, third, x * 2])
    assert found == (
        InnerResult(0, frozenset({1, 3})),
        InnerResult(1, frozenset({3})),
        InnerResult(2, frozenset({3})),
    )


def chain(x):
    first = x * 2
    second = first.sin()
    return first, second, second.exp()


def loss_of(results, used):
    return sum(((place + 1) * results[place]).sum() for place in used)


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("used", [(0,), (1,), (2,), (0, 1), (1, 2), (0, 2), (0, 1, 2)])
@pytest.mark.parametrize("retained", [(0,), (1,), (0, 1), (2,)])
def test_a_retained_gradient_is_whole(retained, used, dynamic):
    found = []
    for function in (chain, plumbline.compile(chain, backend="aot_eager", dynamic=dynamic)):
        x = torch.linspace(0, 1, 5, requires_grad=True)
        results = function(x)
        for place in retained:
            results[place].retain_grad()
        loss_of(results, used).backward()
        found.append((x.grad, *(results[place].grad for place in retained)))
    torch.testing.assert_close(found[1], found[0])


@pytest.mark.parametrize("backend", BACKENDS)
def test_an_activation_that_a_module_keeps_gets_its_gradient(backend):
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second = nn.Linear(3, 4), nn.Linear(4, 2)

        def forward(self, x):
            self.activation = self.first(x).relu()
            return self.second(self.activation).sum()

    torch.manual_seed(0)
    model, x, found = Model(), torch.randn(2, 3), []
    for call in (model, plumbline.compile(model, backend=backend)):
        for _ in range(2):
            model.zero_grad()
            score = call(x)
            model.activation.retain_grad()
            score.backward()
            found.append((model.activation.grad, model.first.weight.grad))
    for later in found[1:]:
        torch.testing.assert_close(later, found[0])


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_hook_that_would_see_a_part_of_its_gradient_is_refused(backend):
    x = torch.ones(3, requires_grad=True)
    first, second, _ = plumbline.compile(chain, backend=backend)(x)
    first.register_hook(lambda gradient: gradient * 10)
    with pytest.raises(Unsupported, match="has hooks"):
        (first.sum() + second.sum()).backward()


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_hook_that_sees_all_of_its_gradient_is_called(backend):
    for function in (chain, plumbline.compile(chain, backend=backend)):
        x = torch.ones(3, requires_grad=True)
        first, _, last = function(x)
        last.register_hook(lambda gradient: gradient * 10)
        (last.sum()).backward()
        once = x.grad.clone()
        x.grad = None
        first, _, last = function(x)
        first.register_hook(lambda gradient: gradient * 10)
        (first.sum()).backward()
        assert torch.equal(x.grad, torch.full((3,), 20.0))
        torch.testing.assert_close(
            once, 20 * torch.cos(torch.tensor(2.0)) * torch.exp(torch.sin(torch.full((3,), 2.0)))
        )


def test_hooks_of_compiled_code_itself_see_all_of_it():
    def hooked(x):
        first = x * 2
        second = first.sin()
        first.register_hook(lambda gradient: gradient * 10)
        return first, second

    found = []
    for function in (hooked, plumbline.compile(hooked, backend="aot_eager")):
        x = torch.ones(2, requires_grad=True)
        first, second = function(x)
        (first.sum() + second.sum()).backward()
        found.append(x.grad)
    torch.testing.assert_close(found[1], found[0])


def test_what_is_written_to_and_retains_its_gradient_is_refused_where_the_graph_cannot_run_again():
    def function(c):
        c.mul_(2)
        return c.sin()

    c = torch.ones(2, requires_grad=True) * 1
    result = plumbline.compile(function, backend="aot_eager")(c)
    c.retain_grad()
    with pytest.raises(Unsupported, match="retains its gradient"):
        (result.sum() + c.sum()).backward()


def test_hooks_of_what_was_there_before_a_write_are_no_hooks_of_the_result():
    def function(c):
        c.mul_(2)
        return c.sin()

    found = []
    for call in (function, plumbline.compile(function, backend="aot_eager")):
        w = torch.ones(2, requires_grad=True)
        c = w * 1
        c.register_hook(lambda gradient: gradient * 10)
        result = call(c)
        (result.sum() + c.sum()).backward()
        found.append(w.grad)
    torch.testing.assert_close(found[1], found[0])
