"""A function as one graph: what `export` tells of it, and what it refuses."""

import inspect

import pytest
import torch
from torch import nn

import plumbline
from plumbline.compiler.base.errors import Unsupported, UserError


@pytest.fixture(autouse=True)
def fresh():
    plumbline.reset()


def nested(x, y, *, k=2):
    return {"a": x.sin() * y * k, "b": (y + 1,)}


def test_a_call_takes_and_gives_what_the_function_does():
    x, y = torch.randn(3), torch.randn(3)
    exported = plumbline.export(nested)(x, y)
    expected, result = nested(y, x), exported(y, x)
    assert torch.equal(result["a"], expected["a"])
    assert torch.equal(result["b"][0], expected["b"][0])


def test_the_graph_takes_the_tensors_of_its_signature_and_gives_a_flat_tuple():
    x, y = torch.randn(3), torch.randn(3)
    exported = plumbline.export(nested)(x, y)
    assert [(one.source, one.kind, one.type) for one in exported.signature.inputs] == [
        ("x", "argument", "f32[3]"),
        ("y", "argument", "f32[3]"),
    ]
    assert exported.signature.outputs == ("f32[3]", "f32[3]")
    results = exported.graph_module(x, y)
    assert torch.equal(results[0], nested(x, y)["a"])
    assert torch.equal(results[1], y + 1)


def test_parameters_and_buffers_are_inputs_with_their_place():
    model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4))
    exported = plumbline.export(model)(torch.randn(5, 3))
    kinds = {one.source: one.kind for one in exported.signature.inputs}
    assert kinds["self[0].weight"] == "parameter"
    assert kinds["self[1].running_mean"] == "state"
    assert list(kinds.values()).count("argument") == 1


def test_nothing_of_the_function_runs():
    log = []
    model = nn.BatchNorm1d(3)

    def program(x):
        log.append(1)
        x.add_(1)
        return model(x)

    x = torch.zeros(2, 3)
    exported = plumbline.export(program)(x)
    assert (log, x.sum().item(), model.num_batches_tracked.item()) == ([], 0, 0)
    exported(x)
    assert (log, x.sum().item(), model.num_batches_tracked.item()) == ([1], 6, 1)


def test_the_guards_say_what_must_hold_and_a_call_that_breaks_one_is_refused():
    exported = plumbline.export(nested)(torch.ones(3), torch.ones(3))
    assert "k equals 2" in exported.guards
    with pytest.raises(UserError, match=r"nested needs that x is a tensor .* found Tensor float32\[4\].*dynamic=True"):
        exported(torch.ones(4), torch.ones(4))
    with pytest.raises(UserError, match="k equals 2"):
        exported(torch.ones(3), torch.ones(3), k=5)


@pytest.mark.parametrize("where", ["export", "call"])
def test_sizes_may_vary_where_that_is_asked_for(where):
    x = torch.ones(3)
    make = plumbline.export(nested, dynamic=True) if where == "export" else plumbline.export(nested)
    exported = make(x, x) if where == "export" else make(x, x, dynamic=True)
    larger = torch.randn(7)
    assert torch.equal(exported(larger, larger)["a"], nested(larger, larger)["a"])


def test_an_argument_named_dynamic_stays_the_functions_own():
    def program(x, dynamic):
        return x + 1 if dynamic else x - 1

    assert plumbline.export(program)(torch.ones(2), dynamic=True)(torch.ones(2), dynamic=True).tolist() == [2, 2]


def test_the_first_break_is_raised_with_its_line():
    def broken(x):
        y = x + 1
        print("woo")
        return y

    line = inspect.getsourcelines(broken)[1] + 2
    with pytest.raises(Unsupported, match=rf"test_whole_graphs\.py:{line}: .*print"):
        plumbline.export(broken)(torch.ones(2))


def test_what_computes_no_tensor_has_no_graph():
    with pytest.raises(UserError, match="0 graphs"):
        plumbline.export(lambda x: x)(torch.ones(2))


def test_it_prints_as_python_with_signature_and_guards():
    text = str(plumbline.export(nested)(torch.ones(3), torch.ones(3)))
    assert "input_0.sin()" in text
    assert "input_1: f32[3], argument y" in text
    assert "  k equals 2" in text


class Scaled(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def forward(self, x):
        return self.linear(x).relu()


def graph_modules():
    model = Scaled()
    x = torch.randn(2, 4)
    return {
        "symbolic_trace": (torch.fx.symbolic_trace(model), model),
        "torch.export": (torch.export.export(model, (x,)).module(), model),
        "plumbline.export": (plumbline.export(lambda x: x.sin() * 2)(x).graph_module, lambda x: x.sin() * 2),
    }


@pytest.mark.parametrize("kind", ["symbolic_trace", "torch.export", "plumbline.export"])
def test_a_graph_that_somebody_made_is_captured(kind):
    graph, original = graph_modules()[kind]
    x = torch.randn(2, 4)
    result = plumbline.compile(graph, backend="aot_eager", fullgraph=True)(x)
    result = result[0] if isinstance(result, tuple) else result
    torch.testing.assert_close(result, original(x), rtol=0, atol=0)
