"""Stock's capture in front of our gradients and code generation: `torch.compile(backend="plumbline")`."""

import copy

import pytest
import torch
from torch import nn

import plumbline
from plumbline.compiler.base.errors import UnknownOption
from plumbline.compiler.base.events import CompilerFailed, KernelBuilt, recording

torch_dynamo = pytest.importorskip("torch._dynamo")


@pytest.fixture(autouse=True)
def fresh():
    torch_dynamo.reset()


def net():
    return nn.Sequential(nn.Linear(4, 8), nn.GELU(), nn.BatchNorm1d(8), nn.Linear(8, 1))


@pytest.mark.cc
def test_a_model_trains_as_in_eager_and_by_our_kernels():
    model = net()
    other = copy.deepcopy(model)
    compiled = torch.compile(model, backend="plumbline")
    with recording() as events:
        for size in (3, 4, 5):
            x = torch.randn(size, 4)
            found, expected = compiled(x).pow(2).mean(), other(x).pow(2).mean()
            torch.testing.assert_close(found, expected)
            found.backward()
            expected.backward()
    for mine, theirs in zip(model.parameters(), other.parameters(), strict=True):
        torch.testing.assert_close(mine.grad, theirs.grad)
    torch.testing.assert_close(model[2].running_mean, other[2].running_mean)
    assert [event for event in events if isinstance(event, KernelBuilt)]
    assert not [event for event in events if isinstance(event, CompilerFailed)]


def test_stock_finds_it_by_its_entry_point():
    assert "plumbline" in torch.compiler.list_backends()
    assert "plumbline" not in plumbline.list_backends()


def test_as_a_function_with_options_sizes_and_tensors_from_outside():
    held = torch.randn(4)

    @torch.compile(backend=plumbline.torch_backend, options={"strict": True}, dynamic=True)
    def f(x):
        with torch.no_grad():
            y = x * 2
        return y + held, x.shape[0] * 2, x.view(-1)

    for size in (3, 5):
        values, number, flat = f(torch.ones(size, 4))
        assert torch.equal(values, torch.full((size, 4), 2.0) + held)
        assert number == size * 2
        assert flat.shape == (size * 4,)


def test_inputs_that_are_written_and_random_draws():
    def f(x):
        x.add_(1)
        return torch.nn.functional.dropout(x, 0.5) + torch.rand(3)

    run = torch.compile(f, backend="plumbline")
    x, y = torch.ones(3), torch.ones(3)
    torch.manual_seed(1)
    found = run(x)
    torch.manual_seed(1)
    assert torch.equal(found, f(y))
    assert torch.equal(x, y)


def test_unknown_options_are_refused():
    graph = torch.fx.symbolic_trace(lambda x: x + 1)
    with pytest.raises(UnknownOption, match="recompile_limit"):
        plumbline.torch_backend(graph, [torch.ones(1)], options={"recompile_limits": 1})


def test_graphs_that_hold_tensors_and_give_one_value():
    class Held(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(torch.randn(3))

        def forward(self, x):
            return x * self.weight

    module = Held()
    run = plumbline.torch_backend(torch.fx.symbolic_trace(module), [torch.ones(3)])
    (result,) = run(torch.ones(3))
    result.sum().backward()
    assert torch.equal(result, module.weight)
    assert torch.equal(module.weight.grad, torch.ones(3))
